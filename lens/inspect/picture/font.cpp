#include "inspect/picture/font.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#define STBTT_STATIC
#define STB_TRUETYPE_IMPLEMENTATION
#include <stb_truetype.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace fovea::picture {

struct Font::State {
    std::vector<unsigned char> bytes;
    stbtt_fontinfo info{};
    int ascent = 0, descent = 0;
};

namespace {

std::vector<unsigned char> read_file(const std::string& path) {
    std::vector<unsigned char> bytes;
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return bytes;
    unsigned char block[1 << 16];
    for (size_t count; (count = std::fread(block, 1, sizeof block, file)) != 0;) {
        bytes.insert(bytes.end(), block, block + count);
    }
    std::fclose(file);
    return bytes;
}

// The code points of UTF-8 text; a byte that does not belong becomes U+FFFD.
std::vector<int> code_points(std::string_view text) {
    std::vector<int> points;
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i++]);
        const int more = lead < 0x80 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : -1;
        int point = more <= 0 ? lead : lead & (0x3F >> more);
        bool whole = more >= 0 && i + static_cast<size_t>(std::max(more, 0)) <= text.size();
        for (int n = 0; whole && n < more; ++n) {
            const auto next = static_cast<unsigned char>(text[i + static_cast<size_t>(n)]);
            whole = (next & 0xC0) == 0x80;
            point = point << 6 | (next & 0x3F);
        }
        if (whole && more > 0) i += static_cast<size_t>(more);
        points.push_back(whole ? point : 0xFFFD);
    }
    return points;
}

// Calls visit(glyph, x) for each glyph at its pen position; returns the whole advance.
template <class Visit>
double lay_out(const stbtt_fontinfo& info, std::string_view text, double scale, const Visit& visit) {
    double x = 0.0;
    int previous = 0;
    for (const int point : code_points(text)) {
        const int glyph = stbtt_FindGlyphIndex(&info, point);
        if (previous != 0) x += scale * stbtt_GetGlyphKernAdvance(&info, previous, glyph);
        visit(glyph, x);
        int advance = 0, bearing = 0;
        stbtt_GetGlyphHMetrics(&info, glyph, &advance, &bearing);
        x += scale * advance;
        previous = glyph;
    }
    return x;
}

void blend_glyph(const stbtt_fontinfo& info, int glyph, double x, double scale, TextMask& mask) {
    const double whole = std::floor(x);
    const auto shift = static_cast<float>(x - whole);
    const auto s = static_cast<float>(scale);
    int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    stbtt_GetGlyphBitmapBoxSubpixel(&info, glyph, s, s, shift, 0.0f, &x0, &y0, &x1, &y1);
    const int width = x1 - x0, height = y1 - y0;
    if (width <= 0 || height <= 0) return;
    std::vector<unsigned char> bitmap(static_cast<size_t>(width) * static_cast<size_t>(height));
    stbtt_MakeGlyphBitmapSubpixel(&info, bitmap.data(), width, height, width, s, s, shift, 0.0f, glyph);
    for (int row = 0; row < height; ++row) {
        for (int column = 0; column < width; ++column) {
            const int to_x = static_cast<int>(whole) + x0 + column, to_y = mask.ascent + y0 + row;
            if (to_x < 0 || to_y < 0 || to_x >= mask.width || to_y >= mask.height) continue;
            auto& to = mask.coverage[static_cast<size_t>(to_y * mask.width + to_x)];
            to = std::max(to, bitmap[static_cast<size_t>(row * width + column)]);
        }
    }
}

}  // namespace

Font::Font(std::unique_ptr<State> state, std::string path)
    : state_(std::move(state)), path_(std::move(path)) {}
Font::Font(Font&&) noexcept = default;
Font& Font::operator=(Font&&) noexcept = default;
Font::~Font() = default;

Result<Font> Font::open_first(const std::vector<std::string>& paths) {
    std::string tried;
    for (const std::string& path : paths) {
        auto state = std::make_unique<State>();
        state->bytes = read_file(path);
        // stb reads offsets from the file without bounds: only fonts that the system or the caller vouches
        // for.
        const bool readable = state->bytes.size() > 1024 &&
                              stbtt_InitFont(&state->info, state->bytes.data(),
                                             stbtt_GetFontOffsetForIndex(state->bytes.data(), 0)) != 0;
        if (readable) {
            int gap = 0;
            stbtt_GetFontVMetrics(&state->info, &state->ascent, &state->descent, &gap);
            return Font(std::move(state), path);
        }
        tried.append(tried.empty() ? "" : ", ").append(path);
    }
    return Error{FOVEA_IO_ERROR, "font",
                 "the picture needs a font; install DejaVu Sans (Debian: fonts-dejavu-core) or give a font "
                 "file (tried: " +
                     tried + ")"};
}

double Font::width(std::string_view text, double size_px) const {
    const double scale = stbtt_ScaleForMappingEmToPixels(&state_->info, static_cast<float>(size_px));
    return lay_out(state_->info, text, scale, [](int, double) {});
}

TextMask Font::draw(std::string_view text, double size_px) const {
    const double scale = stbtt_ScaleForMappingEmToPixels(&state_->info, static_cast<float>(size_px));
    TextMask mask;
    mask.ascent = static_cast<int>(std::ceil(state_->ascent * scale));
    mask.height = mask.ascent + static_cast<int>(std::ceil(-state_->descent * scale)) + 1;
    mask.width = static_cast<int>(std::ceil(width(text, size_px))) + 2;
    mask.coverage.resize(static_cast<size_t>(mask.width) * static_cast<size_t>(mask.height));
    lay_out(state_->info, text, scale,
            [&](int glyph, double x) { blend_glyph(state_->info, glyph, x, scale, mask); });
    return mask;
}

double Font::cap_height(double size_px) const {
    int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    stbtt_GetCodepointBox(&state_->info, 'H', &x0, &y0, &x1, &y1);
    return y1 * stbtt_ScaleForMappingEmToPixels(&state_->info, static_cast<float>(size_px));
}

std::vector<std::string> usual_font_paths(bool bold) {
    if (bold) {
        return {"/usr/share/fonts/opentype/inter/Inter-SemiBold.otf",
                "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
                "/usr/share/fonts/dejavu/DejaVuSans-Bold.ttf",
                "/System/Library/Fonts/Supplemental/Arial Bold.ttf", "C:/Windows/Fonts/segoeuib.ttf"};
    }
    return {"/usr/share/fonts/opentype/inter/Inter-Regular.otf",
            "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/dejavu/DejaVuSans.ttf",
            "/System/Library/Fonts/Supplemental/Arial.ttf", "C:/Windows/Fonts/segoeui.ttf"};
}

}  // namespace fovea::picture

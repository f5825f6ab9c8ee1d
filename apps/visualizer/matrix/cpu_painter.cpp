#include "matrix/cpu_painter.hpp"

#include "matrix/matrix_renderer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fovea::visualizer {
namespace {

constexpr uint32_t kMagenta = 0xffff00ff, kCyan = 0xffffff00;

struct MatrixCell {
    int row, column;
};

class Painter {
  public:
    Painter(const MatrixView& view, const PaintSource& source) : v(view), s(source) {}
    // False where the pixel is left as it is.
    bool pixel(float x, float y, uint32_t& color) const;

  private:
    uint64_t index(MatrixCell c) const {
        return uint64_t(v.first_element) + uint64_t(c.row) * v.row_stride + uint64_t(c.column);
    }
    float mass(MatrixCell c) const {
        uint64_t units = 0;
        std::memcpy(&units, s.values + 2 * index(c), sizeof units);
        if (units == ~uint64_t{0}) return std::numeric_limits<float>::quiet_NaN();
        const float value =
            float(units) * (uint32_t(c.row) == v.ragged_row ? v.ragged_mass_unit : v.mass_unit);
        return std::max(value, std::min(value * v.mass_spread, 1.0f));
    }
    float value(MatrixCell c) const {
        if (v.flags & MATRIX_FLAG_MASS) return mass(c);
        const uint64_t at = index(c);
        const bool difference = v.flags & MATRIX_FLAG_DIFFERENCE;
        return difference ? s.values[at] - s.other[at - v.first_element + v.other_first_element]
                          : s.values[at];
    }
    bool hidden(MatrixCell c) const {
        if (v.flags & MATRIX_FLAG_MASS) return false;
        const float read = (v.flags & MATRIX_FLAG_HIDING ? s.hiding : s.values)[index(c)];
        return std::isinf(read) && read < 0;
    }
    bool dropped(MatrixCell c) const { return (v.flags & MATRIX_FLAG_DROPPED) && s.other[index(c)] == 0; }
    float signed_log(float x) const { return std::copysign(std::log1p(std::fabs(x) / v.linear_within), x); }
    uint32_t color_of(float value) const;
    MatrixCell strongest(MatrixCell from) const;

    const MatrixView& v;
    const PaintSource& s;
};

uint32_t Painter::color_of(float value) const {
    if (std::isnan(value)) return kMagenta;
    if (std::isinf(value)) return value > 0 ? kCyan : v.ground;
    float low = v.range_low, high = v.range_high;
    if (v.flags & MATRIX_FLAG_LOG) {
        value = std::log(std::max(value, 1e-30f));
        low = std::log(std::max(low, 1e-30f)), high = std::log(std::max(high, 1e-30f));
    }
    if (v.flags & MATRIX_FLAG_SYMLOG) {
        value = signed_log(value);
        high = signed_log(high);
        low = -high;
    }
    const float share = high > low ? std::clamp((value - low) / (high - low), 0.0f, 1.0f) : 0.5f;
    return s
        .colors[v.colormap * MATRIX_COLORS_PER_MAP + uint32_t(share * (MATRIX_COLORS_PER_MAP - 1) + 0.5f)];
}

MatrixCell Painter::strongest(MatrixCell from) const {
    const auto count = [](float size) {
        return std::clamp(int(std::ceil(1 / size)), 1, MATRIX_MOST_CELLS_A_SIDE);
    };
    MatrixCell best = from;
    float best_size = -1;
    for (int y = 0; y < count(v.cell_height); ++y)
        for (int x = 0; x < count(v.cell_width); ++x) {
            const MatrixCell here{std::min(from.row + y, int(v.rows) - 1),
                                  std::min(from.column + x, int(v.columns) - 1)};
            const float read = value(here);
            const float size = std::isnan(read) ? 3.4e38f : hidden(here) ? -0.5f : std::fabs(read);
            if (size > best_size) best_size = size, best = here;
        }
    return best;
}

bool Painter::pixel(float x, float y, uint32_t& color) const {
    const float place_x = (x - v.origin_x) / v.cell_width, place_y = (y - v.origin_y) / v.cell_height;
    MatrixCell cell{int(std::floor(place_y)), int(std::floor(place_x))};
    if (v.flags & MATRIX_FLAG_WHOLE)
        cell = {std::clamp(cell.row, 0, int(v.rows) - 1), std::clamp(cell.column, 0, int(v.columns) - 1)};
    color = v.ground;
    if (cell.row < 0 || cell.column < 0 || cell.row >= int(v.rows) || cell.column >= int(v.columns))
        return true;
    if ((v.flags & MATRIX_FLAG_UPPER) && cell.column <= cell.row) return false;
    const float inside_x = (place_x - float(cell.column)) * v.cell_width,
                inside_y = (place_y - float(cell.row)) * v.cell_height;
    const float side = std::min(v.cell_width, v.cell_height);
    const float unit = v.hatch_period / float(MATRIX_HATCH_PERIOD);
    const float gap = v.flags & MATRIX_FLAG_GRID ? std::min(1.5f * unit, 0.04f * side) : 0;
    if (inside_x < gap || inside_y < gap || inside_x > v.cell_width - gap || inside_y > v.cell_height - gap)
        return true;
    const bool in_row = cell.row == v.picked_row, in_column = cell.column == v.picked_column;
    if (side < 1) cell = strongest(cell);
    const bool masked = hidden(cell);
    if (masked || dropped(cell)) {
        const float stripe = (masked ? x + y : x - y) / v.hatch_period;
        if (stripe - std::floor(stripe) < 0.18f) color = masked ? v.hatch : v.dropped;
    } else {
        color = color_of(value(cell));
    }
    const float edge =
        gap + (in_row && in_column ? std::min(4.0f * unit, float(MATRIX_FRAME_SHARE) * side) : unit);
    const bool at_row_edge = in_row && (inside_y < edge || inside_y > v.cell_height - edge);
    const bool at_column_edge = in_column && (inside_x < edge || inside_x > v.cell_width - edge);
    const bool at_side = in_row && in_column && (inside_x < edge || inside_x > v.cell_width - edge);
    // A line of the ground inside the picked cell's frame: it is seen on every color.
    const float inner = gap + 0.7f * (edge - gap);
    const bool within = in_row && in_column && inside_x > inner && inside_y > inner &&
                        inside_x < v.cell_width - inner && inside_y < v.cell_height - inner;
    if (side >= 8 * unit && (at_row_edge || at_column_edge || at_side))
        color = within ? v.ground : v.highlight;
    return true;
}

}  // namespace

void paint_matrix(const MatrixView& view, const PaintSource& source, const PaintTarget& target) {
    const Painter painter(view, source);
    const int left = std::max({int(std::floor(view.left)), target.clip_left, 0}),
              top = std::max({int(std::floor(view.top)), target.clip_top, 0}),
              right = std::min({int(std::ceil(view.left + view.width)), target.clip_right, target.width}),
              bottom = std::min({int(std::ceil(view.top + view.height)), target.clip_bottom, target.height});
    for (int y = top; y < bottom; ++y)
        for (int x = left; x < right; ++x) {
            uint32_t color = 0;
            const float px = float(x) + 0.5f, py = float(y) + 0.5f;
            // The rectangle covers a pixel whose middle it holds.
            if (px < view.left || py < view.top || px >= view.left + view.width ||
                py >= view.top + view.height)
                continue;
            if (painter.pixel(px, py, color))
                target.pixels[size_t(y) * size_t(target.width) + size_t(x)] = color | 0xff000000;
        }
}

namespace {

// Corners on a grid of 1/256 pixel, so that neighbours share their edge exactly and no pixel is blended
// twice.
constexpr int64_t kGrid = 256;

struct Atlas {
    const uint8_t* alpha = nullptr;
    int width = 0, height = 0;

    float texel(int x, int y) const {
        return alpha[std::clamp(y, 0, height - 1) * width + std::clamp(x, 0, width - 1)];
    }
    // Between the four nearest, as a linear sampler does it; 0 to 1.
    float sample(float u, float v) const {
        const float x = u * float(width) - 0.5f, y = v * float(height) - 0.5f;
        const float x0 = std::floor(x), y0 = std::floor(y), fx = x - x0, fy = y - y0;
        const int ix = int(x0), iy = int(y0);
        const float above = texel(ix, iy) * (1 - fx) + texel(ix + 1, iy) * fx;
        const float below = texel(ix, iy + 1) * (1 - fx) + texel(ix + 1, iy + 1) * fx;
        return (above * (1 - fy) + below * fy) / 255;
    }
};

struct Corner {
    int64_t x, y;
    float u, v;
    float color[4];
};

Corner corner_of(const ImDrawVert& v) {
    Corner c{std::llround(double(v.pos.x) * double(kGrid)),
             std::llround(double(v.pos.y) * double(kGrid)),
             v.uv.x,
             v.uv.y,
             {}};
    for (int i = 0; i < 4; ++i) c.color[i] = float(v.col >> (8 * i) & 255);
    return c;
}

int64_t edge(const Corner& a, const Corner& b, int64_t x, int64_t y) {
    return (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x);
}

// A pixel on the edge between two triangles is painted by only one of them.
bool owns_edge(const Corner& a, const Corner& b) { return a.y == b.y ? b.x > a.x : b.y < a.y; }

void blend(uint32_t& pixel, const float (&color)[4], float alpha) {
    uint32_t out = 0xff000000;
    for (int i = 0; i < 3; ++i) {
        const float below = float(pixel >> (8 * i) & 255);
        out |= uint32_t(below + (color[i] - below) * alpha + 0.5f) << (8 * i);
    }
    pixel = out;
}

void paint_triangle(Corner a, Corner b, Corner c, const Atlas& atlas, const PaintTarget& target) {
    int64_t area = edge(a, b, c.x, c.y);
    if (area == 0) return;
    if (area < 0) std::swap(b, c), area = -area;
    const auto low = [](int64_t p, int64_t q, int64_t r) { return int(std::min({p, q, r}) / kGrid); };
    const auto high = [](int64_t p, int64_t q, int64_t r) { return int(std::max({p, q, r}) / kGrid) + 1; };
    const int left = std::max(low(a.x, b.x, c.x), target.clip_left),
              right = std::min(high(a.x, b.x, c.x), target.clip_right);
    const int top = std::max(low(a.y, b.y, c.y), target.clip_top),
              bottom = std::min(high(a.y, b.y, c.y), target.clip_bottom);
    const int64_t own_a = owns_edge(b, c) ? 0 : 1, own_b = owns_edge(c, a) ? 0 : 1,
                  own_c = owns_edge(a, b) ? 0 : 1;
    for (int y = top; y < bottom; ++y)
        for (int x = left; x < right; ++x) {
            const int64_t px = x * kGrid + kGrid / 2, py = y * kGrid + kGrid / 2;
            const int64_t wa = edge(b, c, px, py), wb = edge(c, a, px, py), wc = edge(a, b, px, py);
            if (wa < own_a || wb < own_b || wc < own_c) continue;
            const float sa = float(double(wa) / double(area)), sb = float(double(wb) / double(area)),
                        sc = 1 - sa - sb;
            float color[4];
            for (int i = 0; i < 4; ++i) color[i] = a.color[i] * sa + b.color[i] * sb + c.color[i] * sc;
            const float alpha = atlas.sample(a.u * sa + b.u * sb + c.u * sc, a.v * sa + b.v * sb + c.v * sc);
            blend(target.pixels[size_t(y) * size_t(target.width) + size_t(x)], color, color[3] / 255 * alpha);
        }
}

void paint_command(const ImDrawList& list, const ImDrawCmd& command, const Atlas& atlas, PaintTarget target) {
    target.clip_left = std::clamp(int(command.ClipRect.x), 0, target.width);
    target.clip_top = std::clamp(int(command.ClipRect.y), 0, target.height);
    target.clip_right = std::clamp(int(command.ClipRect.z), 0, target.width);
    target.clip_bottom = std::clamp(int(command.ClipRect.w), 0, target.height);
    if (command.UserCallback) {
        (void)MatrixRenderer::paint(command, target);
        return;
    }
    const ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
    const ImDrawIdx* indices = list.IdxBuffer.Data + command.IdxOffset;
    for (unsigned i = 0; i + 2 < command.ElemCount; i += 3)
        paint_triangle(corner_of(vertices[indices[i]]), corner_of(vertices[indices[i + 1]]),
                       corner_of(vertices[indices[i + 2]]), atlas, target);
}

}  // namespace

std::vector<uint32_t> paint_frame(const ImDrawData& data, int width, int height, uint32_t ground) {
    std::vector<uint32_t> pixels(size_t(width) * size_t(height), ground | 0xff000000);
    Atlas atlas;
    unsigned char* alpha = nullptr;
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&alpha, &atlas.width, &atlas.height);
    atlas.alpha = alpha;
    PaintTarget target;
    target.pixels = pixels.data();
    target.width = width, target.height = height;
    for (int i = 0; i < data.CmdListsCount; ++i)
        for (const ImDrawCmd& command : data.CmdLists[i]->CmdBuffer)
            paint_command(*data.CmdLists[i], command, atlas, target);
    return pixels;
}

}  // namespace fovea::visualizer

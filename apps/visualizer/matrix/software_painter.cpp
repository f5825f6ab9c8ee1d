#include "matrix/software_painter.hpp"

#include "matrix/matrix_renderer.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
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

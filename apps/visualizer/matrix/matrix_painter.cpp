#include "matrix/matrix_painter.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fovea::visualizer {
namespace {

constexpr uint32_t kMagenta = 0xffff00ff, kCyan = 0xffffff00;

struct Cell {
    int row, column;
};

class Painter {
  public:
    Painter(const MatrixView& view, const PaintSource& source) : v(view), s(source) {}
    // False where the pixel is left as it is.
    bool pixel(float x, float y, uint32_t& color) const;

  private:
    uint64_t index(Cell c) const {
        return uint64_t(v.first_element) + uint64_t(c.row) * v.row_stride + uint64_t(c.column);
    }
    float mass(Cell c) const {
        uint64_t units = 0;
        std::memcpy(&units, s.values + 2 * index(c), sizeof units);
        if (units == ~uint64_t{0}) return std::numeric_limits<float>::quiet_NaN();
        const float value =
            float(units) * (uint32_t(c.row) == v.ragged_row ? v.ragged_mass_unit : v.mass_unit);
        return std::max(value, std::min(value * v.mass_spread, 1.0f));
    }
    float value(Cell c) const {
        if (v.flags & MATRIX_FLAG_MASS) return mass(c);
        const uint64_t at = index(c);
        const bool difference = v.flags & MATRIX_FLAG_DIFFERENCE;
        return difference ? s.values[at] - s.other[at - v.first_element + v.other_first_element]
                          : s.values[at];
    }
    bool hidden(Cell c) const {
        if (v.flags & MATRIX_FLAG_MASS) return false;
        const float read = (v.flags & MATRIX_FLAG_HIDING ? s.hiding : s.values)[index(c)];
        return std::isinf(read) && read < 0;
    }
    bool dropped(Cell c) const { return (v.flags & MATRIX_FLAG_DROPPED) && s.other[index(c)] == 0; }
    float signed_log(float x) const { return std::copysign(std::log1p(std::fabs(x) / v.linear_within), x); }
    uint32_t color_of(float value) const;
    Cell strongest(Cell from) const;

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

Cell Painter::strongest(Cell from) const {
    const auto count = [](float size) {
        return std::clamp(int(std::ceil(1 / size)), 1, MATRIX_MOST_CELLS_A_SIDE);
    };
    Cell best = from;
    float best_size = -1;
    for (int y = 0; y < count(v.cell_height); ++y)
        for (int x = 0; x < count(v.cell_width); ++x) {
            const Cell here{std::min(from.row + y, int(v.rows) - 1),
                            std::min(from.column + x, int(v.columns) - 1)};
            const float read = value(here);
            const float size = std::isnan(read) ? 3.4e38f : hidden(here) ? -0.5f : std::fabs(read);
            if (size > best_size) best_size = size, best = here;
        }
    return best;
}

bool Painter::pixel(float x, float y, uint32_t& color) const {
    const float place_x = (x - v.origin_x) / v.cell_width, place_y = (y - v.origin_y) / v.cell_height;
    Cell cell{int(std::floor(place_y)), int(std::floor(place_x))};
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

}  // namespace fovea::visualizer

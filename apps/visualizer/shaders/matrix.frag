#version 450
// A cell's color from its number, straight from the buffer that the engine wrote. Masked cells are hatched, NaN is magenta
// and +inf cyan: never a color of the map. Of a pixel that holds several cells the largest by size is shown.
#extension GL_GOOGLE_include_directive : require
#include "matrix_view.h"

layout(push_constant) uniform Push { MatrixView view; };
layout(set = 0, binding = MATRIX_BINDING_VALUES) readonly buffer Values { float values[]; };
layout(set = 0, binding = MATRIX_BINDING_VALUES) readonly buffer Words { uint words[]; };
layout(set = 0, binding = MATRIX_BINDING_COLORS) readonly buffer Colors { uint colors[]; };
layout(set = 0, binding = MATRIX_BINDING_HIDING) readonly buffer Hiding { float hiding[]; };
layout(set = 0, binding = MATRIX_BINDING_OTHER) readonly buffer Other { float other[]; };
layout(location = 0) in vec2 pixel;
layout(location = 0) out vec4 color;

float signed_log(float value) { return sign(value) * log(1.0 + abs(value) / view.linear_within); }

vec4 color_of(float value) {
    if (isnan(value)) return vec4(1.0, 0.0, 1.0, 1.0);
    if (isinf(value)) return value > 0.0 ? vec4(0.0, 1.0, 1.0, 1.0) : unpackUnorm4x8(view.ground);
    float low = view.range_low, high = view.range_high;
    if ((view.flags & MATRIX_FLAG_LOG) != 0u) {
        value = log(max(value, 1e-30));
        low = log(max(low, 1e-30));
        high = log(max(high, 1e-30));
    }
    if ((view.flags & MATRIX_FLAG_SYMLOG) != 0u) {
        value = signed_log(value);
        high = signed_log(high);
        low = -high;
    }
    float share = high > low ? clamp((value - low) / (high - low), 0.0, 1.0) : 0.5;
    uint index = view.colormap * MATRIX_COLORS_PER_MAP + uint(share * float(MATRIX_COLORS_PER_MAP - 1) + 0.5);
    return unpackUnorm4x8(colors[index]);
}

uint index_of(ivec2 cell) { return view.first_element + uint(cell.y) * view.row_stride + uint(cell.x); }

// A pixel of a map's tile: the mean of what each of its rows gives to its keys. A sampled key stands for all of them, as
// far as a row has that much to give.
float mass_of(ivec2 cell) {
    uint at = 2u * index_of(cell), low = words[at], high = words[at + 1u];
    if ((low & high) == 0xffffffffu) return uintBitsToFloat(0x7fc00000u);
    float unit = uint(cell.y) == view.ragged_row ? view.ragged_mass_unit : view.mass_unit;
    float value = (float(high) * 4294967296.0 + float(low)) * unit;
    return max(value, min(value * view.mass_spread, 1.0));
}

float value_of(ivec2 cell) {
    if ((view.flags & MATRIX_FLAG_MASS) != 0u) return mass_of(cell);
    uint index = index_of(cell);
    float value = values[index];
    if ((view.flags & MATRIX_FLAG_DIFFERENCE) != 0u) value -= other[index - view.first_element + view.other_first_element];
    return value;
}

bool hidden(ivec2 cell) {
    if ((view.flags & MATRIX_FLAG_MASS) != 0u) return false;
    uint index = index_of(cell);
    float value = (view.flags & MATRIX_FLAG_HIDING) != 0u ? hiding[index] : values[index];
    return isinf(value) && value < 0.0;
}

bool dropped(ivec2 cell) { return (view.flags & MATRIX_FLAG_DROPPED) != 0u && other[index_of(cell)] == 0.0; }

// Of the cells from `cell` on that lie in this pixel, the one with the largest number by size; NaN before all.
ivec2 strongest_cell(ivec2 cell, vec2 cell_size) {
    ivec2 count = clamp(ivec2(ceil(1.0 / cell_size)), ivec2(1), ivec2(MATRIX_MOST_CELLS_A_SIDE));
    ivec2 best = cell;
    float best_size = -1.0;
    for (int y = 0; y < count.y; ++y)
        for (int x = 0; x < count.x; ++x) {
            ivec2 here = min(cell + ivec2(x, y), ivec2(view.columns, view.rows) - 1);
            float value = value_of(here);
            float size = isnan(value) ? 3.4e38 : hidden(here) ? -0.5 : abs(value);
            if (size > best_size) {
                best_size = size;
                best = here;
            }
        }
    return best;
}

void main() {
    vec2 cell_size = vec2(view.cell_width, view.cell_height);
    vec2 place = (pixel - vec2(view.origin_x, view.origin_y)) / cell_size;
    ivec2 cell = ivec2(floor(place));
    if ((view.flags & MATRIX_FLAG_WHOLE) != 0u) cell = clamp(cell, ivec2(0), ivec2(view.columns, view.rows) - 1);
    color = unpackUnorm4x8(view.ground);
    if (any(lessThan(cell, ivec2(0))) || cell.x >= int(view.columns) || cell.y >= int(view.rows)) return;
    if ((view.flags & MATRIX_FLAG_UPPER) != 0u && cell.x <= cell.y) discard;

    vec2 inside = (place - vec2(cell)) * cell_size;
    float unit = view.hatch_period / MATRIX_HATCH_PERIOD;
    float gap = (view.flags & MATRIX_FLAG_GRID) != 0u ? min(1.5 * unit, 0.04 * min(cell_size.x, cell_size.y)) : 0.0;
    if (any(lessThan(inside, vec2(gap))) || any(greaterThan(inside, cell_size - gap))) return;

    bool in_row = cell.y == view.picked_row, in_column = cell.x == view.picked_column;
    if (min(cell_size.x, cell_size.y) < 1.0) cell = strongest_cell(cell, cell_size);
    if (hidden(cell)) {
        if (fract((pixel.x + pixel.y) / view.hatch_period) < 0.18) color = unpackUnorm4x8(view.hatch);
    } else if (dropped(cell)) {
        if (fract((pixel.x - pixel.y) / view.hatch_period) < 0.18) color = unpackUnorm4x8(view.dropped);
    } else {
        color = color_of(value_of(cell));
    }

    // The picked cell has a frame of its own, with a line of the ground inside it so that it is seen on every color; its row
    // and column have a thin line on each side.
    float edge = in_row && in_column ? min(4.0 * unit, MATRIX_FRAME_SHARE * min(cell_size.x, cell_size.y)) : unit;
    bool at_row_edge = in_row && (inside.y < gap + edge || inside.y > cell_size.y - gap - edge);
    bool at_column_edge = in_column && (inside.x < gap + edge || inside.x > cell_size.x - gap - edge);
    if (min(cell_size.x, cell_size.y) >= 8.0 * unit && (at_row_edge || at_column_edge || (in_row && in_column &&
        (inside.x < gap + edge || inside.x > cell_size.x - gap - edge))))
        color = unpackUnorm4x8(in_row && in_column && all(greaterThan(inside, vec2(gap + 0.7 * edge))) &&
            all(lessThan(inside, cell_size - gap - 0.7 * edge)) ? view.ground : view.highlight);
}

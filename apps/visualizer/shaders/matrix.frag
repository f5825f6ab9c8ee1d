#version 450
// A cell's colour from its number, straight from the buffer that the engine wrote. Masked cells (-inf) are hatched, NaN is
// magenta and +inf cyan: never a colour of the map.
#extension GL_GOOGLE_include_directive : require
#include "matrix_view.h"

layout(push_constant) uniform Push { MatrixView view; };
layout(set = 0, binding = MATRIX_BINDING_VALUES) readonly buffer Values { float values[]; };
layout(set = 0, binding = MATRIX_BINDING_COLOURS) readonly buffer Colours { uint colours[]; };
layout(location = 0) in vec2 pixel;
layout(location = 0) out vec4 colour;

vec4 colour_of(float value) {
    if (isnan(value)) return vec4(1.0, 0.0, 1.0, 1.0);
    if (isinf(value)) return value > 0.0 ? vec4(0.0, 1.0, 1.0, 1.0) : unpackUnorm4x8(view.ground);
    float low = view.range_low, high = view.range_high;
    if ((view.flags & MATRIX_FLAG_LOG) != 0u) {
        value = log(max(value, 1e-30));
        low = log(max(low, 1e-30));
        high = log(max(high, 1e-30));
    }
    float share = high > low ? clamp((value - low) / (high - low), 0.0, 1.0) : 0.5;
    uint index = view.colour_map * MATRIX_COLOURS_PER_MAP + uint(share * float(MATRIX_COLOURS_PER_MAP - 1) + 0.5);
    return unpackUnorm4x8(colours[index]);
}

void main() {
    vec2 cell_size = vec2(view.cell_width, view.cell_height);
    vec2 place = (pixel - vec2(view.origin_x, view.origin_y)) / cell_size;
    ivec2 cell = ivec2(floor(place));
    colour = unpackUnorm4x8(view.ground);
    if (any(lessThan(cell, ivec2(0))) || cell.x >= int(view.columns) || cell.y >= int(view.rows)) return;

    vec2 inside = (place - vec2(cell)) * cell_size;
    float gap = (view.flags & MATRIX_FLAG_GRID) != 0u ? min(1.5, 0.04 * min(cell_size.x, cell_size.y)) : 0.0;
    if (any(lessThan(inside, vec2(gap))) || any(greaterThan(inside, cell_size - gap))) return;

    float value = values[view.first_element + uint(cell.y) * view.row_stride + uint(cell.x)];
    colour = colour_of(value);
    if (isinf(value) && value < 0.0 && fract((pixel.x + pixel.y) / 7.0) < 0.18) colour = unpackUnorm4x8(view.hatch);

    // The picked cell has a frame of its own; its row and column a thin line on each side.
    bool in_row = cell.y == view.picked_row, in_column = cell.x == view.picked_column;
    float edge = in_row && in_column ? 3.0 : 1.0;
    bool at_row_edge = in_row && (inside.y < gap + edge || inside.y > cell_size.y - gap - edge);
    bool at_column_edge = in_column && (inside.x < gap + edge || inside.x > cell_size.x - gap - edge);
    if (min(cell_size.x, cell_size.y) >= 8.0 && (at_row_edge || at_column_edge || (in_row && in_column &&
        (inside.x < gap + edge || inside.x > cell_size.x - gap - edge))))
        colour = unpackUnorm4x8(view.highlight);
}

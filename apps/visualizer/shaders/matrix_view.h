// The parameters of a matrix view for its shader. GLSL and C++ both read this file; at most 128 bytes, the
// smallest push-constant block.
#ifndef FOVEA_VISUALIZER_MATRIX_VIEW_H
#define FOVEA_VISUALIZER_MATRIX_VIEW_H

#ifdef __cplusplus
#include <cstdint>
namespace fovea::visualizer {
using uint = uint32_t;
#endif

#define MATRIX_BINDING_VALUES 0
#define MATRIX_BINDING_COLORS 1
#define MATRIX_BINDING_HIDING 2
#define MATRIX_BINDING_OTHER 3
#define MATRIX_BINDING_COUNT 4
#define MATRIX_COLORS_PER_MAP 256
#define MATRIX_HATCH_PERIOD 7.0   // units of the layout: says how many pixels one unit is
#define MATRIX_FRAME_SHARE 0.125  // share of a small cell that the picked cell's frame may take on each side
#define MATRIX_MOST_CELLS_A_SIDE 16  // for a pixel that holds several cells

#define MATRIX_FLAG_LOG 1u     // color by the logarithm, between range_low and range_high
#define MATRIX_FLAG_GRID 2u    // leave a gap between cells
#define MATRIX_FLAG_SYMLOG 4u  // color by sign(x) log(1 + |x| / linear_within), between +-range_high
#define MATRIX_FLAG_HIDING 8u  // a cell is masked where the hiding buffer has -inf, not where the values have
#define MATRIX_FLAG_DIFFERENCE 32u  // values minus those of the other buffer
#define MATRIX_FLAG_WHOLE 64u       // every pixel of the rectangle has a cell, the nearest
#define MATRIX_FLAG_DROPPED 256u    // a cell that the other buffer has 0 for was dropped
#define MATRIX_FLAG_MASS 128u       // the values are a map tile's mass: 64-bit integers, low word first
#define MATRIX_FLAG_UPPER 16u       // only cells above the diagonal: the other half is another picture's

struct MatrixView {
    // Pixels of the framebuffer: the picture's corner and size, and where cell (0, 0) begins.
    float target_width, target_height;
    float left, top, width, height;
    float origin_x, origin_y;
    float cell_width, cell_height;
    // Elements of the values' buffer.
    uint first_element, row_stride, rows, columns, other_first_element;
    float range_low, range_high, linear_within;
    uint colormap, flags;
    uint ground, hatch;             // RGBA8 colors: the background of the cells, and the hatch of masked ones
    int picked_row, picked_column;  // -1: none
    float hatch_period;             // pixels, along a row
    uint highlight;                 // RGBA8 of the picked row's and column's frame
    // With MATRIX_FLAG_MASS: the value of one unit in a row of pixels, the same in the one row that holds
    // fewer queries, and the number of keys that a sampled cell represents.
    float mass_unit, ragged_mass_unit;
    uint ragged_row;
    float mass_spread;
    uint dropped;  // RGBA8 of the hatch in dropped cells
};

#ifdef __cplusplus
static_assert(sizeof(MatrixView) <= 128);
}  // namespace fovea::visualizer
#endif
#endif

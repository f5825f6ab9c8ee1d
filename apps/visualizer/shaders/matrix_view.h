// What a matrix view tells its shader. Read by GLSL and C++; 128 bytes at most, the smallest push-constant
// block.
#ifndef FOVEA_VISUALIZER_MATRIX_VIEW_H
#define FOVEA_VISUALIZER_MATRIX_VIEW_H

#ifdef __cplusplus
#include <cstdint>
namespace fovea::visualizer {
using uint = uint32_t;
#endif

#define MATRIX_BINDING_VALUES 0
#define MATRIX_BINDING_COLOURS 1
#define MATRIX_COLOURS_PER_MAP 256

#define MATRIX_FLAG_LOG 1u   // colour by the logarithm, between range_low and range_high
#define MATRIX_FLAG_GRID 2u  // leave a gap between cells

struct MatrixView {
    // Pixels of the framebuffer: the picture's corner and size, and where cell (0, 0) begins.
    float target_width, target_height;
    float left, top, width, height;
    float origin_x, origin_y;
    float cell_width, cell_height;
    // Elements of the values' buffer.
    uint first_element, row_stride, rows, columns;
    float range_low, range_high;
    uint colour_map, flags;
    uint ground, hatch;             // RGBA8 colours: behind the cells, and of the hatch in masked ones
    int picked_row, picked_column;  // -1: none
    uint highlight;                 // RGBA8 of the picked row's and column's frame
};

#ifdef __cplusplus
static_assert(sizeof(MatrixView) <= 128);
}  // namespace fovea::visualizer
#endif
#endif

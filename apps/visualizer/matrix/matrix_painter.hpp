// Paints the matrix shader's picture on the CPU, if there is no Vulkan: shaders/matrix.frag line by line.
#pragma once

#include "shaders/matrix_view.h"

#include <cstdint>
#include <span>

namespace fovea::visualizer {

struct PaintTarget {
    uint32_t* pixels = nullptr;  // RGBA8, red in the low byte; rows from the top
    int width = 0, height = 0;
    int clip_left = 0, clip_top = 0, clip_right = 0, clip_bottom = 0;  // right and bottom excluded
};

struct PaintSource {  // The contents of the shader's bindings.
    const float *values, *hiding, *other;
    const uint32_t* colors;
};

void paint_matrix(const MatrixView& view, const PaintSource& source, const PaintTarget& target);

}  // namespace fovea::visualizer

// Paints on the CPU, for pictures on machines without Vulkan: a matrix as shaders/matrix.frag does line by
// line, and a frame of Dear ImGui.
#pragma once

#include "shaders/matrix_view.h"

#include <imgui.h>

#include <cstdint>
#include <span>
#include <vector>

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

// RGBA8 [height, width], red in the low byte. Matrices in the draw lists are painted, too. The font atlas is
// the current context's.
std::vector<uint32_t> paint_frame(const ImDrawData& data, int width, int height, uint32_t ground);

}  // namespace fovea::visualizer

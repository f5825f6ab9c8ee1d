// Paints a frame of Dear ImGui on the CPU, for pictures on machines without Vulkan.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <vector>

namespace fovea::visualizer {

// RGBA8 [height, width], red in the low byte. Matrices in the draw lists are painted, too. The font atlas is
// the current context's.
std::vector<uint32_t> paint_frame(const ImDrawData& data, int width, int height, uint32_t ground);

}  // namespace fovea::visualizer

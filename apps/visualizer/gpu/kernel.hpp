// The parts of a dispatch that are compiled, which distinguish one of the engine's pipelines from another.
#pragma once

#include <fovea/fovea.hpp>

#include <compare>
#include <cstdint>
#include <vector>

namespace fovea::visualizer {

struct Kernel {
    uint32_t shader = 0, subgroup_size = 0, push_words = 0, slot_mask = 0;
    std::vector<uint32_t> spec;
    friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

// The kernels of all slices of a Vulkan plan, each once.
std::vector<Kernel> kernels_of(const Plan& plan);

}  // namespace fovea::visualizer

// Staged attention on Vulkan: three kernels over blocks of query rows.
#pragma once

#include "plan/plan.hpp"
#include "plan/vulkan/gather.hpp"
#include "plan/vulkan/shaders.hpp"

namespace fovea {

// Fills plan.vulkan.staged, the grid and plan.info's costs, or fails with the reason.
FoveaResult plan_staged(FoveaPlan_T& plan, FoveaDiag* diag);
// Returns the place after their scores where the slices of a grid gather inputs.
Gathering staged_gathering(const FoveaPlan_T& plan, const BlockGrid& grid, uint64_t extra_offset);
// The module of the weighted sum, by o's type and the tile.
Shader staged_sum_shader(const FoveaPlan_T& plan);
FoveaResult staged_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                         FoveaDiag* diag);
void explain_staged(const FoveaPlan_T& plan, TextSink& text);

}  // namespace fovea

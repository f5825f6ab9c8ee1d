// Map tiles on Vulkan: workgroups of pixels, slices of workgroups.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

FoveaResult plan_vulkan_map_tile(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult map_tile_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                           FoveaDiag* diag);
void explain_vulkan_map_tile(const FoveaPlan_T& plan, TextSink& text);

}  // namespace fovea

// Rope, linear and append on Vulkan: one dispatch for each slice.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

FoveaResult plan_vulkan_rope(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_linear(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_append(FoveaPlan_T& plan, FoveaDiag* diag);

FoveaResult operation_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                            FoveaDiag* diag);
void explain_operation(const FoveaPlan_T& plan, TextSink& text);

}  // namespace fovea

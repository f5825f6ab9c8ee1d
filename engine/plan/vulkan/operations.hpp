// Rope, linear, append, gather, merge, norm and pointwise on Vulkan: one dispatch for each slice.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

FoveaResult plan_vulkan_rope(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_linear(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_append(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_gather(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_merge(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_norm(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_pointwise(FoveaPlan_T& plan, FoveaDiag* diag);

// The one dispatch of a slice of any of them.
FoveaResult operation_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                            FoveaDiag* diag);

void explain_linear(const FoveaPlan_T& plan, TextSink& text);
void explain_rows(const FoveaPlan_T& plan, TextSink& text);  // all others

}  // namespace fovea

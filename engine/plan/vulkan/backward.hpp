// Gradients of attention on Vulkan: slices of dq by query rows, then of dk and dv by keys, of the query heads
// of one key/value head each. No slice needs another one.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

class TextSink;

FoveaResult plan_vulkan_backward(FoveaPlan_T& plan, FoveaDiag* diag);

// See foveaGetDispatches.
FoveaResult backward_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                           FoveaDiag* diag);

void explain_vulkan_backward(const FoveaPlan_T& plan, TextSink& text);

}  // namespace fovea

// Gradients of attention on Vulkan: slices of dq by query rows, then of dk and dv by keys, of the query heads
// of one key/value head each; then of dbias by its own rows or keys, and of dalibi and dsinks by heads, each
// summed over all that shares it. No slice needs another one.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

class TextSink;

FoveaResult plan_vulkan_backward(FoveaPlan_T& plan, FoveaDiag* diag);

// See vulkan_slice.
FoveaResult backward_slice(const FoveaPlan_T& plan, uint64_t slice, uint64_t first, FoveaDispatch* out,
                           uint32_t& count, FoveaDiag* diag);

// Returns the first slices of dq, of dk and dv, of dbias, and of dalibi and dsinks; each kind has a kernel of
// its own. A kind that is not requested begins where the next does; the last one may be past the end.
constexpr uint32_t kBackwardParts = 4;
void first_slices_of_backward(const FoveaPlan_T& plan, uint64_t* first);

void explain_vulkan_backward(const FoveaPlan_T& plan, TextSink& text);

}  // namespace fovea

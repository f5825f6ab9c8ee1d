// Compares the results of a problem with the reference, by the tolerances of reference/tolerance.hpp.
#pragma once

#include "vulkan/check_problem.hpp"

namespace fovea::vulkan {

// Bytes by binding. `exact` and `plain` are float32, `got` has the types of the call.
struct CheckResults {
    const unsigned char* inputs[FOVEA_BIND_COUNT];
    const float* values[FOVEA_BIND_COUNT];  // inputs that hold numbers, as float32
    const unsigned char *exact[FOVEA_BIND_COUNT], *plain[FOVEA_BIND_COUNT], *got[FOVEA_BIND_COUNT];
    // Attention and what builds on it: logits [B, Hq, Lq, Lkv] and lse [B, Hq, Lq] of the reference.
    const float *masked, *lse;
    double* sums;  // room for kCheckSums sums of magnitudes
};
constexpr uint32_t kCheckSums = 16384;

// True if every row is right; else `text` names the first wrong one.
bool is_right(const CheckProblem& problem, const FoveaPlanInfo& info, const CheckResults& results, char* text,
              size_t room);

}  // namespace fovea::vulkan

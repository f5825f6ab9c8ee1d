// Which kernel runs an attention call on Vulkan: a pure function of problem and device facts, with its
// reason.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

// Plans an attention call with the best kernel that can serve it and keeps to its limits, or with the one
// asked for by name; sets plan.info.kernel and plan.info.reason. A kernel asked for by name that cannot is
// refused.
FoveaResult plan_vulkan_kernel(FoveaPlan_T& plan, FoveaDiag* diag);

}  // namespace fovea

// Which kernel runs an attention call on the CPU: a pure function of the problem, with its reason.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

// Sets plan.info.kernel and plan.info.reason; refuses a kernel that was asked for by name and cannot serve.
FoveaResult choose_cpu_kernel(FoveaPlan_T& plan, FoveaDiag* diag);

}  // namespace fovea

// Planning for the CPU: a function for each way in which the work of a call is cut.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

// Below this many FLOPs a second thread costs more than it brings.
constexpr double kSerialFlops = 4e5;
// FLOPs of each worker in a slice of a vector kernel where the caller sets none: some twenty milliseconds.
constexpr double kWorkerSliceCost = 2e9;
// Enough tasks that the last ones to finish cost little.
constexpr uint64_t kTasksPerThread = 6;

// Plans an attention call with the kernel that kernel_choice.cpp finds for it.
FoveaResult plan_cpu_attention(FoveaPlan_T& plan, FoveaDiag* diag);
// The same for a linear layer that is not computed by plain loops.
FoveaResult plan_cpu_linear(FoveaPlan_T& plan, FoveaDiag* diag);

// True if its products are of int8: plain loops compute more precisely.
inline bool takes_integers(const FoveaLinearDesc& d) {
    return d.precision == FOVEA_PRECISION_INT8_INPUTS &&
           (d.kernel == FOVEA_KERNEL_AUTO || d.kernel == FOVEA_KERNEL_DECODE);
}

// Each cuts a plan whose kernel is chosen: fills plan.cpu, and in plan.info the workspace, the slices and
// their costs. Attention's vector kernels by name; a workspace above the caller's limit is rejected.
FoveaResult cut_cpu_flash(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult cut_cpu_decode(FoveaPlan_T& plan, FoveaDiag* diag);
// Plain loops over rows, for the oracles and for operations without tasks.
FoveaResult cut_cpu_rows(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult cut_cpu_map_tile(FoveaPlan_T& plan, FoveaDiag* diag);

// Gradients: chooses between the vector kernel and plain loops, and cuts. The pairs are counted already.
FoveaResult plan_cpu_backward(FoveaPlan_T& plan, FoveaDiag* diag);

// True if this build and this CPU have the kernel that the plan needs.
bool has_cpu_kernel(const FoveaPlan_T& plan);

}  // namespace fovea

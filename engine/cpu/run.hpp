// Runs slices of a call that was planned for the CPU and whose arguments have been checked.
#pragma once

#include "cpu/cpu_plan.hpp"
#include "problem/call.hpp"

#include <cstdint>

namespace fovea {

struct CpuRun {
    const FoveaHostBuffer* bindings;  // FOVEA_BIND_COUNT of them
    unsigned char* workspace;
    const FoveaParallel* parallel;  // null: the calling thread
    uint64_t slice_begin, slice_end;
};

// `kernel` is the plan's; AUTO where the operation has but one.
void run_cpu(const Call& call, FoveaKernel kernel, const CpuPlan& cut, const CpuRun& run);

}  // namespace fovea

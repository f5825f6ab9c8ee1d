// Runs slices of a CPU plan whose arguments have been checked.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

struct FoveaPlan_T;

namespace fovea {

struct CpuRun {
    const FoveaHostBuffer* bindings;  // FOVEA_BIND_COUNT of them
    unsigned char* workspace;
    const FoveaParallel* parallel;  // null: the calling thread
    uint64_t slice_begin, slice_end;
};

void run_cpu(const FoveaPlan_T& plan, const CpuRun& run);

// Calls task(arg, i, worker) for i < count on the host's workers, or here where there are none.
inline void for_each_task(const FoveaParallel* parallel, uint32_t count, FoveaTask task, void* arg) {
    if (parallel && count > 1) {
        parallel->run(parallel->user, count, task, arg);
        return;
    }
    for (uint32_t i = 0; i < count; ++i) task(arg, i, 0);
}

}  // namespace fovea

// Work in numbered tasks on the threads that a host lends, or on the calling one.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea {

// Calls task(arg, i, worker) for i < count on the host's workers, or here where there are none.
inline void for_each_task(const FoveaParallel* parallel, uint32_t count, FoveaTask task, void* arg) {
    if (parallel && count > 1) {
        parallel->run(parallel->user, count, task, arg);
        return;
    }
    for (uint32_t i = 0; i < count; ++i) task(arg, i, 0);
}

}  // namespace fovea

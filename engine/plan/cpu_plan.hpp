// How the CPU backend cuts its work.
#pragma once

#include <cstdint>

namespace fovea {

struct CpuPlan {
    uint64_t rows;  // of (batch, head, query), flattened
    uint64_t rows_per_slice;
    uint64_t rows_per_task;
};

}  // namespace fovea

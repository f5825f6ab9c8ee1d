// A range of rows spread over the host's workers. Rows are independent of each other, so neither the cut into
// tasks nor the number of workers changes a bit.
#pragma once

#include "problem/checked.hpp"
#include "problem/parallel.hpp"

#include <algorithm>
#include <cstdint>

namespace fovea::reference {

struct RowRun {
    const FoveaHostBuffer* bindings;  // FOVEA_BIND_COUNT of them, checked
    unsigned char* scratch;         // one piece of the operation's scratch for each worker, one after another
    const FoveaParallel* parallel;  // null: the calling thread
    uint64_t row_begin, row_end;
    uint64_t rows_per_task;  // at least 1
};

// Calls body(row, worker) for every row of the run.
template <class Body>
void for_each_row(const RowRun& run, const Body& body) {
    struct Job {
        const RowRun& run;
        const Body& body;
        uint64_t rows_per_task;
    };
    const uint64_t rows = run.row_end - run.row_begin;
    // Task indices have 32 bits.
    const uint64_t rows_per_task = std::max(run.rows_per_task, ceil_div(rows, uint64_t{1} << 31));
    const Job job{run, body, rows_per_task};
    const FoveaTask task = [](void* arg, uint32_t index, uint32_t worker) {
        const Job& j = *static_cast<const Job*>(arg);
        const uint64_t begin = j.run.row_begin + index * j.rows_per_task;
        const uint64_t end = std::min(begin + j.rows_per_task, j.run.row_end);
        for (uint64_t row = begin; row < end; ++row) j.body(row, worker);
    };
    for_each_task(run.parallel, uint32_t(ceil_div(rows, rows_per_task)), task, const_cast<Job*>(&job));
}

}  // namespace fovea::reference

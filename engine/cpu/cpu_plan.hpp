// How the work of one call is cut for the CPU's kernels. engine/plan/cpu decides it, the kernels and run.cpp
// read it.
#pragma once

#include "cpu/backward_layout.hpp"
#include "cpu/kernels.hpp"
#include "cpu/linear_layout.hpp"

#include <cstdint>

namespace fovea {

struct CpuPlan {
    bool by_rows;  // no tasks of vector kernels, but rows of (batch, head, query), flattened
    uint64_t rows, rows_per_slice, rows_per_task;

    // Vector kernels. A task covers some queries of all heads of a group against all their keys; without a
    // separate group it covers one key/value head of one batch entry.
    cpu::Kernels kernels;       // kernels of `target`; null if this build or this CPU cannot run it
    uint32_t target;            // cpu::Target
    uint32_t query_tile;        // queries of a task, for each head of the group
    uint32_t query_tiles;       // tasks along the queries
    uint32_t panels;            // panels for the rows of a task
    bool pairs;                 // products of pairs of bfloat16: `kernels.flash` is `flash_pairs` then
    uint32_t key_block;         // keys that a task works on at a time; a row's sums go from block to block
    cpu::LinearCut linear;      // cut of a linear layer,
    cpu::FewRowsCut few_rows;   // or of one with few rows: the kernel is FOVEA_KERNEL_DECODE
    cpu::BackwardCut backward;  // cut of gradients
    // A task of a map tile is so many pixels of one head.
    uint32_t pixel_rows, pixel_columns;
    uint64_t tasks, tasks_per_slice;
    uint64_t scratch_bytes;  // scratch of each worker
    bool serial;             // too small to be worth waking a thread

    // The decode kernel: a task is one split of the keys of one group; a slice is whole groups, which are
    // merged at its end. The workspace holds their partials, then the workers' scratch.
    uint64_t splits, split_keys;
    uint64_t groups_per_slice;
    uint64_t partial_bytes;  // partial results of one task
    bool fetch_to_second;    // rows of K and V are prefetched into L2
};

}  // namespace fovea

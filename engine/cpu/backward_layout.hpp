// How the gradients of an attention call are cut for the vector kernels, and the scratch memory of one
// worker. Computed alike by the planner and the kernels.
#pragma once

#include "cpu/target.hpp"
#include "problem/checked.hpp"

#include <cstdint>

namespace fovea::cpu {

// Tasks are grouped by kind: query tiles of a key/value head, key panels, panels of the bias rows, slopes and
// sinks of a head. No task depends on another, and each sum is computed within one task in one order.
struct BackwardCut {
    uint32_t query_tile, query_tiles;  // queries of a task, for each head of its group, and tasks along them
    uint32_t key_panels, bias_panels;  // tasks along the keys, and along the bias's own rows
    uint32_t block;                    // rows that meet a panel at a time
    uint64_t query_tasks, key_tasks, bias_tasks, slope_tasks, sink_tasks;

    uint64_t tasks() const { return query_tasks + key_tasks + bias_tasks + slope_tasks + sink_tasks; }
};

// Byte offsets, each a multiple of 64. A panel is of queries in the passes over keys, of keys in the pass
// over queries; `a` is what has D columns, `b` what has Dv.
struct BackwardLayout {
    uint64_t panel_a, panel_b;         // [dim][panel] floats
    uint64_t sum_a, sum_b;             // [dim][panel]
    uint64_t scores, values, weights;  // [block][panel]
    uint64_t sums;                     // [block][panel]: of a bias
    uint64_t rows_a, rows_b;           // [block][dim], copied where they cannot be read in place
    uint64_t lanes;                    // Lanes: six words for each lane
    uint64_t lane_rows;                // a few rows of one float for each lane
    uint64_t row_numbers;              // [block] of the kernel's
    uint64_t size_bytes;
};
constexpr uint64_t kBackwardLaneWords = 6, kBackwardLaneRows = 5, kBackwardRowBytes = 48;

constexpr BackwardLayout backward_layout(const TargetShape& shape, uint64_t dim_qk, uint64_t dim_v,
                                         uint64_t block) {
    BackwardLayout layout{};
    uint64_t end = 0;
    const auto place = [&end](uint64_t& offset, uint64_t bytes) {
        offset = end;
        end += align_up(bytes, 64);
    };
    const uint64_t panel = shape.panel();
    place(layout.panel_a, dim_qk * panel * 4);
    place(layout.panel_b, dim_v * panel * 4);
    place(layout.sum_a, dim_qk * panel * 4);
    place(layout.sum_b, dim_v * panel * 4);
    place(layout.scores, block * panel * 4);
    place(layout.values, block * panel * 4);
    place(layout.weights, block * panel * 4);
    place(layout.sums, block * panel * 4);
    place(layout.rows_a, block * dim_qk * 4);
    place(layout.rows_b, block * dim_v * 4);
    place(layout.lanes, kBackwardLaneWords * align_up(panel * 4, shape.lanes * 4));
    place(layout.lane_rows, kBackwardLaneRows * panel * 4);
    place(layout.row_numbers, block * kBackwardRowBytes);
    layout.size_bytes = end;
    return layout;
}

}  // namespace fovea::cpu

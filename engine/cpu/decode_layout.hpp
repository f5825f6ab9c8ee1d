// Memory of a decode task and of what it leaves for the merge, computed alike by the planner and the kernels.
#pragma once

#include "cpu/flash_layout.hpp"
#include "problem/problem.hpp"

namespace fovea::cpu {

// Keys that a decode task works on at a time; splits of the keys are whole blocks.
constexpr uint64_t kDecodeBlock = 256;
// The keys of a whole plain block are used from this many places of it in turn: a CPU's hardware prefetcher
// follows each, and one at a time is too slow.
constexpr uint64_t kDecodePlaces = 8;
// Rows that are converted to float32 at a time if they are not read in registers: they stay in L1 until they
// are used.
constexpr uint64_t kWidenedRows = 32;
// Vectors of four lanes are shorter than one step of a loop along blocks of 32 values; and converting float16
// takes registers that products and sums need.
constexpr bool widens_rows(const TargetShape& shape, FoveaDtype type) {
    return (shape.lanes < 8 && is_compressed(type)) || (shape.widens_halves && type == FOVEA_F16);
}

// True if rows are prefetched into L2 instead of L1. L1 has one way for each page of its size. If the places
// of a block are whole pages apart, they all map to the same sets. With no more ways than places, prefetching
// for one place evicts another's lines before they are used (Zen 4, 8 ways: 1.5 times as long in float32).
// `l1_bytes` 0: unknown; `row_bytes`: from one row to the next.
constexpr bool fetches_to_second_cache(uint64_t l1_bytes, uint64_t row_bytes) {
    constexpr uint64_t kPageBytes = 4096;
    const bool alike = row_bytes * (kDecodeBlock / kDecodePlaces) % kPageBytes == 0;
    return alike && l1_bytes != 0 && l1_bytes <= kDecodePlaces * kPageBytes;
}

// Scratch of one worker: byte offsets, each a multiple of 64.
struct DecodeLayout {
    uint64_t queries;       // [rows][depth] floats, depth: dim_qk rounded up to whole vectors
    uint64_t logits;        // [kDecodeBlock][panel]
    uint64_t lanes;         // one Lanes
    uint64_t lane_rows;     // two rows of one float for each lane
    uint64_t keys, values;  // [2][kDecodeBlock] pointers to rows
    uint64_t hidden;        // [2][kDecodeBlock] bytes, from the block table
    uint64_t zeros;         // a row of zeros that replaces the rows of masked pages
    uint64_t widened;       // [kWidenedRows][most of dim_qk, dim_v] floats, where rows are widened
    uint64_t depth, width;  // floats of a query and of an output
    uint64_t size_bytes;
};

constexpr DecodeLayout decode_layout(const TargetShape& shape, uint64_t rows, uint64_t dim_qk, uint64_t dim_v,
                                     bool widens) {
    DecodeLayout layout{};
    uint64_t end = 0;
    const auto place = [&end](uint64_t& offset, uint64_t bytes) {
        offset = end;
        end += align_up(bytes, 64);
    };
    layout.depth = align_up(dim_qk, shape.lanes);
    layout.width = align_up(dim_v, shape.lanes);
    const uint64_t row = align_up(uint64_t{shape.panel()} * 4, 64);
    place(layout.queries, rows * layout.depth * 4);
    place(layout.logits, kDecodeBlock * shape.panel() * 4);
    place(layout.lanes, kLaneWords * align_up(shape.panel() * 4, shape.lanes * 4));
    place(layout.lane_rows, 2 * row);
    place(layout.keys, 2 * kDecodeBlock * sizeof(void*));
    place(layout.values, 2 * kDecodeBlock * sizeof(void*));
    place(layout.hidden, 2 * kDecodeBlock);
    place(layout.zeros, (layout.depth > layout.width ? layout.depth : layout.width) * 4);
    const uint64_t widest = dim_qk > dim_v ? dim_qk : dim_v;
    place(layout.widened, widens ? kWidenedRows * widest * 4 : 0);
    layout.size_bytes = end;
    return layout;
}

// The partial result of one task: the maximum and the sum of each row and its weighted values, before the
// division.
struct PartialLayout {
    uint64_t maxima, sums;  // [panel] floats
    uint64_t outputs;       // [rows][width]
    uint64_t size_bytes;
};

constexpr PartialLayout partial_layout(const TargetShape& shape, uint64_t rows, uint64_t dim_v) {
    const uint64_t row = align_up(uint64_t{shape.panel()} * 4, 64);
    const uint64_t outputs = rows * align_up(dim_v, shape.lanes) * 4;
    return {0, row, 2 * row, 2 * row + align_up(outputs, 64)};
}

}  // namespace fovea::cpu

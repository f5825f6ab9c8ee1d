// Scratch memory of one worker while it runs a flash task, computed alike by the planner and the kernels.
#pragma once

#include "cpu/target.hpp"
#include "problem/checked.hpp"

#include <cstdint>

namespace fovea::cpu {

// Byte offsets, each a multiple of 64.
struct FlashLayout {
    uint64_t queries;  // [panels][dim_qk][panel] floats; with pairs words, half as many
    uint64_t outputs;  // [panels][dim_v][panel]
    uint64_t maxima;   // [panels][panel]
    uint64_t sums;     // [panels][panel]
    uint64_t lanes;    // [panels] Lanes: six words for each lane
    uint64_t logits;   // [key_block][panel]
    uint64_t rows;     // a few rows of one float for each lane
    uint64_t keys;     // [key_block][dim_qk], copied where K cannot be read in place; words with pairs
    uint64_t packed;   // the same in tiles of key_rows, if that is not 0; not with pairs
    uint64_t values;   // [key_block + 1][dim_v] in the order of Columns; with pairs a row for two keys
    uint64_t row;      // [dim_v], one value of a compressed type at a time; with pairs keys, too
    uint64_t pairs;    // with pairs: three rows of words of [dim_v]
    uint64_t hidden;   // [key_block] bytes, from the block table
    uint64_t size_bytes;
};
constexpr uint64_t kLaneWords = 6, kLaneRows = 6;

// Returns the words for this many elements, two per word.
constexpr uint64_t words_of(uint64_t numbers) { return (numbers + 1) / 2; }

// `pairs`: for products of pairs of bfloat16, see pairs_inl.hpp.
constexpr FlashLayout flash_layout(const TargetShape& shape, uint64_t panels, uint64_t dim_qk, uint64_t dim_v,
                                   uint64_t key_block, bool pairs = false) {
    FlashLayout layout{};
    uint64_t end = 0;
    const auto place = [&end](uint64_t& offset, uint64_t bytes) {
        offset = end;
        end += align_up(bytes, 64);
    };
    const uint64_t panel = shape.panel();
    const uint64_t lane_bytes = kLaneWords * align_up(panel * 4, shape.lanes * 4);
    const uint64_t depth = pairs ? words_of(dim_qk) : dim_qk;
    place(layout.queries, panels * depth * panel * 4);
    place(layout.outputs, panels * dim_v * panel * 4);
    place(layout.maxima, panels * panel * 4);
    place(layout.sums, panels * panel * 4);
    place(layout.lanes, panels * lane_bytes);
    place(layout.logits, key_block * panel * 4);
    place(layout.rows, kLaneRows * panel * 4);
    place(layout.keys, key_block * depth * 4);
    if (shape.key_rows && !pairs) place(layout.packed, (key_block * depth + shape.lanes) * 4);
    place(layout.values, (((pairs ? words_of(key_block) : key_block) + 1) * dim_v + shape.lanes) * 4);
    place(layout.row, (pairs && dim_qk > dim_v ? dim_qk : dim_v) * 4);
    if (pairs) place(layout.pairs, 3 * words_of(dim_v) * 4);
    place(layout.hidden, key_block);
    layout.size_bytes = end;
    return layout;
}

}  // namespace fovea::cpu

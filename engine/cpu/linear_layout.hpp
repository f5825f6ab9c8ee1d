// How a linear layer is cut for the vector kernel, and the scratch memory of one worker while it runs a task.
// Computed alike by the planner and the kernel.
#pragma once

#include "cpu/target.hpp"
#include "problem/checked.hpp"

#include <cstdint>

namespace fovea::cpu {

// A task computes `row_tile` rows of Y in `panels` panels of columns. Which task computes an element never
// changes its bits: each is one chain of multiply-adds over n_in in ascending order.
struct LinearCut {
    uint32_t row_tile, row_tiles;  // rows of a task, and tasks along the rows
    uint32_t panels, panel_tiles;  // panels of a task, and tasks along the columns
    uint32_t depth_block;          // part of n_in that is copied and packed at a time
    bool blocks;                   // weights are blocks: rows of a panel become float32 before it is packed
};

// A product of few rows: a task is `step` rows of each part of W times one row of X, a slice so many tasks of
// one row.
struct FewRowsCut {
    uint64_t part_rows;  // rows of W in a part, see kRowParts
    uint64_t step, tasks;
    uint64_t tasks_per_slice, slices_per_row;
    bool integers;  // a row of X is rounded to 8 bits
};

// Byte offsets, each a multiple of 64.
struct LinearLayout {
    uint64_t weights;  // [depth_block][panel] floats
    uint64_t sums;     // [panels][row_tile][panel]
    uint64_t x;        // [row_tile][x_stride]
    uint64_t widened;  // [panel][depth_block], of blocks
    uint64_t x_stride;
    uint64_t size_bytes;
};

constexpr LinearLayout linear_layout(const TargetShape& shape, const LinearCut& cut) {
    LinearLayout layout{};
    uint64_t end = 0;
    const auto place = [&end](uint64_t& offset, uint64_t bytes) {
        offset = end;
        end += align_up(bytes, 64);
    };
    const uint64_t panel = shape.panel();
    // A cache line more than a row needs: rows a power of two apart would fight for the same places in the
    // cache.
    layout.x_stride = align_up(cut.depth_block, 16) + 16;
    place(layout.weights, cut.depth_block * panel * 4);
    place(layout.sums, uint64_t{cut.panels} * cut.row_tile * panel * 4);
    place(layout.x, cut.row_tile * layout.x_stride * 4);
    place(layout.widened, cut.blocks ? cut.depth_block * panel * 4 : 0);
    layout.size_bytes = end;
    return layout;
}

// The same with products of integers. A panel is `lanes` columns. A row of X has values of 8 bits and a scale
// for each 32 of them. A word for each group of W's type, 16 or 32 values, follows.
struct IntegerLayout {
    uint64_t codes;           // [depth_block / 4][lanes] words
    uint64_t scales, leasts;  // [depth_block / 16][lanes] floats
    uint64_t sums;            // [row_tile][lanes]
    uint64_t x;               // [row_tile][x_bytes]
    uint64_t x_scales, x_extra, x_bytes;
    uint64_t size_bytes;
};

constexpr IntegerLayout integer_layout(uint64_t lanes, uint64_t n_in, const LinearCut& cut) {
    IntegerLayout layout{};
    const uint64_t groups = cut.depth_block / 16 * lanes * 4;
    layout.scales = align_up(cut.depth_block * lanes, 64);
    layout.leasts = layout.scales + align_up(groups, 64);
    layout.sums = layout.leasts + align_up(groups, 64);
    layout.x = layout.sums + align_up(cut.row_tile * lanes * 4, 64);
    layout.x_scales = n_in;
    layout.x_extra = layout.x_scales + n_in / 32 * 4;
    layout.x_bytes = align_up(layout.x_extra + n_in / 16 * 4, 64);
    layout.size_bytes = layout.x + cut.row_tile * layout.x_bytes;
    return layout;
}

// One run of a linear layer as its kernel sees it.
struct LinearCall {
    const FoveaLinearDesc& d;  // as make_linear leaves it
    const LinearCut& cut;
    const FoveaHostBuffer* bindings;  // FOVEA_BIND_COUNT of them

    template <class T>
    T* at(FoveaBinding binding, int64_t index) const {
        return static_cast<T*>(bindings[binding].data) + index;
    }
};

}  // namespace fovea::cpu

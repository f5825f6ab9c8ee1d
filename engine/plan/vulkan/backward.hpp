// Common to plans and slices of gradients.
#pragma once

#include "plan/vulkan/gather.hpp"
#include "plan/vulkan/rows.hpp"
#include "problem/checked.hpp"

namespace fovea {

// Offset in the workspace, after FlashExtra, of the views that do not fit the push constants.
constexpr uint64_t kViewsOffset = 4 * shader::kMaskMapWord, kViewWords = 12;
static_assert(kViewWords <= shader::kExtraWords);
constexpr uint32_t kBackwardDispatches = 3;  // in addition to the gathering ones

inline bool wants_keys(const Backward& w) { return w.wants(FOVEA_GRAD_K | FOVEA_GRAD_V); }
inline bool wants_bias(const Backward& w) {
    return w.wants(FOVEA_GRAD_BIAS) && w.bias_rows > 0 && w.bias_keys > 0;
}
inline bool wants_heads(const Backward& w) { return w.wants(FOVEA_GRAD_ALIBI | FOVEA_GRAD_SINKS); }

// Describes how the rows of the bias tensor map to entries, heads and queries: slices divide its rows or, if
// all queries share one, its keys.
struct OwnBias {
    OwnBias(const Problem& p, const Backward& w)
        : each_row(w.bias_rows > 1),
          each_head(w.bias_heads > 1),
          batches(w.bias_batch),
          groups(each_head ? p.heads_kv : 1),
          length(uint64_t(each_row ? w.bias_rows : w.bias_keys)),
          sharing_batches(w.bias_batch > 1 ? 1 : p.batch),
          sharing_groups(each_head ? 1 : p.heads_kv) {
        const int64_t row = each_row ? w.bias_keys : 0, head = each_head ? w.bias_rows * w.bias_keys : 0;
        matrix.present = true;
        matrix.type = FOVEA_F32;
        matrix.batch = w.bias_batch, matrix.heads = w.bias_heads;
        matrix.rows = w.bias_rows, matrix.keys = w.bias_keys;
        matrix.strides = {w.bias_batch > 1 ? int64_t(w.bias_heads) * w.bias_rows * w.bias_keys : 0, head,
                          row};
    }
    uint64_t sharing() const { return sharing_batches * sharing_groups; }

    bool each_row, each_head;
    uint64_t batches, groups;                  // slices of each: entries, and groups of heads
    uint64_t length;                           // the divided length: rows or keys
    uint64_t sharing_batches, sharing_groups;  // entries and groups that add to the same elements
    MatrixView matrix{};
};

inline uint64_t column_blocks(uint64_t columns, uint32_t threads) {
    return ceil_div(columns, uint64_t{4} * threads);
}

// Return how many slices a plan has of each kind; see first_slices_of_backward.
uint64_t query_slices(const FoveaPlan_T& plan);
uint64_t key_slices(const FoveaPlan_T& plan);
uint64_t bias_slices(const FoveaPlan_T& plan);
uint64_t head_slices(const FoveaPlan_T& plan);

// Slices of queries take some rows, the others all of them.
Gathering gathering_of_gradients(const FoveaPlan_T& plan);

}  // namespace fovea

// Which keys a query may see: the parametric masks as ranges, used by every backend for loop bounds.
#pragma once

#include "problem/problem.hpp"

#include <algorithm>

namespace fovea {

// One batch entry with its lengths resolved and clamped.
struct BatchView {
    int64_t q_start, q_length, kv_start, kv_length;
    int64_t offset;  // query i has key position i + offset
};

// `table` is binding SEQUENCES, or null where there is none.
inline BatchView batch_view(const Problem& p, const FoveaSequence* table, uint32_t b) {
    BatchView view{0, p.len_q, 0, p.len_kv, 0};
    if (table) {
        const FoveaSequence& e = table[b];
        view.q_length = std::clamp<int64_t>(e.q_length, 0, p.len_q);
        view.kv_length = std::clamp<int64_t>(e.kv_length, 0, p.len_kv);
        if (p.packed_rows_q) {
            view.q_start = std::clamp<int64_t>(e.q_start, 0, p.packed_rows_q);
            view.q_length = std::min(view.q_length, p.packed_rows_q - view.q_start);
        }
        if (p.packed_rows_kv) {
            view.kv_start = std::clamp<int64_t>(e.kv_start, 0, p.packed_rows_kv);
            view.kv_length = std::min(view.kv_length, p.packed_rows_kv - view.kv_start);
        }
    }
    if (p.align == FOVEA_ALIGN_BOTTOM_RIGHT) view.offset = view.kv_length - view.q_length;
    if (p.align == FOVEA_ALIGN_OFFSET) view.offset = p.q_offset;
    return view;
}

struct KeyRange {
    int64_t begin, end;  // [begin, end), empty when begin == end
    bool empty() const { return begin >= end; }
};

// Keys that query i may see by causal, window, lengths and the columns of mask and bias. The matrices' own
// elements and the block table come on top. Rows at or past q_length see nothing.
inline KeyRange visible_keys(const Problem& p, const BatchView& view, int64_t i) {
    if (i >= view.q_length) return {0, 0};
    const int64_t position = i + view.offset;
    int64_t begin = 0, end = view.kv_length;
    if (p.mask.present) end = std::min(end, p.mask.keys);
    if (p.bias.present) end = std::min(end, p.bias.keys);
    if (p.causal) end = std::min(end, position + 1);
    if (p.window_right != kUnbounded) end = std::min(end, position + p.window_right + 1);
    if (p.window_left != kUnbounded) begin = std::max(begin, position - p.window_left);
    if (end <= begin) return {0, 0};
    return {begin, end};
}

// Returns the union over rows [i0, i1): from the first row's begin to the last row's end, because both bounds
// grow with i. If the exact keys of a row matter, call visible_keys for it.
inline KeyRange visible_keys_of_rows(const Problem& p, const BatchView& view, int64_t i0, int64_t i1) {
    i1 = std::min(i1, view.q_length);
    if (i0 >= i1) return {0, 0};
    int64_t begin = 0, end = view.kv_length;
    if (p.mask.present) end = std::min(end, p.mask.keys);
    if (p.bias.present) end = std::min(end, p.bias.keys);
    if (p.causal) end = std::min(end, i1 - 1 + view.offset + 1);
    if (p.window_right != kUnbounded) end = std::min(end, i1 - 1 + view.offset + p.window_right + 1);
    if (p.window_left != kUnbounded) begin = std::max(begin, i0 + view.offset - p.window_left);
    if (end <= begin) return {0, 0};
    return {begin, end};
}

// How many pairs of a query and a key one head of one batch entry computes: the sum of visible_keys over all
// rows, in closed form.
inline double visible_pairs(const Problem& p, const BatchView& view) {
    int64_t keys = view.kv_length;
    if (p.mask.present) keys = std::min(keys, p.mask.keys);
    if (p.bias.present) keys = std::min(keys, p.bias.keys);
    const int64_t rows = view.q_length;
    // Sum over the rows i of i + shift, held within [0, keys].
    const auto held_sum = [&](int64_t shift) {
        const int64_t rising = std::clamp<int64_t>(-shift, 0, rows);
        const int64_t full = std::clamp<int64_t>(keys - shift, rising, rows);
        const double first = double(rising + shift), last = double(full - 1 + shift);
        return (first + last) * 0.5 * double(full - rising) + double(rows - full) * double(keys);
    };
    double end = double(rows) * double(keys), begin = 0;
    if (p.causal || p.window_right != kUnbounded)
        end = held_sum(view.offset + 1 + (p.causal ? 0 : p.window_right));
    if (p.window_left != kUnbounded) begin = held_sum(view.offset - p.window_left);
    return end - begin;
}

}  // namespace fovea

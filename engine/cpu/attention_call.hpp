// One run of an attention plan as the kernels see it: it locates rows, keys and matrix elements in the
// buffers.
#pragma once

#include "cpu/cpu_plan.hpp"
#include "problem/backward.hpp"
#include "problem/problem.hpp"
#include "problem/visibility.hpp"

#include <cstddef>
#include <cstdint>

namespace fovea::cpu {

struct AttentionCall {
    const Problem& p;
    const CpuPlan& cut;
    const FoveaHostBuffer* bindings;  // FOVEA_BIND_COUNT of them

    // Element `index` of a binding; null where the problem does not have it, or has no byte of it and the
    // caller gave none: a mask over no keys has strides all the same, and to null nothing may be added.
    template <class T>
    T* at(FoveaBinding binding, int64_t index = 0) const {
        if (!(p.binding_mask >> binding & 1u)) return nullptr;
        T* data = static_cast<T*>(bindings[binding].data);
        return data ? data + index : nullptr;
    }
    // Returns the address of element `index` of a tensor of any type; the index must be the first of a block.
    const unsigned char* stored(FoveaBinding binding, FoveaDtype type, int64_t index) const {
        return at<const unsigned char>(binding, stored_bytes(type, index));
    }
    BatchView view(uint32_t b) const {
        return batch_view(p, at<const FoveaSequence>(FOVEA_BIND_SEQUENCES), b);
    }
};

// Query rows [begin, end) of all heads of one group in one batch entry. They are numbered with the heads
// fastest, so that neighbours see nearly the same keys.
struct QueryRows {
    uint32_t b, h_kv;
    BatchView view;
    int64_t begin, end;  // end is at most q_length; rows past it are empty, see `past`
    int64_t past;        // rows [end, past) belong to the task but are beyond q_length

    size_t count(const Problem& p) const { return size_t(end - begin) * p.group; }
    int64_t query(const Problem& p, size_t n) const { return begin + int64_t(n / p.group); }
    uint32_t head(const Problem& p, size_t n) const { return h_kv * p.group + uint32_t(n % p.group); }
};

// Walks over the rows of a task without dividing.
struct RowCursor {
    int64_t i;
    uint32_t h;

    RowCursor(const Problem& p, const QueryRows& rows, size_t n)
        : i(rows.query(p, n)), h(rows.head(p, n)), first_(rows.h_kv * p.group), end_(first_ + p.group) {}
    void next() {
        if (++h < end_) return;
        h = first_;
        ++i;
    }

  private:
    uint32_t first_, end_;
};

// First element of the row of q or o.
inline int64_t query_offset(const Problem& p, const FoveaStrides& s, const QueryRows& rows, int64_t i,
                            uint32_t h) {
    return rows.b * s.batch + h * s.head + ((p.packed_rows_q ? rows.view.q_start : 0) + i) * s.row;
}

// Where a matrix has its row of (b, h, i), key 0.
inline int64_t matrix_offset(const MatrixView& m, uint32_t b, uint32_t h, int64_t i) {
    return b * m.strides.batch + h * m.strides.head + i * m.strides.row;
}

// (b, h, i) in the results that are packed [B, Hq, Lq].
inline int64_t flat_row(const Problem& p, uint32_t b, uint32_t h, int64_t i) {
    return (int64_t(b) * p.heads_q + h) * p.len_q + i;
}

// A run of keys whose rows are `row` elements apart, starting at element `first`; count 0: masked by the
// block table.
struct KeyRun {
    int64_t first;
    int64_t count;
    bool inside;  // false: the page is outside the pool, and the keys are masked
};

// The longest run from key j on, ending before key `end`.
inline KeyRun key_run(const AttentionCall& call, const FoveaStrides& s, uint32_t b, uint32_t h_kv,
                      const BatchView& view, int64_t j, int64_t end) {
    const Problem& p = call.p;
    if (!p.page_size) return {b * s.batch + h_kv * s.head + (view.kv_start + j) * s.row, end - j, true};
    const int64_t in_page = j % p.page_size, count = std::min<int64_t>(end - j, p.page_size - in_page);
    const int32_t page =
        call.at<const int32_t>(FOVEA_BIND_BLOCK_TABLE)[b * p.block_table_pages + j / p.page_size];
    if (page < 0 || uint32_t(page) >= p.page_count) return {0, count, false};
    return {page * s.batch + h_kv * s.head + in_page * s.row, count, true};
}

// One run of a backward plan as its kernels see it.
struct BackwardCall {
    AttentionCall attention;
    const Backward& w;
    const BackwardCut& cut;
};

}  // namespace fovea::cpu

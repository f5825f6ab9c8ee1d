// Locates the elements of a query row in the buffers of a call, through strides, packed entries, pages and
// matrices. All plain loops and derivations share it.
#pragma once

#include "problem/philox.hpp"
#include "problem/problem.hpp"
#include "problem/visibility.hpp"

#include <cstdint>

namespace fovea::reference {

// Query i of head h in batch entry b.
struct RowPlace {
    uint32_t b, h, h_kv, bh;
    int64_t i;
    uint64_t flat;  // number of the row, see RowAccess::place
    BatchView view;
    KeyRange keys;  // the keys visible by lengths, causal and window
};

class RowAccess {
  public:
    // `bindings` is indexed by FoveaBinding, checked by the caller and only read where the problem says so.
    // Both are borrowed.
    RowAccess(const Problem& problem, const FoveaHostBuffer* bindings)
        : p(problem), buffers_(bindings), table_(input<FoveaSequence>(FOVEA_BIND_SEQUENCES)) {}

    // Row number `flat` counts (b, h, i) with i fastest.
    RowPlace place(uint64_t flat) const {
        RowPlace row{};
        row.flat = flat;
        row.i = int64_t(flat % uint64_t(p.len_q));
        row.bh = uint32_t(flat / uint64_t(p.len_q));
        row.b = row.bh / p.heads_q;
        row.h = row.bh % p.heads_q;
        row.h_kv = row.h / p.group;
        row.view = batch_view(p, table_, row.b);
        row.keys = visible_keys(p, row.view, row.i);
        return row;
    }

    template <class T>
    const T* input(FoveaBinding binding) const {
        return (p.binding_mask >> binding & 1u) ? static_cast<const T*>(buffers_[binding].data) : nullptr;
    }
    void* data(FoveaBinding binding) const { return buffers_[binding].data; }
    template <class T>
    T* output(FoveaBinding binding) const {
        return static_cast<T*>(buffers_[binding].data);
    }

    // First element of the row of q or o.
    int64_t query_row(const FoveaStrides& s, const RowPlace& row) const {
        const int64_t first = p.packed_rows_q ? row.view.q_start : 0;
        return row.b * s.batch + row.h * s.head + (first + row.i) * s.row;
    }

    // First element of key row j of k or v; -1 where the block table leads outside the pool.
    int64_t key_row(const FoveaStrides& s, const RowPlace& row, int64_t j) const {
        if (!p.page_size) return row.b * s.batch + row.h_kv * s.head + (row.view.kv_start + j) * s.row;
        const auto* pages = input<int32_t>(FOVEA_BIND_BLOCK_TABLE);
        const int32_t page = pages[row.b * p.block_table_pages + j / p.page_size];
        if (page < 0 || uint32_t(page) >= p.page_count) return -1;
        return page * s.batch + row.h_kv * s.head + j % p.page_size * s.row;
    }

    int64_t matrix_index(const MatrixView& m, const RowPlace& row, int64_t j) const {
        return row.b * m.strides.batch + row.h * m.strides.head + row.i * m.strides.row + j;
    }

    // j must be less than the mask's number of keys.
    bool mask_shows(const RowPlace& row, int64_t j) const {
        return !p.mask.present || input<uint8_t>(FOVEA_BIND_MASK)[matrix_index(p.mask, row, j)] != 0;
    }

    float alibi_slope(const RowPlace& row) const {
        return p.alibi ? input<float>(FOVEA_BIND_ALIBI)[row.h] : 0.0f;
    }
    float sink(const RowPlace& row) const { return input<float>(FOVEA_BIND_SINKS)[row.h]; }

    // True if dropout keeps the weight of key j. The problem must have dropout.
    bool is_kept(const RowPlace& row, int64_t j) const {
        if (!p.dropout_mask.present) return dropout_keeps(p, row.bh, uint32_t(row.i), uint32_t(j));
        return j < p.dropout_mask.keys &&
               input<uint8_t>(FOVEA_BIND_DROPOUT_MASK)[matrix_index(p.dropout_mask, row, j)] != 0;
    }

  protected:
    const Problem& p;

  private:
    const FoveaHostBuffer* buffers_;
    const FoveaSequence* table_;
};

}  // namespace fovea::reference

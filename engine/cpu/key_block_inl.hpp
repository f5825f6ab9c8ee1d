// Blocks of keys and values, read in place where that is as good as a copy.
#if defined(FOVEA_CPU_KEY_BLOCK_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_KEY_BLOCK_INL_HPP
#undef FOVEA_CPU_KEY_BLOCK_INL_HPP
#else
#define FOVEA_CPU_KEY_BLOCK_INL_HPP
#endif

#include "cpu/attention_call.hpp"
#include "cpu/compressed_row_inl.hpp"
#include "cpu/panel_inl.hpp"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// A block of keys of one head, ready for the tiles.
struct KeyBlock {
    int64_t begin, end;
    const float* k;
    size_t k_stride;
    const float* packed_k;  // the first packed_tiles * kKeyRows keys once more, packed; null: none are
    size_t packed_tiles;
    Columns v;
    const uint8_t* hidden_keys;  // by key from `begin` on; null: the block table hides none
    int finite;                  // v is finite: 1 yes, 0 no, -1 not checked yet

    size_t keys() const { return size_t(end - begin); }
};

// Room for what cannot be read in place.
struct KeyScratch {
    float* k;
    float* v;  // capacity + 1 rows
    uint8_t* hidden;
    size_t capacity;
    float* packed_k = nullptr;   // capacity rows and kLanes elements
    float* value_row = nullptr;  // for a row of a compressed type
    float* pair_rows = nullptr;  // with pairs: two values as words, and one of zeros
};

// Copying pays off if several panels read the block: the elements of a tile become contiguous, and no two
// rows compete for the same cache set.
constexpr size_t kPanelsWorthCopying = 3;
// A packed tile of keys saves 5% of its products and costs as much as those of half a panel.
constexpr size_t kPanelsWorthPacking = 12;

// `copy(n, row)`: the key that begins at number n of K as a row of `depth` floats, or words of pairs.
template <class Copy>
const uint8_t* copy_keys(const AttentionCall& call, const QueryRows& rows, KeyBlock& block, size_t depth,
                         const KeyScratch& to, const Copy& copy) {
    const Problem& p = call.p;
    bool hidden = false;
    for (int64_t j = block.begin; j < block.end;) {
        const KeyRun run = key_run(call, p.k, rows.b, rows.h_kv, rows.view, j, block.end);
        float* row = to.k + size_t(j - block.begin) * depth;
        for (int64_t n = 0; n < run.count; ++n, row += depth) {
            to.hidden[j - block.begin + n] = run.inside ? 0 : 1;
            if (run.inside)
                copy(run.first + n * p.k.row, row);
            else
                memset(row, 0, depth * sizeof(float));
        }
        hidden |= !run.inside;
        j += run.count;
    }
    block.k = to.k;
    block.k_stride = depth;
    return hidden ? to.hidden : nullptr;
}

// `pack(n, first, count)`: the values that begin at number n of V as rows [first, first + count) of to.v.
template <class Pack>
void copy_values(const AttentionCall& call, const QueryRows& rows, KeyBlock& block, const KeyScratch& to,
                 const Pack& pack) {
    const Problem& p = call.p;
    for (int64_t j = block.begin; j < block.end;) {
        const KeyRun run = key_run(call, p.v, rows.b, rows.h_kv, rows.view, j, block.end);
        // A masked key's row is multiplied by zeros, so any finite values will do.
        const size_t first = size_t(j - block.begin), count = size_t(run.count);
        if (run.inside)
            pack(run.first, first, count);
        else
            clear_columns(first, count, p.dim_v, to.capacity + 1, to.v);
        j += run.count;
    }
    block.v = {to.v, 0, to.capacity + 1};
}

// Packs the block's keys where enough panels read the whole block.
inline void pack_block(KeyBlock& block, size_t panels, size_t depth, const KeyScratch& to) {
    if constexpr (kKeyRows != 0) {
        if (!to.packed_k || panels < kPanelsWorthPacking || block.keys() < kKeyRows) return;
        block.packed_k = to.packed_k;
        block.packed_tiles = block.keys() / kKeyRows;
        pack_keys(block.k, block.k_stride, block.packed_tiles, depth, to.packed_k);
    }
}

// Keys [begin, end), at most scratch.capacity of them, for `panels` panels to read.
inline KeyBlock fetch_keys(const AttentionCall& call, const QueryRows& rows, int64_t begin, int64_t end,
                           size_t panels, bool with_values, const KeyScratch& scratch) {
    const Problem& p = call.p;
    KeyBlock block{begin, end, nullptr, 0, nullptr, 0, {nullptr, 0, 0}, nullptr, -1};
    const bool few = panels < kPanelsWorthCopying;
    const auto offset = [&](const FoveaStrides& s) {
        return rows.b * s.batch + rows.h_kv * s.head + (rows.view.kv_start + begin) * s.row;
    };
    if (p.k_type == FOVEA_F32 && !p.page_size && (few || p.k.row == p.dim_qk)) {
        block.k = call.at<const float>(FOVEA_BIND_K, offset(p.k));
        block.k_stride = size_t(p.k.row);
    } else if (is_compressed(p.k_type)) {
        block.hidden_keys =
            copy_keys(call, rows, block, p.dim_qk, scratch, [&](int64_t n, float* row) HWY_ATTR {
                widen_row(p.k_type, call.stored(FOVEA_BIND_K, p.k_type, n), p.dim_qk, row);
            });
    } else {
        block.hidden_keys = with_type(p.k_type, [&](auto k) {
            return copy_keys(call, rows, block, p.dim_qk, scratch, [&](int64_t n, float* row) HWY_ATTR {
                copy_row(call.at<const decltype(k)>(FOVEA_BIND_K, n), p.dim_qk, row);
            });
        });
    }
    if (!with_values) return block;
    if (p.v_type == FOVEA_F32 && !p.page_size && few && p.v.row > 0) {
        block.v = {call.at<const float>(FOVEA_BIND_V, offset(p.v)), size_t(p.v.row), 0};
    } else if (is_compressed(p.v_type)) {
        copy_values(call, rows, block, scratch, [&](int64_t n, size_t first, size_t count) HWY_ATTR {
            for (size_t row = first; row < first + count; ++row, n += p.v.row) {
                widen_row(p.v_type, call.stored(FOVEA_BIND_V, p.v_type, n), p.dim_v, scratch.value_row);
                pack_columns(scratch.value_row, 0, row, 1, p.dim_v, scratch.capacity + 1, scratch.v);
            }
        });
    } else {
        with_type(p.v_type, [&](auto v) {
            copy_values(call, rows, block, scratch, [&](int64_t n, size_t first, size_t count) HWY_ATTR {
                pack_columns(call.at<const decltype(v)>(FOVEA_BIND_V, n), size_t(p.v.row), first, count,
                             p.dim_v, scratch.capacity + 1, scratch.v);
            });
        });
    }
    return block;
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

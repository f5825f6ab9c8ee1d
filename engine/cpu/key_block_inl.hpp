// Blocks of keys and values, read in place where that is as good as a copy.
#if defined(FOVEA_CPU_KEY_BLOCK_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_KEY_BLOCK_INL_HPP
#undef FOVEA_CPU_KEY_BLOCK_INL_HPP
#else
#define FOVEA_CPU_KEY_BLOCK_INL_HPP
#endif

#include "cpu/attention_call.hpp"
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
    int finite;                  // of v: 1 yes, 0 no, -1 not looked at yet

    size_t keys() const { return size_t(end - begin); }
};

// Room for what cannot be read in place.
struct KeyScratch {
    float* k;
    float* v;  // capacity + 1 rows
    uint8_t* hidden;
    size_t capacity;
    float* packed_k = nullptr;  // capacity rows and kLanes numbers
};

// Copying pays where several panels read the block: the tiles then find their numbers one behind the other,
// and no two rows fight for the same place in the cache.
constexpr size_t kPanelsWorthCopying = 3;
// A packed tile of keys saves 5% of its products and costs as much as those of half a panel.
constexpr size_t kPanelsWorthPacking = 12;

template <class T>
const uint8_t* copy_keys(const AttentionCall& call, const QueryRows& rows, KeyBlock& block,
                         const KeyScratch& to) {
    const Problem& p = call.p;
    bool hidden = false;
    for (int64_t j = block.begin; j < block.end;) {
        const KeyRun run = key_run(call, p.k, rows.b, rows.h_kv, rows.view, j, block.end);
        float* row = to.k + size_t(j - block.begin) * p.dim_qk;
        for (int64_t n = 0; n < run.count; ++n, row += p.dim_qk) {
            to.hidden[j - block.begin + n] = run.inside ? 0 : 1;
            if (run.inside)
                copy_row(call.at<const T>(FOVEA_BIND_K, run.first + n * p.k.row), p.dim_qk, row);
            else
                memset(row, 0, p.dim_qk * sizeof(float));
        }
        hidden |= !run.inside;
        j += run.count;
    }
    block.k = to.k;
    block.k_stride = p.dim_qk;
    return hidden ? to.hidden : nullptr;
}

template <class T>
void copy_values(const AttentionCall& call, const QueryRows& rows, KeyBlock& block, const KeyScratch& to) {
    const Problem& p = call.p;
    for (int64_t j = block.begin; j < block.end;) {
        const KeyRun run = key_run(call, p.v, rows.b, rows.h_kv, rows.view, j, block.end);
        // A hidden key's row is multiplied by zeros: any finite numbers will do.
        const T* from = run.inside ? call.at<const T>(FOVEA_BIND_V, run.first) : nullptr;
        const size_t first = size_t(j - block.begin), count = size_t(run.count);
        if (from)
            pack_columns(from, size_t(p.v.row), first, count, p.dim_v, to.capacity + 1, to.v);
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
    } else {
        block.hidden_keys =
            with_type(p.k_type, [&](auto k) { return copy_keys<decltype(k)>(call, rows, block, scratch); });
    }
    if (!with_values) return block;
    if (p.v_type == FOVEA_F32 && !p.page_size && few && p.v.row > 0) {
        block.v = {call.at<const float>(FOVEA_BIND_V, offset(p.v)), size_t(p.v.row), 0};
    } else {
        with_type(p.v_type, [&](auto v) { copy_values<decltype(v)>(call, rows, block, scratch); });
    }
    return block;
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

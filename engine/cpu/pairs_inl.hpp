// Pairs of bfloat16, two to a word, for the instruction that multiplies both (AVX512-BF16): what a panel, a
// block of keys and its values are with Products::bf16. A word is kept where a float is kept else, so that
// the same tiles go over them.
//
// The instruction adds the product of the upper halves, then that of the lower ones, each a fused
// multiply-add. Queries and keys are in words as in memory: two elements of a head, always the same two. Of
// weights and values the earlier key has the upper half, so that a sum is one chain in the order of keys
// wherever a block's pairs begin; a half that is zero leaves it as it is.
#if defined(FOVEA_CPU_PAIRS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_PAIRS_INL_HPP
#undef FOVEA_CPU_PAIRS_INL_HPP
#else
#define FOVEA_CPU_PAIRS_INL_HPP
#endif

#include "cpu/flash_layout.hpp"
#include "cpu/key_block_inl.hpp"
#include "cpu/segments_inl.hpp"
#include "cpu/softmax_inl.hpp"

#include <algorithm>
#include <cstring>

#if FOVEA_HAS_PAIRS

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Finite values stay finite: the largest ones would round to infinity.
HWY_INLINE V within_bfloat(V v) {
    const F f;
    const V most = hn::Set(f, 0x1.fep127f), size = hn::Abs(v);
    const auto past = hn::And(hn::Gt(size, most), hn::IsFinite(v));
    return hn::IfThenElse(past, hn::CopySign(most, v), v);
}

// Rounds `count` values to bfloat16; an odd count is padded with a zero.
template <class T>
void round_row(const T* from, size_t count, float* words) {
    auto* to = reinterpret_cast<unsigned char*>(words);
    size_t e = 0;
    if constexpr (std::is_same_v<T, Bfloat16>) {
        memcpy(to, from, count * sizeof(T));
        e = count;
    } else {
        for (; e + kLanes <= count; e += kLanes)
            store_row(within_bfloat(load_row(from + e)), reinterpret_cast<Bfloat16*>(to + e * 2));
        HWY_ALIGN float rest[kLanes] = {};
        for (size_t n = 0; e + n < count; ++n) rest[n] = load_one(from + e + n);
        HWY_ALIGN uint16_t rounded[kLanes];
        store_row(within_bfloat(hn::Load(F(), rest)), reinterpret_cast<Bfloat16*>(rounded));
        memcpy(to + e * 2, rounded, (count - e) * 2);
    }
    if (count % 2) memset(to + count * 2, 0, 2);
}

// Row `n` of K or V, of any type; `wide` has room for it as float32.
inline void round_stored_row(const AttentionCall& call, FoveaBinding binding, FoveaDtype type, int64_t n,
                             size_t count, float* wide, float* words) {
    if (is_compressed(type)) {
        widen_row(type, call.stored(binding, type, n), count, wide);
        round_row(wide, count, words);
    } else {
        with_type(type, [&](auto x) { round_row(call.at<const decltype(x)>(binding, n), count, words); });
    }
}

// pack_panel for rows as words; `room` holds a panel of `room_words` words a row.
template <class T>
void pack_panel_of_pairs(const T* const* rows, size_t depth, size_t vectors, float* room, size_t room_words,
                         float* panel) {
    const float* from[kPanel];
    const size_t all = words_of(depth);
    for (size_t first = 0; first < all; first += room_words) {
        const size_t words = HWY_MIN(room_words, all - first);
        for (size_t lane = 0; lane < vectors * kLanes; ++lane) {
            float* row = room + lane * words;
            round_row(rows[lane] + 2 * first, HWY_MIN(2 * words, depth - 2 * first), row);
            from[lane] = row;
        }
        pack_panel(from, words, vectors, panel + first * kPanel);
    }
}

// Values two by two as rows [first, first + pairs) in the order of Columns: row n of `upper` and of `lower`,
// which are `stride` bytes apart.
inline void pack_pairs_of_rows(const void* upper, const void* lower, int64_t stride, size_t first,
                               size_t pairs, size_t columns, size_t capacity, float* to) {
    const auto at = [&](const void* half, size_t n, size_t c) {
        return static_cast<const unsigned char*>(half) + int64_t(n) * stride + c * 2;
    };
    pack_columns_from(
        [&](size_t n, size_t c) HWY_ATTR {
            const U u;
            const hn::Rebind<uint16_t, F> h;
            const auto* a = reinterpret_cast<const uint16_t*>(at(upper, n, c));
            const auto* b = reinterpret_cast<const uint16_t*>(at(lower, n, c));
            const VU high = hn::PromoteTo(u, hn::LoadU(h, a)), low = hn::PromoteTo(u, hn::LoadU(h, b));
            return hn::BitCast(F(), hn::Or(hn::ShiftLeft<16>(high), low));
        },
        [&](size_t n, size_t c, float* word) HWY_ATTR {
            memcpy(word, at(lower, n, c), 2);
            memcpy(reinterpret_cast<unsigned char*>(word) + 2, at(upper, n, c), 2);
        },
        first, pairs, columns, capacity, to);
}

// Returns keys that already have the form of words in memory: bfloat16, an even number of elements per row,
// contiguous rows. Otherwise null.
inline const float* keys_in_place(const AttentionCall& call, const QueryRows& rows, int64_t begin) {
    const Problem& p = call.p;
    if (p.k_type != FOVEA_BF16 || p.page_size || p.k.row != p.dim_qk || p.dim_qk % 2) return nullptr;
    const auto* first = call.at<const Bfloat16>(
        FOVEA_BIND_K, rows.b * p.k.batch + rows.h_kv * p.k.head + (rows.view.kv_start + begin) * p.k.row);
    return reinterpret_cast<uintptr_t>(first) % sizeof(float) ? nullptr
                                                              : reinterpret_cast<const float*>(first);
}

// fetch_keys for pairs. Values are always copied, for those of two keys meet in a word.
inline KeyBlock fetch_key_pairs(const AttentionCall& call, const QueryRows& rows, int64_t begin, int64_t end,
                                bool with_values, const KeyScratch& scratch) {
    const Problem& p = call.p;
    KeyBlock block{begin, end, nullptr, 0, nullptr, 0, {nullptr, 0, 0}, nullptr, -1};
    const auto copy = [&](int64_t n, float* row) {
        round_stored_row(call, FOVEA_BIND_K, p.k_type, n, p.dim_qk, scratch.value_row, row);
    };
    block.k = keys_in_place(call, rows, begin);
    block.k_stride = words_of(p.dim_qk);
    if (!block.k) block.hidden_keys = copy_keys(call, rows, block, block.k_stride, scratch, copy);
    if (!with_values) return block;
    const size_t capacity = words_of(scratch.capacity) + 1, row_words = words_of(p.dim_v);
    float* const zeros = scratch.pair_rows + 2 * row_words;
    memset(zeros, 0, row_words * sizeof(float));
    const void* half[2];
    size_t keys = 0;
    for (int64_t j = begin; j < end;) {
        const KeyRun run = key_run(call, p.v, rows.b, rows.h_kv, rows.view, j, end);
        for (int64_t n = 0; n < run.count; ++n, ++keys) {
            const void*& from = half[keys % 2];
            const int64_t first = run.first + n * p.v.row;
            if (run.inside && p.v_type == FOVEA_BF16 && keys % 2 == 0 && n + 1 < run.count) {
                const size_t pairs = size_t(run.count - n) / 2;
                pack_pairs_of_rows(call.at<const Bfloat16>(FOVEA_BIND_V, first),
                                   call.at<const Bfloat16>(FOVEA_BIND_V, first + p.v.row), 4 * p.v.row,
                                   keys / 2, pairs, p.dim_v, capacity, scratch.v);
                n += int64_t(2 * pairs) - 1, keys += 2 * pairs - 1;
                continue;
            }
            if (!run.inside) {
                from = zeros;  // a masked key: any finite values will do
            } else if (p.v_type == FOVEA_BF16) {
                from = call.at<const Bfloat16>(FOVEA_BIND_V, first);
            } else {
                float* row = scratch.pair_rows + keys % 2 * row_words;
                round_stored_row(call, FOVEA_BIND_V, p.v_type, first, p.dim_v, scratch.value_row, row);
                from = row;
            }
            if (keys % 2) pack_pairs_of_rows(half[0], half[1], 0, keys / 2, 1, p.dim_v, capacity, scratch.v);
        }
        j += run.count;
    }
    if (keys % 2) {
        pack_pairs_of_rows(half[0], zeros, 0, keys / 2, 1, p.dim_v, capacity, scratch.v);
    }
    block.v = {scratch.v, 0, capacity};
    return block;
}

// True if every number of these words is finite.
inline bool all_pairs_finite(const Columns& w, size_t rows, size_t columns) {
    const hn::Repartition<uint16_t, F> h;
    const auto exponent = hn::Set(h, uint16_t(0x7f80));
    for (size_t c = 0; c < columns;) {
        const size_t width = tile_width(columns - c), count = rows * width;
        const float* from = w.data + c * w.capacity;
        size_t n = 0;
        for (; n + kLanes <= count; n += kLanes) {
            const auto bits = hn::And(hn::BitCast(h, hn::LoadU(F(), from + n)), exponent);
            if (!hn::AllFalse(h, hn::Eq(bits, exponent))) return false;
        }
        for (; n < count; ++n) {
            uint32_t word;
            memcpy(&word, from + n, sizeof word);
            if ((word & 0x7f80u) == 0x7f80u || (word >> 16 & 0x7f80u) == 0x7f80u) return false;
        }
        c += width;
    }
    return true;
}

// The keys of a block that some vectors of a panel see, as rows of it.
struct PairRange {
    size_t begin, end;
};

// Two weights as a word. Half of the last place is added and the rest cut off; what is not a number may
// become one, for the sum of such a row is none either.
HWY_INLINE V pair_of(V first, V second) {
    const U u;
    const hn::Repartition<uint16_t, F> h;
    const VU half = hn::Set(u, 0x8000u);
    const VU upper = hn::Add(hn::BitCast(u, first), half), lower = hn::Add(hn::BitCast(u, second), half);
    return hn::BitCast(F(), hn::OddEven(hn::BitCast(h, upper), hn::BitCast(h, hn::ShiftRight<16>(lower))));
}

// exponentials() of a whole panel and an even number of keys, and what they give as pairs: pair n in the row
// of key n.
template <MaxIn kMax>
HWY_NOINLINE void exponentials_as_pairs_of(const float* s, size_t keys, float unit, const float* max,
                                           float* sum, Ahead& ahead_of_all, float* pairs) {
    const F f;
    const V scale = hn::Set(f, unit);
    V minus_max[kVectors], total[kVectors];
    FOVEA_UNROLL for (size_t v = 0; v < kVectors; ++v) {
        minus_max[v] = hn::Neg(hn::Load(f, max + v * kLanes));
        total[v] = hn::Load(f, sum + v * kLanes);
    }
    Ahead ahead = ahead_of_all;
    for (size_t j = 0; j < keys; j += 2, s += 2 * kPanel, pairs += kPanel) {
        ahead.step();
        ahead.step();
        V p[2][kVectors];
        FOVEA_UNROLL for (size_t key = 0; key < 2; ++key)
            weights_of<kVectors, kMax>(s + key * kPanel, scale, minus_max, p[key], total);
        FOVEA_UNROLL for (size_t v = 0; v < kVectors; ++v)
            hn::Store(pair_of(p[0][v], p[1][v]), f, pairs + v * kLanes);
    }
    FOVEA_UNROLL for (size_t v = 0; v < kVectors; ++v) hn::Store(total[v], f, sum + v * kLanes);
    ahead_of_all = ahead;
}
inline void exponentials_as_pairs(MaxIn in, const float* s, size_t keys, float unit, const float* max,
                                  float* sum, Ahead& ahead, float* pairs) {
    if (in == MaxIn::exponents)
        exponentials_as_pairs_of<MaxIn::exponents>(s, keys, unit, max, sum, ahead, pairs);
    else
        exponentials_as_pairs_of<MaxIn::logits>(s, keys, unit, max, sum, ahead, pairs);
}

// Weights of one vector's keys as pairs, pair n in the row of key n: the words of `pairs`, with zeros where
// the vector does not see a key.
inline void pack_weight_pairs(const PairRange& seen, const PairRange& pairs, float* p) {
    const F f;
    const auto weight = [&](size_t j) HWY_ATTR {
        return j >= seen.begin && j < seen.end ? hn::Load(f, p + j * kPanel) : hn::Zero(f);
    };
    for (size_t n = pairs.begin; n < pairs.end; ++n)
        hn::Store(pair_of(weight(2 * n), weight(2 * n + 1)), f, p + n * kPanel);
}

// sum_block of pairs for values that may not be finite: a weight of 0 adds nothing.
inline void sum_pairs_of_seen(size_t vectors, const Columns& w, const PairRange& pairs, size_t columns,
                              const float* p, float* o, const float* factor) {
    const F f;
    const hn::Repartition<uint16_t, F> h;
    for (size_t c = 0; c < columns;) {
        const size_t width = tile_width(columns - c);
        const float* from = w.data + c * w.capacity;
        for (size_t n = 0; n < width * vectors; ++n) {
            const size_t r = n / vectors, at = n % vectors * kLanes;
            float* to = o + (c + r) * kPanel + at;
            V sum = hn::Mul(hn::Load(f, factor + at), hn::Load(f, to));
            for (size_t j = pairs.begin; j < pairs.end; ++j) {
                const V weight = hn::Load(f, p + j * kPanel + at);
                const auto seen = hn::Ne(hn::BitCast(h, weight), hn::Zero(h));
                const auto value = hn::IfThenElseZero(seen, hn::BitCast(h, hn::Set(f, from[j * width + r])));
                sum = add_products_of_pairs(hn::BitCast(f, value), weight, sum);
            }
            hn::Store(sum, f, to);
        }
        c += width;
    }
}

// Pairs that only one vector has cost a separate call of the tiles; fewer than this are added as zeros to the
// common ones.
constexpr size_t kPairsWorthATile = 8;

// o = o * factor + weights times values, for the vectors of `segments`; `weights` are the block's, of whose
// keys the first `paired` are pairs. The others become pairs, and factors ones. `hidden`: some weights are of
// hidden keys, and zero.
inline void add_value_pairs(KeyBlock& block, const Lanes& lanes, const Segments& segments, bool hidden,
                            size_t paired, size_t columns, float* weights, float* o, float* factor) {
    const size_t first = segments.first_vector, last = segments.last_vector;
    PairRange seen[kVectors], pairs[kVectors], all{block.keys(), 0}, common{0, block.keys()};
    for (size_t v = first; v < last; ++v) {
        const int64_t begin = std::clamp(int64_t{lanes.begin[v * kLanes]}, block.begin, block.end),
                      end = std::clamp(int64_t{lanes.end[v * kLanes + kLanes - 1]}, begin, block.end);
        seen[v] = {size_t(begin - block.begin), size_t(end - block.begin)};
        pairs[v] = {seen[v].begin / 2, words_of(seen[v].end)};
        all = {HWY_MIN(all.begin, pairs[v].begin), HWY_MAX(all.end, pairs[v].end)};
        common = {HWY_MAX(common.begin, pairs[v].begin), HWY_MIN(common.end, pairs[v].end)};
    }
    if (common.begin - all.begin < kPairsWorthATile) common.begin = all.begin;
    if (all.end - common.end < kPairsWorthATile) common.end = all.end;
    for (size_t v = first; v < last; ++v) {
        PairRange& own = pairs[v];
        own = {HWY_MIN(own.begin, common.begin), HWY_MAX(own.end, common.end)};
        hidden |= 2 * own.begin < seen[v].begin || HWY_MIN(2 * own.end, block.keys()) > seen[v].end;
        pack_weight_pairs(seen[v], {HWY_MAX(own.begin, paired / 2), own.end}, weights + v * kLanes);
    }
    if (hidden && block.finite < 0) block.finite = all_pairs_finite(block.v, words_of(block.keys()), columns);
    const auto add = [&](size_t v, size_t vectors, size_t begin, size_t end) {
        if (begin >= end) return;
        const size_t at = v * kLanes;
        if (hidden && !block.finite)
            sum_pairs_of_seen(vectors, block.v, {begin, end}, columns, weights + at, o + at, factor + at);
        else
            sum_block<Products::bf16>(vectors, block.v, begin, end - begin, columns,
                                      weights + begin * kPanel + at, o + at, factor + at);
        std::fill(factor + at, factor + at + vectors * kLanes, 1.0f);
    };
    for (size_t v = first; v < last; ++v) add(v, 1, pairs[v].begin, HWY_MIN(common.begin, pairs[v].end));
    add(first, last - first, common.begin, common.end);
    for (size_t v = first; v < last; ++v) add(v, 1, HWY_MAX(common.begin, common.end), pairs[v].end);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_HAS_PAIRS

#endif  // per-target include guard

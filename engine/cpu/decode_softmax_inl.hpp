// Softmax of a tile of rows that is stored key by key: each key has R values, one for each row, so that every
// lane has a fixed row.
#if defined(FOVEA_CPU_DECODE_SOFTMAX_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_DECODE_SOFTMAX_INL_HPP
#undef FOVEA_CPU_DECODE_SOFTMAX_INL_HPP
#else
#define FOVEA_CPU_DECODE_SOFTMAX_INL_HPP
#endif

#include "cpu/logits_inl.hpp"
#include "cpu/softmax_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Lane n is row n % R; `rows` is aligned to R floats.
template <size_t R>
HWY_INLINE V spread_rows(const float* rows) {
    const F f;
    if constexpr (R == 1) return hn::Set(f, *rows);
#if HWY_TARGET != HWY_SCALAR
    if constexpr (R == 4) return hn::LoadDup128(f, rows);
    if constexpr (R == 2) return hn::OddEven(hn::Set(f, rows[1]), hn::Set(f, rows[0]));
#endif
}

// rows[r] = fold of rows[r] and all lanes of row r.
template <size_t R, class Fold>
HWY_INLINE void fold_rows(V v, const Fold& fold, float* rows) {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, F(), lanes);
    FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) rows[n % R] = fold(rows[n % R], lanes[n]);
}

// The largest number of each row of a tile; lanes past the last key become kHidden.
template <size_t R>
HWY_INLINE void largest_of_tile(float* s, size_t keys, float* largest) {
    const F f;
    const size_t count = keys * R, end = (count + kLanes - 1) / kLanes * kLanes;
    for (size_t n = count; n < end; ++n) s[n] = kHidden;
    constexpr size_t kChains = 4;  // one would wait for each step
    V most[kChains];
    FOVEA_UNROLL for (V& m : most) m = hn::Set(f, kHidden);
    size_t n = 0;
    for (; n + kChains * kLanes <= end; n += kChains * kLanes) {
        FOVEA_UNROLL for (size_t c = 0; c < kChains; ++c) most[c] =
            larger(most[c], hn::Load(f, s + n + c * kLanes));
    }
    for (; n < end; n += kLanes) most[0] = larger(most[0], hn::Load(f, s + n));
    FOVEA_UNROLL for (size_t r = 0; r < R; ++r) largest[r] = kHidden;
    fold_rows<R>(
        larger(larger(most[0], most[1]), larger(most[2], most[3])),
        [](float a, float b) { return a > b ? a : b; }, largest);
}

// s = 2^(s * unit - max[row]); sum[row] grows by it.
template <size_t R>
HWY_INLINE void exponentials_of_tile(float* s, size_t keys, float unit, const float* max, float* sum) {
    const F f;
    const V largest = spread_rows<R>(max), scale = unit_of(largest, unit), minus_max = hn::Neg(largest);
    V total = hn::Zero(f);
    for (const float* end = s + keys * R; s < end; s += kLanes) {
        const V weight = exp2(mul_add(hn::Load(f, s), scale, minus_max));
        total = hn::Add(total, weight);
        hn::Store(weight, f, s);
    }
    fold_rows<R>(
        total, [](float a, float b) { return a + b; }, sum);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

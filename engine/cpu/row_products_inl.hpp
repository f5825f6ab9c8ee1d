// Products of a few query rows with many keys, and sums of values that a few rows weight: every row of K and
// V is loaded once and stays in registers for all of them. Lanes lie along a row's elements.
#if defined(FOVEA_CPU_ROW_PRODUCTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#undef FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#else
#define FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#endif

#include "cpu/simd_inl.hpp"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The first n < kLanes elements, then zeros.
template <class T>
HWY_INLINE V load_part(const T* from, size_t n) {
    HWY_ALIGN float part[kLanes] = {};
    for (size_t e = 0; e < n; ++e) part[e] = load_one(from + e);
    return hn::Load(F(), part);
}

#if HWY_TARGET != HWY_SCALAR
// Lane n of each block of four is the sum of that block of the n-th vector.
HWY_INLINE V block_sums(V a, V b, V c, V d) {
    const F f;
    const V ab = hn::Add(hn::InterleaveLower(f, a, b), hn::InterleaveUpper(f, a, b));
    const V cd = hn::Add(hn::InterleaveLower(f, c, d), hn::InterleaveUpper(f, c, d));
    return hn::Add(lower_pairs(ab, cd), upper_pairs(ab, cd));
}
#endif

// Lane n is the sum of the lanes of v[n].
HWY_INLINE V sum_each(const V (&v)[kLanes]) {
#if HWY_TARGET == HWY_SCALAR
    return v[0];
#elif HWY_TARGET == HWY_AVX3
    const F f;
    const V a = block_sums(v[0], v[1], v[2], v[3]), b = block_sums(v[4], v[5], v[6], v[7]);
    const V c = block_sums(v[8], v[9], v[10], v[11]), d = block_sums(v[12], v[13], v[14], v[15]);
    const V ac = hn::Add(hn::ConcatLowerLower(f, c, a), hn::ConcatUpperUpper(f, c, a));
    const V bd = hn::Add(hn::ConcatLowerLower(f, d, b), hn::ConcatUpperUpper(f, d, b));
    return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(bd), ac),
                   hn::OddEvenBlocks(bd, hn::SwapAdjacentBlocks(ac)));
#elif HWY_TARGET == HWY_AVX2
    const F f;
    const V a = block_sums(v[0], v[1], v[2], v[3]), b = block_sums(v[4], v[5], v[6], v[7]);
    return hn::Add(hn::ConcatLowerLower(f, b, a), hn::ConcatUpperUpper(f, b, a));
#else
    return block_sums(v[0], v[1], v[2], v[3]);
#endif
}

// Query rows that share a load of K or V.
constexpr size_t kRowTile = kLanes < 4 ? 1 : 4;
// Vectors of V that one pass over a run of rows sums.
constexpr size_t kColumnTile = kLanes == 16 ? 4 : 2;
// Rows of V that stay in the first cache between the passes.
constexpr size_t kValueRun = 16;

// s[j * kPanel + r] = keys[j] * q[r] for kLanes / R keys (fewer at the end) and R rows of q.
template <size_t R, class T>
HWY_INLINE void dot_rows_tile(const T* const* keys, size_t count, const float* q, size_t q_stride,
                              size_t depth, float* s) {
    constexpr size_t kKeys = kLanes / R;
    const F f;
    const T* k[kKeys];
    FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) k[j] = keys[j < count ? j : count - 1];
    V sum[kLanes];
    FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) sum[n] = hn::Zero(f);
    size_t e = 0;
    for (; e + kLanes <= depth; e += kLanes) {
        V b[R];
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) b[r] = hn::Load(f, q + r * q_stride + e);
        FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) {
            const V a = load_row(k[j] + e);
            FOVEA_UNROLL for (size_t r = 0; r < R; ++r) sum[j * R + r] = mul_add(a, b[r], sum[j * R + r]);
        }
    }
    if (e < depth) {
        FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) {
            const V a = load_part(k[j] + e, depth - e);
            FOVEA_UNROLL for (size_t r = 0; r < R; ++r) sum[j * R + r] =
                mul_add(a, hn::Load(f, q + r * q_stride + e), sum[j * R + r]);
        }
    }
    HWY_ALIGN float sums[kLanes];
    hn::Store(sum_each(sum), f, sums);
    FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) {
        if (j < count) memcpy(s + j * kPanel, sums + j * R, R * sizeof(float));
    }
}

template <size_t R, class T>
HWY_NOINLINE void dot_rows_of(const T* const* keys, size_t count, const float* q, size_t q_stride,
                              size_t depth, float* s) {
    for (size_t j = 0; j < count; j += kLanes / R)
        dot_rows_tile<R>(keys + j, HWY_MIN(kLanes / R, count - j), q, q_stride, depth, s + j * kPanel);
}

// s[j * kPanel + r] = keys[j] * q[r] for all `count` keys and `rows` rows; q is padded with zeros to whole
// vectors.
template <class T>
void dot_rows(const T* const* keys, size_t count, const float* q, size_t q_stride, size_t rows, size_t depth,
              float* s) {
    size_t r = 0;
    for (; r + kRowTile <= rows; r += kRowTile)
        dot_rows_of<kRowTile>(keys, count, q + r * q_stride, q_stride, depth, s + r);
    if constexpr (kRowTile > 2) {
        if (r + 2 <= rows) {
            dot_rows_of<2>(keys, count, q + r * q_stride, q_stride, depth, s + r);
            r += 2;
        }
    }
    if (r < rows) dot_rows_of<1>(keys, count, q + r * q_stride, q_stride, depth, s + r);
}

// o[r][lane] += sum over j of weights[j * kPanel + r] * values[j][lane] for R rows and C vectors from column
// `c` on; `part`: only so many elements of the last vector exist. kSeen: a weight of 0 adds nothing, whatever
// it is multiplied with.
template <size_t R, size_t C, bool kSeen, class T>
HWY_INLINE void sum_rows_tile(const T* const* values, size_t count, size_t c, size_t part,
                              const float* weights, float* o, size_t o_stride) {
    const F f;
    V sum[R][C];
    FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < C; ++v) {
            sum[r][v] = hn::Load(f, o + r * o_stride + c + v * kLanes);
        }
    }
    for (size_t j = 0; j < count; ++j) {
        V b[C];
        FOVEA_UNROLL for (size_t v = 0; v < C; ++v) {
            b[v] = part ? load_part(values[j] + c, part) : load_row(values[j] + c + v * kLanes);
        }
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
            const float weight = weights[j * kPanel + r];
            if (kSeen && weight == 0) continue;
            const V a = hn::Set(f, weight);
            FOVEA_UNROLL for (size_t v = 0; v < C; ++v) sum[r][v] = mul_add(a, b[v], sum[r][v]);
        }
    }
    FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < C; ++v) {
            hn::Store(sum[r][v], f, o + r * o_stride + c + v * kLanes);
        }
    }
}

template <size_t R, bool kSeen, class T>
HWY_NOINLINE void sum_rows_of(const T* const* values, size_t count, const float* weights, size_t columns,
                              float* o, size_t o_stride) {
    size_t c = 0;
    for (; c + kColumnTile * kLanes <= columns; c += kColumnTile * kLanes)
        sum_rows_tile<R, kColumnTile, kSeen>(values, count, c, 0, weights, o, o_stride);
    for (; c + kLanes <= columns; c += kLanes)
        sum_rows_tile<R, 1, kSeen>(values, count, c, 0, weights, o, o_stride);
    if (c < columns) sum_rows_tile<R, 1, kSeen>(values, count, c, columns - c, weights, o, o_stride);
}

// o[r][c] += sum over j of weights[j * kPanel + r] * values[j][c] for all `count` keys and `rows` rows.
template <bool kSeen, class T>
void sum_rows(const T* const* values, size_t count, const float* weights, size_t rows, size_t columns,
              float* o, size_t o_stride) {
    for (size_t j = 0; j < count; j += kValueRun) {
        const size_t run = HWY_MIN(kValueRun, count - j);
        const float* w = weights + j * kPanel;
        size_t r = 0;
        for (; r + kRowTile <= rows; r += kRowTile)
            sum_rows_of<kRowTile, kSeen>(values + j, run, w + r, columns, o + r * o_stride, o_stride);
        if constexpr (kRowTile > 2) {
            if (r + 2 <= rows) {
                sum_rows_of<2, kSeen>(values + j, run, w + r, columns, o + r * o_stride, o_stride);
                r += 2;
            }
        }
        if (r < rows) sum_rows_of<1, kSeen>(values + j, run, w + r, columns, o + r * o_stride, o_stride);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

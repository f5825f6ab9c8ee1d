// The softmax of a panel: keys go down the rows, so maxima and sums need no reduction across lanes. It is the
// online softmax (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018): each block of
// keys raises the running maximum, and what was summed before is multiplied by exp(old maximum - new
// maximum).
#if defined(FOVEA_CPU_SOFTMAX_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_SOFTMAX_INL_HPP
#undef FOVEA_CPU_SOFTMAX_INL_HPP
#else
#define FOVEA_CPU_SOFTMAX_INL_HPP
#endif

#include "cpu/row_end.hpp"
#include "cpu/simd_inl.hpp"

#include <cmath>
#include <cstring>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

constexpr float kLog2E = 1.44269504088896340736f;

// Where the running maximum of a row is kept. Plain logits are `unit` times a product, and the multiplication
// is part of the subtraction: 2^(s * unit - max * unit). Logits with a bias may be as low as -FLT_MAX, where
// that would overflow: there it is 2^((s - max) * unit).
enum class MaxIn { exponents, logits };

// The running maximum starts here, never at -inf, so that no difference of two is NaN.
constexpr float kFloor = -3.4028234663852886e38f;

// MaxIn::exponents from here on, where float32 counts in steps of 64 and more: max * unit, rounded, would be
// off by so many powers of two that 2^(s * unit - max * unit) overflows or vanishes. There the power of two
// at or above `unit` replaces it, with which products are exact: equal logits give 1, others nothing, as with
// `unit`. A maximum shows by its size which of them it was made with, and the order of two is that of their
// logits.
constexpr float kFar = 0x1p30f;

inline float far_unit(float unit) {
    uint32_t bits;
    std::memcpy(&bits, &unit, sizeof bits);
    bits = (bits + 0x7fffffu) & 0xff800000u;
    std::memcpy(&unit, &bits, sizeof bits);
    return unit;
}

// Returns the multiplier for lanes with these maxima (or these products times `unit`).
HWY_INLINE V unit_of(V max, float unit) {
    const F f;
    return hn::IfThenElse(hn::Lt(hn::Abs(max), hn::Set(f, kFar)), hn::Set(f, unit),
                          hn::Set(f, far_unit(unit)));
}

// Some lane is far, and not only because it saw nothing yet.
inline bool any_far(size_t vectors, const float* max) {
    const F f;
    for (size_t v = 0; v < vectors; ++v) {
        const V m = hn::Load(f, max + v * kLanes);
        if (!hn::AllFalse(f, hn::And(hn::Ge(hn::Abs(m), hn::Set(f, kFar)), hn::Gt(m, hn::Set(f, kFloor)))))
            return true;
    }
    return false;
}

// Returns the logit of a row's maximum.
inline double logit_of_max(MaxIn in, float unit, float max) {
    if (in == MaxIn::logits) return max;
    return std::fabs(max) < kFar ? double(max) * kLn2 : double(max) / far_unit(unit) * unit * kLn2;
}

// Memory that will be read soon, prefetched into L2 a line at a time: the exponentials leave the load ports
// idle, and the products that follow must not wait.
struct Ahead {
    const char* row = nullptr;
    size_t stride_bytes = 0, row_bytes = 0, rows = 0;
    size_t at = 0;              // within the row
    size_t lines_per_call = 0;  // for each call of step()

    HWY_INLINE void step() {
        for (size_t n = 0; n < lines_per_call && rows; ++n) {
#if defined(__GNUC__)
            __builtin_prefetch(row + at, 0, 2);
#endif
            at += 64;
            if (at < row_bytes) continue;
            at = 0;
            row += stride_bytes;
            --rows;
        }
    }
};

// p = 2^(s * unit - max), of one key; total grows by it.
template <size_t NV, MaxIn kMax>
HWY_INLINE void weights_of(const float* s, V unit, const V (&minus_max)[NV], V (&p)[NV], V (&total)[NV]) {
    const F f;
    FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) {
        const V logit = hn::Load(f, s + v * kLanes);
        p[v] = kMax == MaxIn::exponents ? mul_add(logit, unit, minus_max[v])
                                        : hn::Mul(hn::Add(logit, minus_max[v]), unit);
    }
    exp2_each(p);
    FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) total[v] = hn::Add(total[v], p[v]);
}

// s = 2^(s * unit - max[lane]); sum[lane] grows by it. Hidden entries are -inf and become 0.
template <size_t NV, MaxIn kMax>
HWY_NOINLINE void exponentials_of(float* HWY_RESTRICT s, size_t keys, float unit,
                                  const float* HWY_RESTRICT max, float* HWY_RESTRICT sum,
                                  Ahead& ahead_of_all) {
    const F f;
    const V scale = hn::Set(f, unit);
    V minus_max[NV], total[NV];
    FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) {
        minus_max[v] = hn::Neg(hn::Load(f, max + v * kLanes));
        total[v] = hn::Load(f, sum + v * kLanes);
    }
    Ahead ahead = ahead_of_all;
    for (size_t j = 0; j < keys; ++j, s += kPanel) {
        ahead.step();
        V p[NV];
        weights_of<NV, kMax>(s, scale, minus_max, p, total);
        FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) hn::Store(p[v], f, s + v * kLanes);
    }
    FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) hn::Store(total[v], f, sum + v * kLanes);
    ahead_of_all = ahead;
}

template <MaxIn kMax, size_t... NV>
HWY_INLINE void exponentials_dispatch(size_t vectors, float* s, size_t keys, float unit, const float* max,
                                      float* sum, Ahead& ahead, std::index_sequence<NV...>) {
    ((vectors == NV + 1 ? exponentials_of<NV + 1, kMax>(s, keys, unit, max, sum, ahead) : void()), ...);
}
// The same where some lanes are far, each multiplied by its own unit.
inline void exponentials_of_far(size_t vectors, float* s, size_t keys, float unit, const float* max,
                                float* sum) {
    const F f;
    for (size_t at = 0; at < vectors * kLanes; at += kLanes) {
        const V largest = hn::Load(f, max + at), scale = unit_of(largest, unit);
        V total = hn::Load(f, sum + at);
        for (size_t j = 0; j < keys; ++j) {
            float* to = s + j * kPanel + at;
            const V p = exp2(mul_add(hn::Load(f, to), scale, hn::Neg(largest)));
            total = hn::Add(total, p);
            hn::Store(p, f, to);
        }
        hn::Store(total, f, sum + at);
    }
}

inline void exponentials(MaxIn in, size_t vectors, float* s, size_t keys, float unit, const float* max,
                         float* sum, Ahead& ahead) {
    constexpr auto all = std::make_index_sequence<kVectors>();
    if (in == MaxIn::exponents && any_far(vectors, max))
        exponentials_of_far(vectors, s, keys, unit, max, sum);
    else if (in == MaxIn::exponents)
        exponentials_dispatch<MaxIn::exponents>(vectors, s, keys, unit, max, sum, ahead, all);
    else
        exponentials_dispatch<MaxIn::logits>(vectors, s, keys, unit, max, sum, ahead, all);
}

// A new block's maxima (in the units of s) enter the running maximum; factor[lane] is what earlier sums and
// outputs shrink by.
inline void grow_maximum(MaxIn in, size_t vectors, const float* block_max, float unit, float* max, float* sum,
                         float* factor) {
    const F f;
    const V scale = hn::Set(f, unit);
    for (size_t v = 0; v < vectors; ++v) {
        const V old = hn::Load(f, max + v * kLanes);
        V block = hn::Load(f, block_max + v * kLanes);
        if (in == MaxIn::exponents) block = hn::Mul(block, unit_of(hn::Mul(block, scale), unit));
        const V grown = larger(old, block);
        V change = hn::Sub(old, grown);
        if (in == MaxIn::logits) change = hn::Mul(change, scale);
        const V shrink = exp2(change);
        hn::Store(grown, f, max + v * kLanes);
        hn::Store(shrink, f, factor + v * kLanes);
        hn::Store(hn::Mul(shrink, hn::Load(f, sum + v * kLanes)), f, sum + v * kLanes);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

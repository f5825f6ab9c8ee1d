// Turns a block of logits into the cells of a map tile: weights from the given lse, and sums of weights in
// integer units.
#if defined(FOVEA_CPU_MAP_WEIGHTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_MAP_WEIGHTS_INL_HPP
#undef FOVEA_CPU_MAP_WEIGHTS_INL_HPP
#else
#define FOVEA_CPU_MAP_WEIGHTS_INL_HPP
#endif

#include "cpu/rows_inl.hpp"
#include "problem/map_tile.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Logits to weights before dropout; NaN where FOVEA_TILE_INVALID is due. False if there is any.
inline bool weigh(const LogitForm& form, const float* lse, const Segment& part, int64_t block_begin,
                  float* weights) {
    const F f;
    const V unit = hn::Set(f, form.unit);
    const V hidden = hn::Set(f, kHidden), most = hn::Set(f, 1.0f);  // as exponents of 2
    static_assert(kMaxTileWeight == 2);
    bool valid = true;
    for (size_t v = part.first_vector; v < part.last_vector; ++v) {
        const V row_lse = hn::Load(f, lse + v * kLanes);
        const V minus_lse = hn::Neg(hn::Mul(row_lse, hn::Set(f, kLog2E)));
        float* at = weights + size_t(part.first_key - block_begin) * kPanel + v * kLanes;
        auto good = hn::Eq(hn::Zero(f), hn::Zero(f));
        for (size_t n = 0; n < part.keys(); ++n, at += kPanel) {
            const V logit = hn::Load(f, at);
            // Logits with a bias may be so large that they must cancel before they are scaled.
            const V x =
                form.general ? hn::Mul(hn::Sub(logit, row_lse), unit) : mul_add(logit, unit, minus_lse);
            const auto is_hidden = hn::Eq(logit, hidden), in_range = hn::Le(x, most);
            const V weight = hn::IfThenElse(in_range, exp2(hn::Min(x, most)), hn::NaN(f));
            hn::Store(hn::IfThenZeroElse(is_hidden, weight), f, at);
            good = hn::And(good, hn::Or(is_hidden, in_range));
        }
        valid = valid && hn::AllTrue(f, good);
    }
    return valid;
}

// By lane: the units of a sum as high * 2^20 + low, and the largest weight.
struct LaneSums {
    HWY_ALIGN uint32_t high[kPanel];
    HWY_ALIGN uint32_t low[kPanel];
    HWY_ALIGN float largest[kPanel];
};

constexpr float kHalfUnits = 1048576.0f;  // 2^20

// Weights of at most kMaxTileWeight * keep each, of which the sums of both halves stay below 2^32.
inline int64_t keys_per_sum(float keep) { return int64_t(4095.0f / (kMaxTileWeight * keep)); }

// Sums of the segment's keys, at most keys_per_sum. What a NaN adds is any number.
inline void sum_units(const Segment& part, int64_t block_begin, const float* weights, float keep,
                      LaneSums& to) {
    const F f;
    const I i;
    const U u;
    const V to_halves = hn::Set(f, keep * kHalfUnits), half = hn::Set(f, kHalfUnits);
    for (size_t v = part.first_vector; v < part.last_vector; ++v) {
        const float* at = weights + size_t(part.first_key - block_begin) * kPanel + v * kLanes;
        VU high = hn::Zero(u), low = hn::Zero(u);
        V largest = hn::Zero(f);
        for (size_t n = 0; n < part.keys(); ++n, at += kPanel) {
            // Only the first product rounds: the rest is exact.
            const V weight = hn::Mul(hn::Load(f, at), to_halves);
            const VI whole = hn::ConvertTo(i, weight);
            const V rest = hn::Mul(hn::Sub(weight, hn::ConvertTo(f, whole)), half);
            high = hn::Add(high, hn::BitCast(u, whole));
            low = hn::Add(low, hn::BitCast(u, hn::ConvertTo(i, rest)));
            largest = hn::Max(largest, weight);
        }
        hn::Store(high, u, to.high + v * kLanes);
        hn::Store(low, u, to.low + v * kLanes);
        hn::Store(hn::Mul(largest, hn::Set(f, 1.0f / kHalfUnits)), f, to.largest + v * kLanes);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

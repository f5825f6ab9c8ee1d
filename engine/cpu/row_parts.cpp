// Norms of rows and activations, for one target.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/row_parts.cpp"
#include <hwy/foreach_target.h>

#include "cpu/simd_inl.hpp"
#include "problem/row_parts.hpp"

#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The sum of term(v) over a row, in four chains, so that errors stay those of short sums.
template <class Term>
HWY_INLINE float sum_of_row(const float* x, size_t width, const Term& term) {
    const F f;
    V sums[4] = {hn::Zero(f), hn::Zero(f), hn::Zero(f), hn::Zero(f)};
    size_t c = 0;
    for (; c + 4 * kLanes <= width; c += 4 * kLanes)
        FOVEA_UNROLL for (size_t s = 0; s < 4; ++s) sums[s] =
            hn::Add(sums[s], term(hn::LoadU(f, x + c + s * kLanes)));
    for (; c + kLanes <= width; c += kLanes) sums[0] = hn::Add(sums[0], term(hn::LoadU(f, x + c)));
    float total =
        hn::GetLane(hn::SumOfLanes(f, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
    for (; c < width; ++c) total += hn::GetLane(term(hn::Set(f, x[c])));
    return total;
}

inline void norm_rows(const NormDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    const F f;
    const size_t width = d.width, whole = width / kLanes * kLanes;
    const auto* weight = static_cast<const float*>(bindings[FOVEA_BIND_WEIGHT].data);
    for (uint64_t row = begin; row < end; ++row) {
        const float* x = static_cast<const float*>(bindings[FOVEA_BIND_X].data) + row * width;
        float* y = static_cast<float*>(bindings[FOVEA_BIND_Y].data) + row * width;
        if (d.adds) {
            float* sum = static_cast<float*>(bindings[FOVEA_BIND_O].data) + row * width;
            size_t c = 0;
            for (; c < whole; c += kLanes)
                hn::StoreU(hn::Add(hn::LoadU(f, sum + c), hn::LoadU(f, x + c)), f, sum + c);
            for (; c < width; ++c) sum[c] += x[c];
            x = sum;
        }
        float mean = 0;
        if (d.rule == NormRule::layer)
            mean = sum_of_row(x, width, [](V v) HWY_ATTR { return v; }) / float(width);
        const V middle = hn::Set(f, mean);
        const float squares = sum_of_row(x, width, [middle](V v) HWY_ATTR {
            const V distance = hn::Sub(v, middle);
            return hn::Mul(distance, distance);
        });
        const float scale = 1 / std::sqrt(squares / float(width) + d.epsilon);
        const V factor = hn::Set(f, scale);
        size_t c = 0;
        for (; c < whole; c += kLanes) {
            V value = hn::Mul(hn::Sub(hn::LoadU(f, x + c), middle), factor);
            if (d.has_weight) value = hn::Mul(value, hn::LoadU(f, weight + c));
            if (d.has_bias) value = hn::Add(value, hn::LoadU(f, weight + width + c));
            hn::StoreU(value, f, y + c);
        }
        for (; c < width; ++c) {
            float value = (x[c] - mean) * scale;
            if (d.has_weight) value *= weight[c];
            if (d.has_bias) value += weight[width + c];
            y[c] = value;
        }
    }
}

// 1 / (1 + exp(-x)).
HWY_INLINE V logistic(V x) {
    const F f;
    const V one = hn::Set(f, 1.0f);
    const V e = exp2(hn::Mul(hn::Abs(x), hn::Set(f, -1.44269504088896340736f)));
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(f)), e, one), hn::Add(one, e));
}

// The normal distribution up to x: erfc(z) = t p(t) exp(-z^2) with t = 1 / (1 + z / 2), p by Chebyshev
// interpolation over 0 <= z <= 9.4, where the product is no longer a normal number; as shaders/pointwise.comp
// has it.
HWY_INLINE V normal_below(V x) {
    constexpr float kP[] = {0.575284362f,   0.787835062f, 0.588699579f,   0.0790641233f, -0.205099985f,
                            -0.0474404283f, 0.112321094f, 0.00708374428f, -0.0592518598f};
    const F f;
    const V one = hn::Set(f, 1.0f), z = hn::Mul(hn::Abs(x), hn::Set(f, 0.707106781f));
    const V t = hn::Div(one, mul_add(z, hn::Set(f, 0.5f), one));
    const V d = hn::Sub(t, hn::Set(f, 0.5875f));
    V p = hn::Set(f, kP[8]);
    for (int n = 7; n >= 0; --n) p = mul_add(p, d, hn::Set(f, kP[n]));
    const V tail = exp2(hn::Mul(hn::Mul(x, x), hn::Set(f, -0.72134752044448170368f)));
    const V above = hn::Mul(hn::Mul(hn::Set(f, 0.5f), hn::Mul(t, p)), tail);
    return hn::IfThenElse(hn::Lt(x, hn::Zero(f)), above, hn::Sub(one, above));
}

template <PointwiseRule kRule>
HWY_INLINE V activated(V x) {
    const F f;
    if constexpr (kRule == PointwiseRule::gelu) return hn::Mul(x, normal_below(x));
    if constexpr (kRule == PointwiseRule::silu) return hn::Mul(x, logistic(x));
    if constexpr (kRule == PointwiseRule::gelu_tanh) {
        // 0.5 (1 + tanh(u)) = logistic(2 u)
        const V cube = mul_add(hn::Mul(hn::Mul(x, x), hn::Set(f, 0.044715f)), x, x);
        return hn::Mul(x, logistic(hn::Mul(cube, hn::Set(f, 1.5957691216057308f))));
    }
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(f)), x);
}

template <PointwiseRule kRule>
void pointwise_stretch(const float* x, const float* other, float* y, size_t count) {
    const F f;
    const auto result = [](V value, V by) HWY_ATTR {
        if constexpr (kRule == PointwiseRule::add) return hn::Add(value, by);
        return hn::Mul(activated<kRule>(value), by);
    };
    const V one = hn::Set(f, 1.0f);
    size_t n = 0;
    for (; n + kLanes <= count; n += kLanes)
        hn::StoreU(result(hn::LoadU(f, x + n), other ? hn::LoadU(f, other + n) : one), f, y + n);
    if (n == count) return;
    HWY_ALIGN float part[kLanes] = {}, others[kLanes] = {};
    memcpy(part, x + n, (count - n) * sizeof(float));
    if (other) memcpy(others, other + n, (count - n) * sizeof(float));
    hn::Store(result(hn::Load(f, part), other ? hn::Load(f, others) : one), f, part);
    memcpy(y + n, part, (count - n) * sizeof(float));
}

inline void pointwise_rows(const PointwiseDesc& d, const FoveaHostBuffer* bindings, uint64_t begin,
                           uint64_t end) {
    const uint64_t first = begin * kPointwiseStretch;
    const auto count = size_t(HWY_MIN(d.count, end * kPointwiseStretch) - first);
    const float* x = static_cast<const float*>(bindings[FOVEA_BIND_X].data) + first;
    const float* other =
        d.has_other() ? static_cast<const float*>(bindings[FOVEA_BIND_O].data) + first : nullptr;
    float* y = static_cast<float*>(bindings[FOVEA_BIND_Y].data) + first;
    switch (d.rule) {
        case PointwiseRule::add:
            return pointwise_stretch<PointwiseRule::add>(x, other, y, count);
        case PointwiseRule::gelu:
            return pointwise_stretch<PointwiseRule::gelu>(x, other, y, count);
        case PointwiseRule::gelu_tanh:
            return pointwise_stretch<PointwiseRule::gelu_tanh>(x, other, y, count);
        case PointwiseRule::silu:
            return pointwise_stretch<PointwiseRule::silu>(x, other, y, count);
        case PointwiseRule::relu:
            return pointwise_stretch<PointwiseRule::relu>(x, other, y, count);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::norm) norm_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, norm_rows) }
decltype(Kernels::pointwise) pointwise_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET(target, pointwise_rows)
}

}  // namespace fovea::cpu
#endif

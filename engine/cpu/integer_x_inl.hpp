// Rounds activations to 8 bits, in blocks of 32 values with a float32 scale.
#if defined(FOVEA_CPU_INTEGER_X_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_INTEGER_X_INL_HPP
#undef FOVEA_CPU_INTEGER_X_INL_HPP
#else
#define FOVEA_CPU_INTEGER_X_INL_HPP
#endif

#include "cpu/compressed_row_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// A block whose largest magnitude is below this becomes zeros: 127 / largest would overflow.
constexpr float kLeastLargest = 0x1p-110f;

// Rounds 32 values to q and returns their scale: largest magnitude / 127, or NaN where a value is not finite.
template <class T>
HWY_INLINE float quantize_block(const T* x, int8_t* q) {
    const F f;
    const hn::Rebind<int8_t, F> bytes;
    V most = hn::Zero(f), odd = hn::Zero(f);
    for (size_t e = 0; e < 32; e += kLanes) {
        const V v = load_row(x + e);
        most = hn::Max(most, hn::Abs(v));
        odd = mul_add(v, hn::Zero(f), odd);
    }
    const float largest = hn::GetLane(hn::MaxOfLanes(f, most));
    const float none = hn::GetLane(hn::SumOfLanes(f, odd));  // 0 or NaN
    if (!(none == 0) || largest < kLeastLargest) {
        memset(q, 0, 32);
        return none;
    }
    const V inverse = hn::Set(f, 127.0f / largest);
    for (size_t e = 0; e < 32; e += kLanes)
        hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(hn::Mul(load_row(x + e), inverse))), bytes, q + e);
    return largest / 127.0f;
}

// The sum of `count` values, a multiple of 16.
HWY_INLINE int32_t sum_of(const int8_t* q, size_t count) {
    VI all = hn::Zero(I());
    for (size_t n = 0; n < count; n += kLanes)
        all = hn::Add(all, signed_bytes_of(reinterpret_cast<const unsigned char*>(q + n)));
    return hn::GetLane(hn::SumOfLanes(I(), all));
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

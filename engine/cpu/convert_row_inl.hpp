// A row from one type to the other, or copied.
#if defined(FOVEA_CPU_CONVERT_ROW_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_CONVERT_ROW_INL_HPP
#undef FOVEA_CPU_CONVERT_ROW_INL_HPP
#else
#define FOVEA_CPU_CONVERT_ROW_INL_HPP
#endif

#include "cpu/simd_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

template <class X, class Y>
HWY_INLINE void convert_row(const X* from, size_t count, Y* to) {
    size_t e = 0;
    for (; e + kLanes <= count; e += kLanes) store_row(load_row(from + e), to + e);
    for (; e < count; ++e) store_one(load_one(from + e), to + e);
}

#if HWY_TARGET == HWY_SSE4 || HWY_ARCH_WASM
// Converts a row of float16 to float32, exactly. The exponent and the fraction move to their places in
// float32; a multiplication corrects the exponent's bias. That fails for infinities and NaN, which are rare:
// their row is converted again.
HWY_INLINE void widen_row(const uint16_t* from, size_t count, float* to) {
    const F f;
    const hn::Repartition<int16_t, F> h;
    const auto magnitude = hn::Set(h, 0x7fff);
    auto most = hn::Zero(h);
    const V bias = hn::Set(f, 0x1p112f);
    size_t e = 0;
    for (; e + 16 <= count; e += 16) {
        FOVEA_UNROLL for (size_t n = e; n < e + 16; n += 8) {
            const auto bits = hn::LoadU(h, reinterpret_cast<const int16_t*>(from) + n);
            most = hn::Max(most, hn::And(bits, magnitude));
            // The sign comes along three more times.
            const auto upper = hn::And(hn::ShiftRight<3>(bits), hn::Set(h, int16_t(0x8fff)));
            const auto lower = hn::ShiftLeft<13>(bits);
            hn::StoreU(hn::Mul(bias, hn::BitCast(f, hn::InterleaveLower(h, lower, upper))), f, to + n);
            hn::StoreU(hn::Mul(bias, hn::BitCast(f, hn::InterleaveUpper(h, lower, upper))), f, to + n + 4);
        }
    }
    convert_row(from + e, count - e, to + e);
    if (!hn::AllTrue(h, hn::Lt(most, hn::Set(h, 0x7c00)))) convert_row(from, count, to);
}
#else
HWY_INLINE void widen_row(const uint16_t* from, size_t count, float* to) { convert_row(from, count, to); }
#endif

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

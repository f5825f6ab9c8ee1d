// Rows of 8-bit floats and of ggml's blocks as float32, exactly, and what it takes to read blocks.
#if defined(FOVEA_CPU_COMPRESSED_ROW_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_COMPRESSED_ROW_INL_HPP
#undef FOVEA_CPU_COMPRESSED_ROW_INL_HPP
#else
#define FOVEA_CPU_COMPRESSED_ROW_INL_HPP
#endif

#include "cpu/simd_inl.hpp"
#include "problem/compressed.hpp"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// One number is as much work for plain code as half a block, where an instruction widens several at once.
HWY_INLINE float half_of(const unsigned char* at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
#else
    return half_to_float(half);
#endif
}

// kLanes bytes as whole numbers.
HWY_INLINE VI bytes_of(const unsigned char* at) {
    const hn::Rebind<uint8_t, F> bytes;
    return hn::PromoteTo(I(), hn::LoadU(bytes, at));
}
HWY_INLINE VI signed_bytes_of(const unsigned char* at) {
    const hn::Rebind<int8_t, F> bytes;
    return hn::PromoteTo(I(), hn::LoadU(bytes, reinterpret_cast<const int8_t*>(at)));
}
HWY_INLINE VI low_of(VI bytes) { return hn::And(bytes, hn::Set(I(), 15)); }
HWY_INLINE VI high_of(VI bytes) { return hn::ShiftRight<4>(bytes); }

// `count` numbers of a compressed type, whole blocks of them, as float32.
void widen_row(FoveaDtype type, const unsigned char* from, size_t count, float* to);

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

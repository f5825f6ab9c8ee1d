// Sums of products of neighbouring bytes.
#if defined(FOVEA_CPU_BYTE_PRODUCTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_BYTE_PRODUCTS_INL_HPP
#undef FOVEA_CPU_BYTE_PRODUCTS_INL_HPP
#else
#define FOVEA_CPU_BYTE_PRODUCTS_INL_HPP
#endif

#include "cpu/simd_inl.hpp"

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Vectors of int32 hold four bytes a lane.
//   byte_pairs    adds products of unsigned by signed bytes in pairs, in 16 bits
//   word_pairs    adds pairs of 16 bits in 32
//   with_sign_of  returns a where b > 0, -a where b < 0
#if HWY_TARGET == HWY_AVX3
using I512 = hn::Vec512<int32_t>;
HWY_INLINE I512 byte_pairs(I512 a, I512 b) { return I512{_mm512_maddubs_epi16(a.raw, b.raw)}; }
HWY_INLINE I512 word_pairs(I512 a) { return I512{_mm512_madd_epi16(a.raw, _mm512_set1_epi16(1))}; }
HWY_INLINE I512 with_sign_of(I512 a, I512 b) {
    return I512{_mm512_mask_sub_epi8(a.raw, _mm512_movepi8_mask(b.raw), _mm512_setzero_si512(), a.raw)};
}
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
using I256 = hn::Vec256<int32_t>;
HWY_INLINE I256 byte_pairs(I256 a, I256 b) { return I256{_mm256_maddubs_epi16(a.raw, b.raw)}; }
HWY_INLINE I256 word_pairs(I256 a) { return I256{_mm256_madd_epi16(a.raw, _mm256_set1_epi16(1))}; }
HWY_INLINE I256 with_sign_of(I256 a, I256 b) { return I256{_mm256_sign_epi8(a.raw, b.raw)}; }
#else
using I128 = hn::Vec128<int32_t>;
HWY_INLINE I128 byte_pairs(I128 a, I128 b) { return I128{_mm_maddubs_epi16(a.raw, b.raw)}; }
HWY_INLINE I128 word_pairs(I128 a) { return I128{_mm_madd_epi16(a.raw, _mm_set1_epi16(1))}; }
HWY_INLINE I128 with_sign_of(I128 a, I128 b) { return I128{_mm_sign_epi8(a.raw, b.raw)}; }
#endif

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard

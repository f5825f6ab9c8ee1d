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
#include <type_traits>

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

// Converts kLanes bytes to integers.
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

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// kLanes codes of 8-bit floats. E5M2 is the upper half of a float16; E4M3 has its bits three places to the
// right and 2^8 less, and one NaN.
template <class Code>
HWY_INLINE V load_float8(const unsigned char* at) {
    const F f;
    const hn::Rebind<int8_t, F> bytes;
    const hn::Rebind<int16_t, F> words;
    const hn::Rebind<hwy::float16_t, F> halves;
    const auto codes = hn::PromoteTo(words, hn::LoadU(bytes, reinterpret_cast<const int8_t*>(at)));
    if constexpr (std::is_same_v<Code, E5m2>)
        return hn::PromoteTo(f, hn::BitCast(halves, hn::ShiftLeft<8>(codes)));
    // The sign of a byte came along: bit 14 is a second one.
    const auto moved = hn::And(hn::ShiftLeft<7>(codes), hn::Set(words, int16_t(0xbfff)));
    const auto nan = hn::Eq(hn::And(moved, hn::Set(words, 0x7fff)), hn::Set(words, 0x3f80));
    const auto quiet = hn::Or(hn::And(moved, hn::Set(words, int16_t(0x8000))), hn::Set(words, 0x7e00));
    const auto half = hn::BitCast(halves, hn::IfThenElse(nan, quiet, moved));
    return hn::Mul(hn::PromoteTo(f, half), hn::Set(f, 256.0f));
}
#else
// Moves an 8-bit float's exponent and fraction to float32's places and corrects the exponent. Subnormal
// values get a leading one on top, which is subtracted again: this avoids products with a subnormal float32,
// which cost a hundred cycles.
template <int kFraction, int kBias>
HWY_INLINE V widen_float8(VI codes, int special, int bits_of_special) {
    const F f;
    const I i;
    constexpr int kShift = 23 - kFraction;
    const VI code = hn::And(codes, hn::Set(i, 0x7f));
    const auto subnormal = hn::Lt(code, hn::Set(i, 1 << kFraction));
    const VI moved = hn::Add(hn::ShiftLeft<kShift>(code), hn::Set(i, (127 - kBias) << 23));
    const VI one = hn::IfThenElseZero(subnormal, hn::Set(i, 1 << 23));
    const VI least = hn::IfThenElseZero(subnormal, hn::Set(i, (128 - kBias) << 23));
    const VI finite = hn::BitCast(i, hn::Sub(hn::BitCast(f, hn::Add(moved, one)), hn::BitCast(f, least)));
    const VI beyond = hn::IfThenElseZero(hn::Gt(code, hn::Set(i, special - 1)), hn::Set(i, bits_of_special));
    const VI sign = hn::ShiftLeft<24>(hn::And(codes, hn::Set(i, 0x80)));
    return hn::BitCast(f, hn::Or(hn::Or(finite, beyond), sign));
}
template <class Code>
HWY_INLINE V load_float8(const unsigned char* at) {
    if constexpr (std::is_same_v<Code, E5m2>) return widen_float8<2, 15>(bytes_of(at), 0x7c, 0x7f800000);
    return widen_float8<3, 7>(bytes_of(at), 0x7f, 0x7fc00000);
}
#endif

// Blocks of 32 values: `load` returns kLanes of them from value n on, limited to its half of the block.
struct StoredQ8 {
    static constexpr size_t kBytes = 34;
    static HWY_INLINE V scale(const unsigned char* block) { return hn::Set(F(), half_of(block)); }
    static HWY_INLINE V load(const unsigned char* block, size_t n, V scale) {
        return hn::Mul(scale, hn::ConvertTo(F(), signed_bytes_of(block + 2 + n)));
    }
};
struct StoredQ4 {
    static constexpr size_t kBytes = 18;
#if HWY_TARGET == HWY_AVX3
    // A register holds each of the 16 values, and the lookup reads four bits of its index.
    static HWY_INLINE V scale(const unsigned char* block) {
        return hn::Mul(hn::Set(F(), half_of(block)), hn::Iota(F(), -8.0f));
    }
    static HWY_INLINE V load(const unsigned char* block, size_t n, V numbers) {
        const VI bytes = bytes_of(block + 2 + n % 16);
        return V{_mm512_permutexvar_ps(n < 16 ? bytes.raw : high_of(bytes).raw, numbers.raw)};
    }
#else
    static HWY_INLINE V scale(const unsigned char* block) { return hn::Set(F(), half_of(block)); }
    static HWY_INLINE V load(const unsigned char* block, size_t n, V scale) {
        const VI bytes = bytes_of(block + 2 + n % 16);
        const VI codes = n < 16 ? low_of(bytes) : high_of(bytes);
        return hn::Mul(scale, hn::ConvertTo(F(), hn::Sub(codes, hn::Set(I(), 8))));
    }
#endif
};

// Converts `count` values of a quantized type, in whole blocks, to float32.
void widen_row(FoveaDtype type, const unsigned char* from, size_t count, float* to);

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

// Per target: the vector type, the shape of a panel and the few operations that Highway leaves to us.
// Included once for each target by the kernel files.
#if defined(FOVEA_CPU_SIMD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_SIMD_INL_HPP
#undef FOVEA_CPU_SIMD_INL_HPP
#else
#define FOVEA_CPU_SIMD_INL_HPP
#endif

#include "cpu/target.hpp"
#include "problem/elements.hpp"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Loops over accumulators must be unrolled whole, or the compiler keeps them in memory.
#undef FOVEA_UNROLL
#if defined(__clang__)
#define FOVEA_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define FOVEA_UNROLL _Pragma("GCC unroll 64")
#else
#define FOVEA_UNROLL
#endif
// The hot loops gain 1% by two steps to a turn; the engines of WebAssembly lose 10%, for want of registers.
#undef FOVEA_UNROLL_TWICE
#if defined(__GNUC__) && !defined(__clang__)
#define FOVEA_UNROLL_TWICE _Pragma("GCC unroll 2")
#else
#define FOVEA_UNROLL_TWICE
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;
using V = hn::Vec<F>;
using VI = hn::Vec<I>;
using VU = hn::Vec<U>;

constexpr TargetShape kShape = target_shape(FOVEA_TARGET_ID);
constexpr size_t kLanes = kShape.lanes;
constexpr size_t kVectors = kShape.vectors;   // vectors of a panel
constexpr size_t kRows = kShape.rows;         // rows of a register tile
constexpr size_t kPanel = kShape.panel();     // queries of a panel
constexpr size_t kKeyRows = kShape.key_rows;  // keys of a packed tile; 0: keys are not packed
static_assert(kLanes == hn::MaxLanes(F()));

// a * b + c, fused where the target can. Highway does not use the relaxed instruction of WebAssembly.
HWY_INLINE V mul_add(V a, V b, V c) {
#if HWY_ARCH_WASM && defined(__wasm_relaxed_simd__)
    return V{wasm_f32x4_relaxed_madd(a.raw, b.raw, c.raw)};
#else
    return hn::MulAdd(a, b, c);
#endif
}

// Defined if kernels with pairs of bfloat16 are compiled for the target. has_pair_products checks at run time
// whether the CPU has the instruction.
#undef FOVEA_HAS_PAIRS
#if HWY_TARGET == HWY_AVX3 && defined(__GNUC__)
#define FOVEA_HAS_PAIRS 1
#else
#define FOVEA_HAS_PAIRS 0
#endif

// sum + a.upper * b.upper, + a.lower * b.lower, where each lane is a word of two bfloat16. It treats
// subnormal values as zero.
#if FOVEA_HAS_PAIRS
HWY_INLINE V add_products_of_pairs(V a, V b, V sum) {
    // Not by its intrinsic, which only functions that are compiled for AVX512-BF16 may call.
    asm("vdpbf16ps {%2, %1, %0|%0, %1, %2}" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
}
#else
V add_products_of_pairs(V a, V b, V sum);  // never defined: nothing calls it
#endif

// The larger one, where neither is NaN; else either (in WebAssembly a, whose own maximum takes eight
// instructions on x86).
HWY_INLINE V larger(V a, V b) {
#if HWY_ARCH_WASM
    return V{wasm_f32x4_pmax(a.raw, b.raw)};
#else
    return hn::Max(a, b);
#endif
}

// Coefficients of 2^r = 1 + c[0] r + ... + c[4] r^5, minimax in the relative error with the constant held at
// 1 so that exp2(0) is exactly 1. First on [-1/2, 1/2] (error 9.2e-8), then on [0, 1] (8.3e-8).
constexpr float kExp2Centred[5] = {0x1.62e42ap-1f, 0x1.ebf9bcp-3f, 0x1.c6b752p-5f, 0x1.3cea88p-7f,
                                   0x1.5bba08p-10f};
constexpr float kExp2Unit[5] = {0x1.62e4bap-1f, 0x1.ebdb56p-3f, 0x1.c91ce6p-5f, 0x1.277856p-7f,
                                0x1.e974f4p-10f};

// 2^x for x <= 127, within 2 ulp of the result; 0 where the result would be subnormal, exactly 1 at 0, 0 at
// -inf, NaN at NaN. Subnormal results would cost more than a hundred cycles each, here and in every product
// with them.
#if HWY_TARGET == HWY_AVX3
// Nothing that computes these is put off until after the next such call.
template <size_t N>
HWY_INLINE void in_this_order([[maybe_unused]] V (&v)[N]) {
#if defined(__GNUC__)
    if constexpr (N > 1) FOVEA_UNROLL for (size_t n = 0; n < N; ++n) asm volatile("" : "+v"(v[n].raw));
#endif
}

// Computes exp2 of each element, one step for all elements at a time. Within one chain of ten instructions
// each waits for the one before, and compilers would emit the chains one by one.
template <size_t N>
HWY_INLINE void exp2_each(V (&x)[N]) {
    const F f;
    V fraction[N], p[N];
    in_this_order(x);
    FOVEA_UNROLL for (size_t n = 0; n < N; ++n) fraction[n] =
        V{_mm512_reduce_ps(x[n].raw, 1)};  // x - floor(x)
    in_this_order(fraction);
    FOVEA_UNROLL for (size_t n = 0; n < N; ++n) p[n] = hn::Set(f, kExp2Unit[4]);
    FOVEA_UNROLL for (size_t term = 5; term-- > 0;) {
        const V constant = hn::Set(f, term ? kExp2Unit[term - 1] : 1.0f);
        FOVEA_UNROLL for (size_t n = 0; n < N; ++n) p[n] = mul_add(p[n], fraction[n], constant);
        in_this_order(p);
    }
    __mmask16 normal[N];
    FOVEA_UNROLL for (size_t n = 0; n < N; ++n) normal[n] =
        _mm512_cmp_ps_mask(x[n].raw, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
    FOVEA_UNROLL for (size_t n = 0; n < N; ++n) x[n] =
        V{_mm512_maskz_scalef_ps(normal[n], p[n].raw, x[n].raw)};
}
HWY_INLINE V exp2(V x) {
    V one[1] = {x};
    exp2_each(one);
    return one[0];
}
#else
HWY_INLINE V exp2_polynomial(V r, const float (&c)[5]) {
    const F f;
    V p = mul_add(hn::Set(f, c[4]), r, hn::Set(f, c[3]));
    p = mul_add(p, r, hn::Set(f, c[2]));
    p = mul_add(p, r, hn::Set(f, c[1]));
    p = mul_add(p, r, hn::Set(f, c[0]));
    return mul_add(p, r, hn::Set(f, 1.0f));
}

HWY_INLINE V exp2(V x) {
    const F f;
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits; 127 more makes them an exponent.
    const I i;
    const V magic = hn::Set(f, 12582912.0f + 127.0f);
    // A NaN must stay NaN. In this order it does, except with a Max that prefers numbers.
    const V least = hn::Set(f, -127.0f);
#if HWY_ARCH_WASM
    x = larger(x, least);
#else
    constexpr bool prefers_numbers = HWY_TARGET == HWY_SCALAR || HWY_ARCH_ARM;
    x = prefers_numbers ? hn::IfThenElse(hn::Lt(x, least), least, x) : hn::Max(least, x);
#endif
    const V t = hn::Add(x, magic);
    const V r = hn::Sub(x, hn::Sub(t, magic));
    const V power = hn::BitCast(f, hn::ShiftLeft<23>(hn::BitCast(i, t)));
    return hn::Mul(exp2_polynomial(r, kExp2Centred), power);
}
template <size_t N>
HWY_INLINE void exp2_each(V (&x)[N]) {
    FOVEA_UNROLL for (size_t n = 0; n < N; ++n) x[n] = exp2(x[n]);
}
#endif

// kLanes elements widened to float32, exactly.
HWY_INLINE V load_row(const float* from) { return hn::LoadU(F(), from); }
HWY_INLINE V load_row(const uint16_t* from) {
    [[maybe_unused]] const F f;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
    const hn::Rebind<hwy::float16_t, F> h;
    return hn::PromoteTo(f, hn::LoadU(h, reinterpret_cast<const hwy::float16_t*>(from)));
#elif HWY_TARGET == HWY_SCALAR
    return hn::Set(f, half_to_float(*from));
#elif HWY_ARCH_WASM
    // As below, with the sign carried along: bits of the half in the upper half of a word, three to the
    // right.
    const v128_t none = wasm_i32x4_const_splat(0);
    const v128_t high = wasm_i16x8_shuffle(none, wasm_v128_load64_zero(from), 0, 8, 1, 9, 2, 10, 3, 11);
    const v128_t bits = wasm_v128_and(wasm_i32x4_shr(high, 3), wasm_i32x4_const_splat(int32_t(0x8fffffff)));
    const v128_t wide = wasm_f32x4_mul(bits, wasm_f32x4_const_splat(0x1p112f));
    const v128_t special = wasm_f32x4_ge(wasm_f32x4_abs(wide), wasm_f32x4_const_splat(0x1p16f));
    return V{wasm_v128_or(wide, wasm_v128_and(special, wasm_i32x4_const_splat(0x7f800000)))};
#else
    // The exponent is rebiased by a product, which is exact for subnormals too; 31 becomes 255 by hand.
    const I i;
    const hn::Rebind<uint16_t, F> h;
    const VI bits = hn::PromoteTo(i, hn::LoadU(h, from));
    const VI magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(i, 0x7fff)));
    const VI sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(i, 0x8000)));
    const VI finite = hn::BitCast(i, hn::Mul(hn::BitCast(f, magnitude), hn::Set(f, 0x1p112f)));
    const auto special = hn::Gt(magnitude, hn::Set(i, 0x0f7fffff));
    const VI wide = hn::IfThenElse(special, hn::Or(magnitude, hn::Set(i, 0x7f800000)), finite);
    return hn::BitCast(f, hn::Or(wide, sign));
#endif
}

HWY_INLINE V load_row(const Bfloat16* from) {
    const F f;
    const auto* bits = reinterpret_cast<const uint16_t*>(from);
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(f, bfloat_to_float(*bits));
#else
    const hn::Rebind<uint16_t, F> h;
    return hn::BitCast(f, hn::ShiftLeft<16>(hn::PromoteTo(U(), hn::LoadU(h, bits))));
#endif
}

template <class T>
HWY_INLINE float load_one(const T* from) {
    return widened(*from);
}

// Rounded to nearest even.
HWY_INLINE void store_row(V v, float* to) { hn::StoreU(v, F(), to); }
HWY_INLINE void store_row(V v, uint16_t* to) {
#if HWY_TARGET == HWY_AVX3
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(v.raw, _MM_FROUND_TO_NEAREST_INT));
#elif HWY_TARGET == HWY_AVX2
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v.raw, _MM_FROUND_TO_NEAREST_INT));
#else
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, F(), lanes);
    for (size_t n = 0; n < kLanes; ++n) to[n] = float_to_half(lanes[n]);
#endif
}
#if HWY_TARGET != HWY_SCALAR
// The number in bfloat16 is the upper half of each word. As float_to_bfloat: a carry of the rounding may run
// into the exponent, and a NaN stays one. (The instruction of AVX512-BF16 would flush subnormal values to
// zero.)
HWY_INLINE VU bits_of_bfloat(V v) {
    const U u;
    const VU bits = hn::BitCast(u, v), odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1u));
    const VU rounded = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7fffu)));
    const VU quiet = hn::Or(bits, hn::Set(u, 0x400000u));
    return hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(v)), quiet, rounded);
}
#endif
HWY_INLINE void store_row(V v, Bfloat16* to) {
    auto* halves = reinterpret_cast<uint16_t*>(to);
#if HWY_TARGET == HWY_SCALAR
    *halves = float_to_bfloat(hn::GetLane(v));
#else
    const hn::Rebind<uint16_t, F> h;
    hn::StoreU(hn::DemoteTo(h, hn::BitCast(I(), hn::ShiftRight<16>(bits_of_bfloat(v)))), h, halves);
#endif
}
template <class T>
HWY_INLINE void store_one(float v, T* to) {
    narrow(v, *to);
}

#if HWY_TARGET != HWY_SCALAR
using Wide = hn::Repartition<double, F>;  // pairs of lanes as one
HWY_INLINE V lower_pairs(V a, V b) {
    const Wide w;
    return hn::BitCast(F(), hn::InterleaveLower(w, hn::BitCast(w, a), hn::BitCast(w, b)));
}
HWY_INLINE V upper_pairs(V a, V b) {
    const Wide w;
    return hn::BitCast(F(), hn::InterleaveUpper(w, hn::BitCast(w, a), hn::BitCast(w, b)));
}
#endif

// Lane m of rows[n] changes places with lane n of rows[m].
HWY_INLINE void transpose(V (&rows)[kLanes]) {
#if HWY_TARGET == HWY_SCALAR
    (void)rows;
#else
    const F f;
    // Within blocks of four lanes: single lanes, then pairs.
    FOVEA_UNROLL for (size_t n = 0; n < kLanes; n += 4) {
        const V a = hn::InterleaveLower(f, rows[n], rows[n + 1]);
        const V b = hn::InterleaveUpper(f, rows[n], rows[n + 1]);
        const V c = hn::InterleaveLower(f, rows[n + 2], rows[n + 3]);
        const V d = hn::InterleaveUpper(f, rows[n + 2], rows[n + 3]);
        rows[n] = lower_pairs(a, c);
        rows[n + 1] = upper_pairs(a, c);
        rows[n + 2] = lower_pairs(b, d);
        rows[n + 3] = upper_pairs(b, d);
    }
    // Whole blocks: the halves of a vector, then neighbours.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    FOVEA_UNROLL for (size_t n = 0; n < kLanes / 2; ++n) {
        const V a = rows[n], b = rows[n + kLanes / 2];
        rows[n] = hn::ConcatLowerLower(f, b, a);
        rows[n + kLanes / 2] = hn::ConcatUpperUpper(f, b, a);
    }
#endif
#if HWY_TARGET == HWY_AVX3
    FOVEA_UNROLL for (size_t n = 0; n < 4; ++n) {
        FOVEA_UNROLL for (size_t m = n; m < 16; m += 8) {
            const V a = rows[m], b = rows[m + 4];
            rows[m] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
            rows[m + 4] = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
        }
    }
#endif
#endif
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

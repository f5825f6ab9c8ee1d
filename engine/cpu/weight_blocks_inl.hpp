// Reads problem/weight_blocks.hpp's blocks in vectors. Codes become bytes, a unit of a block at a time; a
// group's scale and least value turn them into its values.
#if defined(FOVEA_CPU_WEIGHT_BLOCKS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_WEIGHT_BLOCKS_INL_HPP
#undef FOVEA_CPU_WEIGHT_BLOCKS_INL_HPP
#else
#define FOVEA_CPU_WEIGHT_BLOCKS_INL_HPP
#endif

#include "cpu/compressed_row_inl.hpp"
#include "problem/weight_blocks.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Values that are unpacked at a time: those whose bits share bytes.
template <class Block>
inline constexpr size_t kUnit = Block::kGroup == 16      ? 128
                                : Block::kNumbers == 256 ? 64
                                                         : 32;

#if HWY_TARGET == HWY_SCALAR
template <class Block>
HWY_INLINE void unpack(Block, const unsigned char* block, size_t unit, uint8_t* codes) {
    for (size_t n = unit * kUnit<Block>; n < (unit + 1) * kUnit<Block>; ++n)
        *codes++ = uint8_t(Block::code(block, uint32_t(n / Block::kGroup), uint32_t(n % Block::kGroup)));
}
#else
template <bool kFifth, bool kMin>
HWY_INLINE void unpack(SmallBlock<kFifth, kMin>, const unsigned char* block, size_t, uint8_t* codes) {
    using Block = SmallBlock<kFifth, kMin>;
    const auto store = [&](auto tag, auto code, size_t at) HWY_ATTR {
        if constexpr (kFifth) {
            // A code less 16 is its four bits if the fifth is set, else these with ones before them.
            const auto fifth = hn::LoadMaskBits(tag, block + Block::kFifths + at / 8);
            code = hn::Or(code, kMin ? hn::IfThenElseZero(fifth, hn::Set(tag, 16))
                                     : hn::IfThenZeroElse(fifth, hn::Set(tag, 0xf0)));
        }
        hn::Store(code, tag, codes + at);
    };
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    const hn::CappedTag<uint8_t, 32> b;
    const hn::Repartition<uint32_t, decltype(b)> words;
    HWY_ALIGN static constexpr uint32_t kShifts[8] = {0, 0, 0, 0, 4, 4, 4, 4};
    const auto twice = hn::BitCast(words, hn::LoadDup128(b, block + Block::kCodes));
    const auto halves = hn::BitCast(b, hn::Shr(twice, hn::Load(words, kShifts)));
    store(b, hn::And(halves, hn::Set(b, 15)), 0);
#else
    const hn::CappedTag<uint8_t, 16> b;
    const auto bytes = hn::LoadU(b, block + Block::kCodes);
    store(b, hn::And(bytes, hn::Set(b, 15)), 0);
    store(b, hn::ShiftRight<4>(bytes), 16);
#endif
}
template <bool kFifth>
HWY_INLINE void unpack(Q45K<kFifth>, const unsigned char* block, size_t unit, uint8_t* codes) {
    using Block = Q45K<kFifth>;
    const hn::CappedTag<uint8_t, 32> b;
    for (size_t l = 0; l < 32; l += hn::Lanes(b)) {
        const auto bytes = hn::LoadU(b, block + Block::kCodes + 32 * unit + l);
        auto low = hn::And(bytes, hn::Set(b, 15)), high = hn::ShiftRight<4>(bytes);
        if constexpr (kFifth) {
            const auto bits = hn::LoadU(b, block + Block::kFifths + l), sixteen = hn::Set(b, 16);
            const auto one = hn::Set(b, uint8_t(1u << 2 * unit)), two = hn::Set(b, uint8_t(2u << 2 * unit));
            low = hn::Or(low, hn::IfThenElseZero(hn::TestBit(bits, one), sixteen));
            high = hn::Or(high, hn::IfThenElseZero(hn::TestBit(bits, two), sixteen));
        }
        hn::Store(low, b, codes + l);
        hn::Store(high, b, codes + 32 + l);
    }
}
HWY_INLINE void unpack(Q6K, const unsigned char* block, size_t unit, uint8_t* codes) {
    const hn::CappedTag<uint8_t, 32> b;
    for (size_t l = 0; l < 32; l += hn::Lanes(b)) {
        const auto first = hn::LoadU(b, block + 64 * unit + l),
                   second = hn::LoadU(b, block + 64 * unit + 32 + l),
                   bits = hn::LoadU(b, block + 128 + 32 * unit + l);
        const auto store = [&](size_t quarter, auto four, auto two) HWY_ATTR {
            const auto code = hn::Or(four, hn::And(two, hn::Set(b, 0x30)));
            hn::Store(hn::Sub(code, hn::Set(b, 32)), b, codes + 32 * quarter + l);
        };
        store(0, hn::And(first, hn::Set(b, 15)), hn::ShiftLeft<4>(bits));
        store(1, hn::And(second, hn::Set(b, 15)), hn::ShiftLeft<2>(bits));
        store(2, hn::ShiftRight<4>(first), bits);
        store(3, hn::ShiftRight<4>(second), hn::ShiftRight<2>(bits));
    }
}
#endif

// The values of group g of a block are scale(g) * code + least(g). The product is exact in types that have
// least values: one rounding gives the bits that ggml's two give.
template <class Block>
struct Groups;
template <bool kFifth, bool kMin>
struct Groups<SmallBlock<kFifth, kMin>> {
    float halves[4];  // scale, least value
    HWY_INLINE void read(const unsigned char* block) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
        int32_t two;
        memcpy(&two, block, sizeof two);
        _mm_storeu_ps(halves, _mm_cvtph_ps(_mm_cvtsi32_si128(two)));
#else
        halves[0] = half_of(block);
        if constexpr (kMin) halves[1] = half_of(block + 2);
#endif
    }
    HWY_INLINE V scale(size_t) const { return hn::Set(F(), halves[0]); }
    HWY_INLINE V least(size_t) const { return hn::Set(F(), halves[1]); }
};
// to[n] = unit * from[n] for `count` bytes, a multiple of eight.
template <class Byte>
HWY_INLINE void scale_bytes(const Byte* from, size_t count, float unit, float* to) {
    const hn::CappedTag<float, 8> f;
    const hn::Rebind<int32_t, decltype(f)> i;
    const hn::Rebind<Byte, decltype(f)> b;
    for (size_t n = 0; n < count; n += hn::Lanes(f))
        hn::StoreU(hn::Mul(hn::Set(f, unit), hn::ConvertTo(f, hn::PromoteTo(i, hn::LoadU(b, from + n)))), f,
                   to + n);
}
template <bool kFifth>
struct Groups<Q45K<kFifth>> {
    float scales[8], mins[8];
    HWY_INLINE void read(const unsigned char* block) {
        uint32_t words[3];
        memcpy(words, block + 4, sizeof words);
        const auto six_bits = [&](uint32_t first, uint32_t low) {
            uint64_t codes =
                (first & 0x3f3f3f3fu) | uint64_t{(low & 0x0f0f0f0fu) | (first >> 2 & 0x30303030u)} << 32;
#if HWY_ARCH_X86_64 && defined(__GNUC__)
            asm volatile("" : "+r"(codes));  // or both would be computed in one slow vector
#endif
            return codes;
        };
        const uint64_t codes[2] = {six_bits(words[0], words[2]), six_bits(words[1], words[2] >> 4)};
        uint8_t bytes[16];
        memcpy(bytes, codes, sizeof bytes);
        scale_bytes(bytes, 8, half_of(block), scales);
        scale_bytes(bytes + 8, 8, -half_of(block + 2), mins);
    }
    HWY_INLINE V scale(size_t g) const { return hn::Set(F(), scales[g]); }
    HWY_INLINE V least(size_t g) const { return hn::Set(F(), mins[g]); }
};
template <>
struct Groups<Q6K> {
    float scales[16];
    HWY_INLINE void read(const unsigned char* block) {
        scale_bytes(reinterpret_cast<const int8_t*>(block + 192), 16, half_of(block + 208), scales);
    }
    HWY_INLINE V scale(size_t g) const { return hn::Set(F(), scales[g]); }
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

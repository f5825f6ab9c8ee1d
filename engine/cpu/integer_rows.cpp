// A few rows of activations as integers times a matrix that stays as its file stores it: as block_rows.cpp,
// with products of bytes.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/integer_rows.cpp"
#include <hwy/foreach_target.h>

#include "cpu/block_rows_inl.hpp"
#include "cpu/byte_products_inl.hpp"
#include "cpu/integer_x_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Vectors of at most 32 bytes: a group of values, or a half of one.
#if HWY_TARGET == HWY_SCALAR
constexpr size_t kBytes = 1, kSums = 1;
using SumTag = F;
using IntegerTag = I;
#else
using ByteTag = hn::CappedTag<int8_t, 32>;
using IntegerTag = hn::Repartition<int32_t, ByteTag>;
using SumTag = hn::Repartition<float, ByteTag>;
constexpr size_t kBytes = HWY_MIN(4 * kLanes, 32), kSums = kBytes / 4;
#endif
using Integers = hn::Vec<IntegerTag>;
using Sums = hn::Vec<SumTag>;

// Bytes [at, at + kBytes) as they are multiplied, by type: a code's bytes are signed unless they are
// kUnsigned.
#if HWY_TARGET == HWY_SCALAR
template <bool kUnsigned>
HWY_INLINE Integers four_products(Integers codes, Integers x) {
    return hn::Mul(codes, x);
}
HWY_INLINE Integers load_bytes(const void* at) {
    return hn::Set(IntegerTag(), *static_cast<const int8_t*>(at));
}
#else
HWY_INLINE Integers load_bytes(const void* at) {
    return hn::BitCast(IntegerTag(), hn::LoadU(ByteTag(), static_cast<const int8_t*>(at)));
}
#if HWY_ARCH_X86
template <bool kUnsigned>
HWY_INLINE Integers four_products(Integers codes, Integers x) {
    if constexpr (kUnsigned) return word_pairs(byte_pairs(codes, x));
    const Integers magnitudes = hn::BitCast(IntegerTag(), hn::Abs(hn::BitCast(ByteTag(), codes)));
    return word_pairs(byte_pairs(magnitudes, with_sign_of(x, codes)));
}
#else
template <int n>
HWY_INLINE Integers byte_of(Integers four) {
    return hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * n>(four));
}
template <bool kUnsigned>
HWY_INLINE Integers four_products(Integers codes, Integers x) {
    return hn::Add(
        hn::Add(hn::Mul(byte_of<0>(codes), byte_of<0>(x)), hn::Mul(byte_of<1>(codes), byte_of<1>(x))),
        hn::Add(hn::Mul(byte_of<2>(codes), byte_of<2>(x)), hn::Mul(byte_of<3>(codes), byte_of<3>(x))));
}
#endif
#endif

// Sums of rows of W: products, and least values times sums of X, by lanes where a block has many.
struct RowSums {
    Sums products[kTogether], many_leasts[kTogether];
    float leasts[kTogether];
};

HWY_INLINE void add_scaled(Integers products, float scale, Sums& sum) {
    sum = hn::MulAdd(hn::ConvertTo(SumTag(), products), hn::Set(SumTag(), scale), sum);
}

// Codes of a block of 32 with 4 bits, kBytes of them from value n on.
HWY_INLINE Integers four_bits(const unsigned char* codes, [[maybe_unused]] size_t n) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(I(), codes[n % 16] >> n / 16 * 4 & 15);
#elif HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    HWY_ALIGN static constexpr int32_t kShifts[8] = {0, 0, 0, 0, 4, 4, 4, 4};
    const hn::RebindToUnsigned<IntegerTag> words;
    const auto twice = hn::BitCast(words, hn::LoadDup128(ByteTag(), reinterpret_cast<const int8_t*>(codes)));
    const auto shifts = hn::BitCast(words, hn::Load(IntegerTag(), kShifts));
    return hn::BitCast(IntegerTag(), hn::And(hn::Shr(twice, shifts), hn::Set(words, 0x0f0f0f0fu)));
#else
    const hn::Repartition<uint8_t, IntegerTag> bytes;
    const auto both = hn::LoadU(bytes, codes);
    return hn::BitCast(IntegerTag(), n == 0 ? hn::And(both, hn::Set(bytes, 15)) : hn::ShiftRight<4>(both));
#endif
}

// Each format adds the products of a block of each row; x begins at that block's values.
struct IntegerBlock {
    const int8_t* q;
    const float *scales, *sums;
};

template <class Block>
struct NibbleRows {
    static constexpr size_t kNumbers = 32, kBlockBytes = Block::kBytes;
    static HWY_INLINE void add(const RowSet& rows, size_t at, const IntegerBlock& x, RowSums& sum) {
        Integers part[kTogether];
        FOVEA_UNROLL for (Integers& p : part) p = hn::Zero(IntegerTag());
        FOVEA_UNROLL for (size_t n = 0; n < 32; n += kBytes) {
            const Integers q = load_bytes(x.q + n);
            Integers eight = hn::Zero(IntegerTag());
            if (!Block::kHasMin) eight = four_products<true>(repeated_byte(8), q);
            FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
                const Integers products =
                    four_products<true>(four_bits(rows.row[r] + at + Block::kCodes, n), q);
                part[r] = hn::Add(part[r], Block::kHasMin ? products : hn::Sub(products, eight));
            }
        }
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
            Groups<Block> group;
            group.read(rows.row[r] + at);
            add_scaled(part[r], group.halves[0] * x.scales[0], sum.products[r]);
            if (Block::kHasMin) sum.leasts[r] += group.halves[1] * x.sums[0];
        }
    }
    static HWY_INLINE Integers repeated_byte(int32_t byte) {
        return hn::Set(IntegerTag(), HWY_TARGET == HWY_SCALAR ? byte : byte * 0x01010101);
    }
};

struct ByteRows {
    static constexpr size_t kNumbers = 32, kBlockBytes = 34;
    static HWY_INLINE void add(const RowSet& rows, size_t at, const IntegerBlock& x, RowSums& sum) {
        Integers part[kTogether];
        FOVEA_UNROLL for (Integers& p : part) p = hn::Zero(IntegerTag());
        FOVEA_UNROLL for (size_t n = 0; n < 32; n += kBytes) {
            const Integers q = load_bytes(x.q + n);
            FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) part[r] =
                hn::Add(part[r], four_products<false>(load_bytes(rows.row[r] + at + 2 + n), q));
        }
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r)
            add_scaled(part[r], half_of(rows.row[r] + at) * x.scales[0], sum.products[r]);
    }
};

// Scales of a block of 256 times those of X, and least values times sums.
template <class Block>
HWY_INLINE void scale_groups(const Groups<Block>& groups, const IntegerBlock& x, float (&scales)[16],
                             Sums& leasts) {
    const SumTag f;
    if constexpr (Block::kGroup == 16)
        for (size_t g = 0; g < 16; ++g) scales[g] = groups.scales[g] * x.scales[g / 2];
    else
        FOVEA_UNROLL for (size_t g = 0; g < 8; g += kSums)
            hn::StoreU(hn::Mul(hn::LoadU(f, groups.scales + g), hn::LoadU(f, x.scales + g)), f, scales + g);
    if constexpr (Block::kHasMin)
        FOVEA_UNROLL for (size_t g = 0; g < 8; g += kSums) leasts =
            hn::MulAdd(hn::LoadU(f, groups.mins + g), hn::LoadU(f, x.sums + g), leasts);
}

struct LargeNibbleRows {
    static constexpr size_t kNumbers = 256, kBlockBytes = Q4K::kBytes;
    static HWY_INLINE void add(const RowSet& rows, size_t at, const IntegerBlock& x, RowSums& sum) {
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
            const unsigned char* const block = rows.row[r] + at;
            Groups<Q4K> groups;
            float scales[16];
            groups.read(block);
            scale_groups<Q4K>(groups, x, scales, sum.many_leasts[r]);
            FOVEA_UNROLL for (size_t pair = 0; pair < 4; ++pair) {
                Integers low = hn::Zero(IntegerTag()), high = hn::Zero(IntegerTag());
                FOVEA_UNROLL for (size_t n = 0; n < 32; n += kBytes) {
                    const Integers codes = load_bytes(block + Q4K::kCodes + 32 * pair + n);
                    const int8_t* const q = x.q + 64 * pair + n;
                    low = hn::Add(low, four_products<true>(low_half(codes), load_bytes(q)));
                    high = hn::Add(
                        high, four_products<true>(low_half(hn::ShiftRight<4>(codes)), load_bytes(q + 32)));
                }
                add_scaled(low, scales[2 * pair], sum.products[r]);
                add_scaled(high, scales[2 * pair + 1], sum.products[r]);
            }
        }
    }
    static HWY_INLINE Integers low_half(Integers codes) {
        return hn::And(codes, hn::Set(IntegerTag(), 0x0f0f0f0f));
    }
};

// Types whose codes unpack() takes apart: 256 values at a time go through memory, as in coded_rows.
template <class Block>
struct CodedRows {
    static constexpr size_t kNumbers = Block::kNumbers, kBlockBytes = Block::kBytes;
    static HWY_INLINE void add(const RowSet& rows, size_t at, const IntegerBlock& x, RowSums& sum) {
        HWY_ALIGN uint8_t codes[kTogether][kNumbers];
        float scales[kTogether][16];
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
            const unsigned char* const block = rows.row[r] + at;
            Groups<Block> groups;
            groups.read(block);
            if constexpr (kNumbers == 256) {
                scale_groups<Block>(groups, x, scales[r], sum.many_leasts[r]);
            } else {
                scales[r][0] = groups.halves[0] * x.scales[0];
                if (Block::kHasMin) sum.leasts[r] += groups.halves[1] * x.sums[0];
            }
            for (size_t unit = 0; unit < kNumbers / kUnit<Block>; ++unit)
                unpack(Block(), block, unit, codes[r] + unit * kUnit<Block>);
        }
        for (size_t e = 0; e < kNumbers; e += kBytes) {
            const Integers q = load_bytes(x.q + e);
            const size_t g = e / Block::kGroup;
            FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
                const Integers products = four_products<Block::kHasMin>(load_bytes(codes[r] + e), q);
                Sums scale = hn::Set(SumTag(), scales[r][g]);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
                if constexpr (Block::kGroup == 16) {
                    const hn::Half<SumTag> half;
                    scale =
                        hn::Combine(SumTag(), hn::Set(half, scales[r][g + 1]), hn::Set(half, scales[r][g]));
                }
#endif
                sum.products[r] = hn::MulAdd(hn::ConvertTo(SumTag(), products), scale, sum.products[r]);
            }
        }
    }
};

template <class Format>
void multiply_rows(const BlockRows& call, uint64_t first, uint64_t end) {
    const size_t blocks = size_t(call.columns) / Format::kNumbers;
    for_row_sets(call, first, end, [&](const RowSet& rows) HWY_ATTR {
        RowSums sum;
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
            sum.products[r] = sum.many_leasts[r] = hn::Zero(SumTag());
            sum.leasts[r] = 0;
        }
        IntegerBlock x{call.integers, call.integer_scales, call.integer_sums};
        for (size_t b = 0; b < blocks; ++b) {
            Format::add(rows, b * Format::kBlockBytes, x, sum);
            x.q += Format::kNumbers, x.scales += Format::kNumbers / 32, x.sums += Format::kNumbers / 32;
        }
        float sums[kTogether];
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) sums[r] =
            hn::GetLane(hn::SumOfLanes(SumTag(), hn::Add(sum.products[r], sum.many_leasts[r]))) +
            sum.leasts[r];
        rows.store(call, sums);
    });
}

void integer_rows(const BlockRows& call, uint64_t first, uint64_t end) {
    switch (call.format) {
        case FOVEA_Q4_0:
            return multiply_rows<NibbleRows<SmallBlock<false, false>>>(call, first, end);
        case FOVEA_Q4_1:
            return multiply_rows<NibbleRows<Q41>>(call, first, end);
        case FOVEA_Q8_0:
            return multiply_rows<ByteRows>(call, first, end);
#if HWY_TARGET != HWY_SCALAR
        case FOVEA_Q4_K:
            return multiply_rows<LargeNibbleRows>(call, first, end);
#endif
        default:
            return with_weight_block(call.format, [&](auto block) HWY_ATTR {
                multiply_rows<CodedRows<decltype(block)>>(call, first, end);
            });
    }
}

void round_row(const float* x, uint64_t columns, int8_t* q, float* scales, float* sums) {
    for (size_t e = 0; e < columns; e += 32) {
        scales[e / 32] = quantize_block(x + e, q + e);
        sums[e / 32] = float(sum_of(q + e, 32)) * scales[e / 32];
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::few_rows) integer_rows_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET(target, integer_rows)
}
decltype(Kernels::round_row) round_row_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, round_row) }

}  // namespace fovea::cpu
#endif

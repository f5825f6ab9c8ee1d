// Products of integers for linear layers: X in blocks of 32 values of 8 bits with a float32 scale, W as its
// file's codes. Outputs are along the lanes; each lane holds four codes of its output. The codes of one group
// are multiplied exactly before they meet a float.
#if defined(FOVEA_CPU_INTEGER_PANEL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_INTEGER_PANEL_INL_HPP
#undef FOVEA_CPU_INTEGER_PANEL_INL_HPP
#else
#define FOVEA_CPU_INTEGER_PANEL_INL_HPP
#endif

#include "cpu/byte_products_inl.hpp"
#include "cpu/integer_x_inl.hpp"
#include "cpu/weight_blocks_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The products of bytes on x86 take one unsigned operand: the codes, raised by their least value. Elsewhere
// both are signed.
constexpr bool kRaised = HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR;

// Vector j is bytes 4j to 4j + 3 of the 16 at from(lane), for every lane.
template <class From>
HWY_INLINE void load_words(const From& from, VU (&to)[4]) {
#if HWY_TARGET == HWY_SCALAR
    uint32_t words[4];
    memcpy(words, from(0), sizeof words);
    for (size_t j = 0; j < 4; ++j) to[j] = hn::Set(U(), words[j]);
#else
    const hn::CappedTag<uint8_t, 16> bytes;
    const hn::CappedTag<float, 4> one;
    const auto block = [&](size_t lane) HWY_ATTR { return hn::BitCast(one, hn::LoadU(bytes, from(lane))); };
    V rows[4];
    FOVEA_UNROLL for (size_t n = 0; n < 4; ++n) {
#if HWY_TARGET == HWY_AVX3
        const hn::Half<F> half;
        rows[n] = hn::Combine(F(), hn::Combine(half, block(n + 12), block(n + 8)),
                              hn::Combine(half, block(n + 4), block(n)));
#elif HWY_TARGET == HWY_AVX2
        rows[n] = hn::Combine(F(), block(n + 4), block(n));
#else
        rows[n] = block(n);
#endif
    }
    const F f;
    const U u;
    const V a = hn::InterleaveLower(f, rows[0], rows[1]), b = hn::InterleaveUpper(f, rows[0], rows[1]);
    const V c = hn::InterleaveLower(f, rows[2], rows[3]), d = hn::InterleaveUpper(f, rows[2], rows[3]);
    to[0] = hn::BitCast(u, lower_pairs(a, c)), to[1] = hn::BitCast(u, upper_pairs(a, c));
    to[2] = hn::BitCast(u, lower_pairs(b, d)), to[3] = hn::BitCast(u, upper_pairs(b, d));
#endif
}

// A stretch of the rows of one panel. Codes are [values / 4][lane] words. Each group and lane has a scale
// and, if the type has one, a least value.
struct PackedCodes {
    uint32_t* codes;
    float *scales, *leasts;
};

// Rows of a panel: row `lane` at at[lane].
struct PanelRows {
    const unsigned char* at[kLanes];
};

// The float16 `offset` bytes into each of `blocks` blocks of each row, as floats.
template <class Format>
HWY_INLINE void pack_halves(const PanelRows& rows, size_t blocks, size_t offset, float* to) {
    constexpr size_t kAtOnce = 16;
    HWY_ALIGN uint16_t halves[kAtOnce][kLanes];
    for (size_t first = 0; first < blocks; first += kAtOnce) {
        const size_t count = HWY_MIN(kAtOnce, blocks - first);
        for (size_t lane = 0; lane < kLanes; ++lane)
            for (size_t b = 0; b < count; ++b)
                memcpy(&halves[b][lane], rows.at[lane] + (first + b) * Format::kBytes + offset, 2);
        for (size_t b = 0; b < count; ++b) hn::Store(load_row(halves[b]), F(), to + (first + b) * kLanes);
    }
}

// Two codes to a byte.
HWY_INLINE void store_halves(const VU (&bytes)[4], uint32_t* low, uint32_t* high) {
    const U u;
    const VU four = hn::Set(u, 0x0f0f0f0fu);
    FOVEA_UNROLL for (size_t j = 0; j < 4; ++j) {
        hn::Store(hn::And(bytes[j], four), u, low + j * kLanes);
        hn::Store(hn::And(hn::ShiftRight<4>(bytes[j]), four), u, high + j * kLanes);
    }
}

// How a type's rows are packed. A code is stored raised by kOffset and is then at most kMost; kMost of 128
// says that codes are signed.
template <class Block>
struct SmallNibbles {
    static constexpr size_t kNumbers = 32, kGroup = 32, kBytes = Block::kBytes;
    static constexpr int kOffset = Block::kHasMin ? 0 : 8, kMost = 15;
    static constexpr bool kHasMin = Block::kHasMin;
    static void pack(const PanelRows& rows, size_t count, const PackedCodes& to) {
        const size_t blocks = count / 32;
        for (size_t b = 0; b < blocks; ++b) {
            VU bytes[4];
            load_words([&](size_t lane) { return rows.at[lane] + b * kBytes + Block::kCodes; }, bytes);
            store_halves(bytes, to.codes + b * 8 * kLanes, to.codes + (b * 8 + 4) * kLanes);
        }
        pack_halves<SmallNibbles>(rows, blocks, 0, to.scales);
        if constexpr (kHasMin) pack_halves<SmallNibbles>(rows, blocks, 2, to.leasts);
    }
};

struct SignedBytes {
    static constexpr size_t kNumbers = 32, kGroup = 32, kBytes = 34;
    static constexpr int kOffset = 0, kMost = 128;
    static constexpr bool kHasMin = false;
    static void pack(const PanelRows& rows, size_t count, const PackedCodes& to) {
        for (size_t n = 0; n < count / 16; ++n) {
            VU bytes[4];
            load_words([&](size_t lane) { return rows.at[lane] + n / 2 * kBytes + 2 + n % 2 * 16; }, bytes);
            FOVEA_UNROLL for (size_t j = 0; j < 4; ++j)
                hn::Store(bytes[j], U(), to.codes + (4 * n + j) * kLanes);
        }
        pack_halves<SignedBytes>(rows, count / 32, 0, to.scales);
    }
};

// Four floats of each lane's `from(lane)` at a time.
template <class From>
HWY_INLINE void pack_floats(const From& from, size_t count, float* to) {
    for (size_t n = 0; n < count; n += 4) {
        VU words[4];
        load_words([&](size_t lane) { return reinterpret_cast<const unsigned char*>(from(lane) + n); },
                   words);
        FOVEA_UNROLL for (size_t j = 0; j < 4; ++j)
            hn::Store(hn::BitCast(F(), words[j]), F(), to + (n + j) * kLanes);
    }
}
template <class Block>
HWY_INLINE void pack_groups(const PanelRows& rows, size_t b, const PackedCodes& to) {
    constexpr size_t kGroups = Block::kNumbers / Block::kGroup;
    Groups<Block> groups[kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane) groups[lane].read(rows.at[lane] + b * Block::kBytes);
    pack_floats([&](size_t lane) { return groups[lane].scales; }, kGroups, to.scales + b * kGroups * kLanes);
    if constexpr (Block::kHasMin)
        pack_floats([&](size_t lane) { return groups[lane].mins; }, kGroups,
                    to.leasts + b * kGroups * kLanes);
}

struct LargeNibbles {
    static constexpr size_t kNumbers = 256, kGroup = 32, kBytes = Q4K::kBytes;
    static constexpr int kOffset = 0, kMost = 15;
    static constexpr bool kHasMin = true;
    static void pack(const PanelRows& rows, size_t count, const PackedCodes& to) {
        for (size_t b = 0; b < count / 256; ++b) {
            for (size_t n = 0; n < 8; ++n) {
                VU bytes[4];
                load_words([&](size_t lane) { return rows.at[lane] + b * kBytes + Q4K::kCodes + 16 * n; },
                           bytes);
                uint32_t* const low = to.codes + (b * 64 + n / 2 * 16 + n % 2 * 4) * kLanes;
                store_halves(bytes, low, low + 8 * kLanes);
            }
            pack_groups<Q4K>(rows, b, to);
        }
    }
};

// Types whose codes unpack() takes apart.
template <class Block>
struct Unpacked {
    static constexpr size_t kNumbers = Block::kNumbers, kGroup = Block::kGroup, kBytes = Block::kBytes;
    static constexpr int kOffset = Block::kHasMin || !kRaised ? 0 : kGroup == 16 ? 32 : 16;
    static constexpr int kMost = kGroup == 16 ? 63 : 31;
    static constexpr bool kHasMin = Block::kHasMin;
    static void pack(const PanelRows& rows, size_t count, const PackedCodes& to) {
        for (size_t b = 0; b < count / kNumbers; ++b) {
            HWY_ALIGN uint8_t codes[kLanes][kNumbers];
            for (size_t lane = 0; lane < kLanes; ++lane)
                for (size_t unit = 0; unit < kNumbers / kUnit<Block>; ++unit)
                    unpack(Block(), rows.at[lane] + b * kBytes, unit, codes[lane] + unit * kUnit<Block>);
            for (size_t n = 0; n < kNumbers / 16; ++n) {
                VU bytes[4];
                load_words([&](size_t lane) { return codes[lane] + 16 * n; }, bytes);
                FOVEA_UNROLL for (size_t j = 0; j < 4; ++j)
                    hn::Store(raised(bytes[j]), U(), to.codes + (b * kNumbers / 4 + 4 * n + j) * kLanes);
            }
            if constexpr (kNumbers == 256) pack_groups<Block>(rows, b, to);
        }
        if constexpr (kNumbers == 32) pack_halves<Unpacked>(rows, count / 32, 0, to.scales);
        if constexpr (kNumbers == 32 && kHasMin) pack_halves<Unpacked>(rows, count / 32, 2, to.leasts);
    }
    static HWY_INLINE VU raised(VU bytes) {
#if HWY_TARGET != HWY_SCALAR
        const hn::Repartition<uint8_t, U> b;
        if (kOffset != 0)
            return hn::BitCast(U(), hn::Add(hn::BitCast(b, bytes), hn::Set(b, uint8_t(kOffset))));
#endif
        return bytes;
    }
};

// Calls body(Format()).
template <class Body>
HWY_INLINE void with_integer_format(FoveaDtype type, const Body& body) {
    switch (type) {
        case FOVEA_Q4_0:
            return body(SmallNibbles<SmallBlock<false, false>>());
        case FOVEA_Q4_1:
            return body(SmallNibbles<Q41>());
        case FOVEA_Q8_0:
            return body(SignedBytes());
        case FOVEA_Q4_K:
            return body(LargeNibbles());
        case FOVEA_Q5_0:
            return body(Unpacked<Q50>());
        case FOVEA_Q5_1:
            return body(Unpacked<Q51>());
        case FOVEA_Q5_K:
            return body(Unpacked<Q5K>());
        default:
            return body(Unpacked<Q6K>());
    }
}

// A row of X: values q times the scale of their block of 32. A type with an offset is corrected by
// -kOffset * sum of a group's q, one with a least value adds it times scale * sum.
struct IntegerRow {
    const int8_t* q;
    const float* scales;
    const void* extra;  // int32 or float for each group
};

HWY_INLINE VI four_values(const int8_t* at) {
    int32_t word;
    memcpy(&word, at, sizeof word);
    return hn::Set(I(), word);
}

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
// Adds the products of a group of codes and of R rows to their sums. So many products of pairs fit 16 bits.
template <class Format, size_t R>
HWY_INLINE void add_integers(const uint32_t* codes, const int8_t* const (&x)[R], VI (&sum)[R]) {
    constexpr size_t kWords = Format::kGroup / 4, kFit = HWY_MIN(kWords, 32767 / (Format::kMost * 2 * 127));
    constexpr bool kSigned = Format::kMost == 128;
    const hn::Repartition<int16_t, I> words;
    const hn::Repartition<int8_t, I> bytes;
    FOVEA_UNROLL for (size_t j = 0; j < kWords; j += kFit) {
        VI pairs[R];
        FOVEA_UNROLL for (size_t n = 0; n < kFit; ++n) {
            const VI code = hn::BitCast(I(), hn::Load(U(), codes + (j + n) * kLanes));
            const VI magnitude = kSigned ? hn::BitCast(I(), hn::Abs(hn::BitCast(bytes, code))) : code;
            FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
                const VI four = four_values(x[r] + 4 * (j + n));
                const VI products = byte_pairs(magnitude, kSigned ? with_sign_of(four, code) : four);
                pairs[r] = n == 0 ? products
                                  : hn::BitCast(I(), hn::Add(hn::BitCast(words, pairs[r]),
                                                             hn::BitCast(words, products)));
            }
        }
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) sum[r] = hn::Add(sum[r], word_pairs(pairs[r]));
    }
}
#else
// Byte n of each lane, with its sign.
template <int n>
HWY_INLINE VI byte_of(VI four) {
    return hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * n>(four));
}
template <class Format, size_t R>
HWY_INLINE void add_integers(const uint32_t* codes, const int8_t* const (&x)[R], VI (&sum)[R]) {
    for (size_t j = 0; j < Format::kGroup / 4; ++j) {
        const VI code = hn::BitCast(I(), hn::Load(U(), codes + j * kLanes));
        const VI part[4] = {byte_of<0>(code), byte_of<1>(code), byte_of<2>(code), byte_of<3>(code)};
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) FOVEA_UNROLL for (size_t n = 0; n < 4; ++n) sum[r] =
            hn::Add(sum[r], hn::Mul(part[n], hn::Set(I(), x[r][4 * j + n])));
    }
}
#endif

// sum[r] += the products of `count` values of row r, from value `first` on, in ascending order of groups.
template <class Format, size_t R>
HWY_INLINE void add_stretch(const PackedCodes& w, const IntegerRow (&x)[R], size_t first, size_t count,
                            V (&sum)[R]) {
    const F f;
    for (size_t e = 0, g = 0; e < count; e += Format::kGroup, ++g) {
        const int8_t* q[R];
        VI products[R];
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
            q[r] = x[r].q + first + e;
            products[r] = hn::Zero(I());
            if constexpr (Format::kOffset != 0)
                products[r] =
                    hn::Set(I(), static_cast<const int32_t*>(x[r].extra)[first / Format::kGroup + g]);
        }
        add_integers<Format>(w.codes + e / 4 * kLanes, q, products);
        const V scale = hn::Load(f, w.scales + g * kLanes);
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
            const V of_x = hn::Set(f, x[r].scales[(first + e) / 32]);
            sum[r] = mul_add(hn::Mul(hn::ConvertTo(f, products[r]), scale), of_x, sum[r]);
        }
        if constexpr (Format::kHasMin) {
            const V least = hn::Load(f, w.leasts + g * kLanes);
            FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
                const float all = static_cast<const float*>(x[r].extra)[first / Format::kGroup + g];
                sum[r] = mul_add(least, hn::Set(f, all), sum[r]);
            }
        }
    }
}

template <class Format, class T>
void quantize_row(const T* x, size_t count, int8_t* q, float* scales, void* extra) {
    for (size_t e = 0; e < count; e += 32) scales[e / 32] = quantize_block(x + e, q + e);
    if constexpr (Format::kOffset == 0 && !Format::kHasMin) return;
    for (size_t e = 0; e < count; e += Format::kGroup) {
        const int32_t sum = sum_of(q + e, Format::kGroup);
        if constexpr (Format::kHasMin)
            static_cast<float*>(extra)[e / Format::kGroup] = float(sum) * scales[e / 32];
        else
            static_cast<int32_t*>(extra)[e / Format::kGroup] = -Format::kOffset * sum;
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

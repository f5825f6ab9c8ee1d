// Multiplies rows in Q4_0 with activations as integers: three signed bytes per value and one power of two per
// block of 32 values. One instruction multiplies 64 weights as they are stored, and sums are exact up to the
// block's scale. Only AVX-512 uses this; elsewhere converting to float32 is as fast, or was not measured.
#if defined(FOVEA_CPU_DIGIT_ROWS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_DIGIT_ROWS_INL_HPP
#undef FOVEA_CPU_DIGIT_ROWS_INL_HPP
#else
#define FOVEA_CPU_DIGIT_ROWS_INL_HPP
#endif

#include "cpu/block_rows_inl.hpp"

#include <bit>

#undef FOVEA_DIGIT_ROWS
#if HWY_TARGET == HWY_AVX3 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
#define FOVEA_DIGIT_ROWS 1
#else
#define FOVEA_DIGIT_ROWS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

#if FOVEA_DIGIT_ROWS
// sum[lane] += the products of the lane's four bytes, twice: of weights (0 to 15) and digits.
template <bool kByteProducts>
HWY_INLINE __m512i add_products(__m512i sum, __m512i low, __m512i high, const int8_t (&digits)[2][64]) {
    const __m512i first = _mm512_load_si512(digits[0]), second = _mm512_load_si512(digits[1]);
    if constexpr (kByteProducts) {
        // AVX512-VNNI, which this file's flags do not name.
        asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(low), "v"(first));
        asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(high), "v"(second));
        return sum;
    }
    // Four products of at most 15 * 128 stay far from the ends of 16 bits.
    const __m512i pairs =
        _mm512_add_epi16(_mm512_maddubs_epi16(low, first), _mm512_maddubs_epi16(high, second));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

// Four blocks of a row: their 4-bit weights and, four lanes each, their scales.
struct PackedBlocks {
    __m512i low, high;
    __m512 scales;
    // `count` of them are there; the others are zeros.
    HWY_INLINE PackedBlocks(const unsigned char* at, size_t count) {
        HWY_ALIGN static constexpr uint16_t kWeights[32] = {1,  2,  3,  4,  5,  6,  7,  8,  10, 11, 12,
                                                            13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24,
                                                            25, 26, 28, 29, 30, 31, 32, 33, 34, 35};
        HWY_ALIGN static constexpr uint16_t kScales[32] = {0,  0,  0,  0,  9,  9,  9,  9,
                                                           18, 18, 18, 18, 27, 27, 27, 27};
        const __m512i begin = count == 4 ? _mm512_loadu_si512(at)
                                         : _mm512_maskz_loadu_epi16(__mmask32((1u << 9 * count) - 1u), at);
        const __m512i end =
            count == 4 ? _mm512_zextsi128_si512(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + 64)))
                       : _mm512_setzero_si512();
        const __m512i bytes = _mm512_permutex2var_epi16(begin, _mm512_load_si512(kWeights), end);
        const __m512i four = _mm512_set1_epi8(15);
        low = _mm512_and_si512(bytes, four), high = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), four);
        const __m512i halves = _mm512_permutexvar_epi16(_mm512_load_si512(kScales), begin);
        scales = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
    }
};

// Returns `sum` plus the contribution of four blocks of a row to each lane.
template <bool kByteProducts>
HWY_INLINE V add_group(const PackedBlocks& blocks, const DigitGroup& x, V sum) {
    const __m512i zero = _mm512_setzero_si512();
    const auto products = [&](__m512i from, size_t digit) HWY_ATTR {
        return add_products<kByteProducts>(from, blocks.low, blocks.high, x.digits[digit]);
    };
    const __m512i high = products(_mm512_load_si512(x.high_offset), 0), middle = products(zero, 1);
    const __m512i rest =
        _mm512_add_epi32(products(_mm512_load_si512(x.rest_offset), 2), _mm512_slli_epi32(middle, 8));
    const V number =
        mul_add(V{_mm512_cvtepi32_ps(high)}, hn::Set(F(), 65536.0f), V{_mm512_cvtepi32_ps(rest)});
    return mul_add(number, hn::Mul(V{blocks.scales}, hn::Load(F(), x.unit)), sum);
}

template <bool kByteProducts>
void digit_rows(const BlockRows& call, uint64_t first, uint64_t end) {
    const size_t blocks = size_t(call.columns) / 32, groups = blocks / 4;
    for_row_sets(call, first, end, [&](const RowSet& rows) HWY_ATTR {
        V sum[kTogether];
        FOVEA_UNROLL for (V& s : sum) s = hn::Zero(F());
        size_t at = 0;
        for (size_t g = 0; g < groups; ++g, at += 4 * BlockQ4::kBytes) {
            FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) sum[r] =
                add_group<kByteProducts>(PackedBlocks(rows.row[r] + at, 4), call.digits[g], sum[r]);
        }
        if (blocks % 4) {
            FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) sum[r] = add_group<kByteProducts>(
                PackedBlocks(rows.row[r] + at, blocks % 4), call.digits[groups], sum[r]);
        }
        for (size_t n = 0; n < call.odd_blocks; ++n)
            BlockQ4::add(rows.row, call.odd[n] * BlockQ4::kBytes, call.x + call.odd[n] * 32, sum);
        float sums[kTogether];
        sum_lanes(sum, sums);
        rows.store(call, sums);
    });
}

// Splits 16 values, which are integers after the multiplication by `scale`, into digits: the highest at `to`,
// then the others.
HWY_INLINE void store_digits(V x, V scale, int8_t (&digits)[3][2][64], size_t half, size_t at) {
    const hn::Rebind<int8_t, F> bytes;
    const VI number = hn::NearestInt(hn::Mul(x, scale));
    const VI last = hn::ShiftRight<24>(hn::ShiftLeft<24>(number));
    const VI upper = hn::ShiftRight<8>(hn::Sub(number, last));
    const VI middle = hn::ShiftRight<24>(hn::ShiftLeft<24>(upper));
    const VI first = hn::ShiftRight<8>(hn::Sub(upper, middle));
    size_t n = 0;
    for (const VI digit : {first, middle, last})
        hn::StoreU(hn::DemoteTo(bytes, digit), bytes, digits[n++][half] + at);
}

// True if a block's values keep enough precision next to its largest one; then it writes their digits.
HWY_INLINE bool split_block(const float* x, DigitGroup& to, size_t block) {
    const F f;
    const V a = hn::LoadU(f, x), b = hn::LoadU(f, x + 16), zero = hn::Zero(f);
    const float most = hn::GetLane(hn::MaxOfLanes(f, hn::Max(hn::Abs(a), hn::Abs(b))));
    const float sum = hn::GetLane(hn::SumOfLanes(f, hn::Add(hn::Abs(a), hn::Abs(b))));
    if (sum == 0) return true;
    const float others = 31.0f - float(hn::CountTrue(f, hn::Eq(a, zero)) + hn::CountTrue(f, hn::Eq(b, zero)));
    if (!(sum < 0x1p60f) || most < 0x1p-60f || sum - most < others * most * kMinOfOthers) return false;
    // The largest has 23 bits, or 22 where its first digit would be 128.
    const uint32_t exponent = std::bit_cast<uint32_t>(most) >> 23;
    float scale = std::bit_cast<float>((127u + 22u + 127u - exponent) << 23);
    if (most * scale > 0x7f7f7f) scale *= 0.5f;
    store_digits(a, hn::Set(f, scale), to.digits, 0, 16 * block);
    store_digits(b, hn::Set(f, scale), to.digits, 1, 16 * block);
    for (size_t lane = 4 * block; lane < 4 * block + 4; ++lane) to.unit[lane] = 1 / scale;
    return true;
}

// Weights are stored with 8 added.
HWY_INLINE void store_offsets(DigitGroup& to) {
    const __m512i zero = _mm512_setzero_si512(), eight = _mm512_set1_epi8(8);
    const auto offset = [&](size_t digit) HWY_ATTR {
        return _mm512_sub_epi32(zero, add_products<false>(zero, eight, eight, to.digits[digit]));
    };
    _mm512_store_si512(to.high_offset, offset(0));
    _mm512_store_si512(to.rest_offset, _mm512_add_epi32(_mm512_slli_epi32(offset(1), 8), offset(2)));
}
#endif  // FOVEA_DIGIT_ROWS

// Splits call.x if that helps: sets call.digits, call.odd and call.odd_blocks, which point into `groups` and
// `odd`.
inline void split_into_digits(BlockRows& call, [[maybe_unused]] DigitGroup* groups,
                              [[maybe_unused]] uint32_t* odd) {
    call.digits = nullptr, call.odd = nullptr, call.odd_blocks = 0;
#if FOVEA_DIGIT_ROWS
    if (call.format != FOVEA_Q4_0) return;
    const size_t blocks = size_t(call.columns) / 32;
    for (size_t b = 0; b < blocks; ++b)
        if (!split_block(call.x + 32 * b, groups[b / 4], b % 4)) odd[call.odd_blocks++] = uint32_t(b);
    // Each is work for the digits and for float32.
    if (call.odd_blocks * 4 > blocks) return;
    for (size_t g = 0; g < (blocks + 3) / 4; ++g) store_offsets(groups[g]);
    call.digits = groups, call.odd = odd;
#endif
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

// Dot products of stored rows with one row of activations, for one target.
#if defined(FOVEA_CPU_BLOCK_ROWS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_BLOCK_ROWS_INL_HPP
#undef FOVEA_CPU_BLOCK_ROWS_INL_HPP
#else
#define FOVEA_CPU_BLOCK_ROWS_INL_HPP
#endif

#include "cpu/block_rows.hpp"
#include "cpu/compressed_row_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

HWY_INLINE V product(VI numbers, const float* x, V sum) {
    return mul_add(hn::ConvertTo(F(), numbers), hn::LoadU(F(), x), sum);
}

// Each format adds the products of one block to a sum.

struct BlockQ8 {
    static constexpr size_t kNumbers = 32, kBytes = 34;
    static HWY_INLINE void add(const unsigned char* block, const float* x, V& sum) {
        V part = hn::Zero(F());
        for (size_t j = 0; j < 32; j += kLanes) part = product(signed_bytes_of(block + 2 + j), x + j, part);
        sum = mul_add(hn::Set(F(), half_of(block)), part, sum);
    }
};

struct BlockQ4 {
    static constexpr size_t kNumbers = 32, kBytes = 18;
    static HWY_INLINE void add(const unsigned char* block, const float* x, V& sum) {
        V part = hn::Zero(F());
#if HWY_TARGET == HWY_AVX3
        // A register holds a float for each of the 16 numbers, and the lookup reads four bits of its index.
        const V numbers = hn::Iota(F(), -8.0f);
        const VI bytes = bytes_of(block + 2);
        const V low{_mm512_permutexvar_ps(bytes.raw, numbers.raw)};
        const V high{_mm512_permutexvar_ps(high_of(bytes).raw, numbers.raw)};
        part = mul_add(low, hn::LoadU(F(), x), part);
        part = mul_add(high, hn::LoadU(F(), x + 16), part);
#else
        const VI eight = hn::Set(I(), 8);
        for (size_t j = 0; j < 16; j += kLanes) {
            const VI bytes = bytes_of(block + 2 + j);
            part = product(hn::Sub(low_of(bytes), eight), x + j, part);
            part = product(hn::Sub(high_of(bytes), eight), x + 16 + j, part);
        }
#endif
        sum = mul_add(hn::Set(F(), half_of(block)), part, sum);
    }
};

// Scale and least value of a group of a k-quant, 6 bits each, as quantised.cpp has them.
struct GroupScale {
    uint32_t scale, least;
};
HWY_INLINE GroupScale group_scale(const unsigned char* s, size_t group) {
    if (group < 4) return {s[group] & 63u, s[group + 4] & 63u};
    return {(s[group + 4] & 15u) | uint32_t(s[group - 4]) >> 6 << 4,
            uint32_t(s[group + 4]) >> 4 | uint32_t(s[group]) >> 6 << 4};
}

template <bool kFifth>
struct BlockQ45K {
    static constexpr size_t kNumbers = 256, kBytes = kFifth ? 176 : 144;
    static HWY_INLINE void add(const unsigned char* block, const float* x, V& sum) {
        const F f;
        const float scales = half_of(block), leasts = half_of(block + 2);
        const unsigned char* const fifth = block + 16;
        const unsigned char* q = block + (kFifth ? 48 : 16);
        for (size_t pair = 0; pair < 4; ++pair, q += 32, x += 64) {
            const GroupScale a = group_scale(block + 4, 2 * pair), b = group_scale(block + 4, 2 * pair + 1);
            const V scale_a = hn::Set(f, scales * float(a.scale)),
                    scale_b = hn::Set(f, scales * float(b.scale));
            const V least_a = hn::Set(f, leasts * float(a.least)),
                    least_b = hn::Set(f, leasts * float(b.least));
            for (size_t l = 0; l < 32; l += kLanes) {
                const VI bytes = bytes_of(q + l);
                VI low = low_of(bytes), high = high_of(bytes);
                if constexpr (kFifth) {
                    const VI bits = bytes_of(fifth + l);
                    const VI one = hn::Set(I(), 1);
                    low =
                        hn::Add(low, hn::ShiftLeft<4>(hn::And(hn::ShiftRightSame(bits, int(2 * pair)), one)));
                    high = hn::Add(
                        high, hn::ShiftLeft<4>(hn::And(hn::ShiftRightSame(bits, int(2 * pair + 1)), one)));
                }
                const V value_a = hn::Sub(hn::Mul(scale_a, hn::ConvertTo(f, low)), least_a);
                const V value_b = hn::Sub(hn::Mul(scale_b, hn::ConvertTo(f, high)), least_b);
                sum = mul_add(value_a, hn::LoadU(f, x + l), sum);
                sum = mul_add(value_b, hn::LoadU(f, x + 32 + l), sum);
            }
        }
    }
};

struct BlockQ6K {
    static constexpr size_t kNumbers = 256, kBytes = 210;
    static HWY_INLINE void add(const unsigned char* block, const float* x, V& sum) {
        const F f;
        const float scales = half_of(block + 208);
        const VI three = hn::Set(I(), 3), offset = hn::Set(I(), 32);
        for (size_t half = 0; half < 2; ++half, x += 128) {
            const unsigned char *low = block + 64 * half, *high = block + 128 + 32 * half;
            const auto* scale = reinterpret_cast<const int8_t*>(block + 192 + 8 * half);
            for (size_t side = 0; side < 2; ++side) {  // of 16 numbers that share their scales
                V part[4] = {hn::Zero(f), hn::Zero(f), hn::Zero(f), hn::Zero(f)};
                for (size_t n = 0; n < 16; n += kLanes) {
                    const size_t l = 16 * side + n;
                    const VI first = bytes_of(low + l), second = bytes_of(low + 32 + l),
                             bits = bytes_of(high + l);
                    const auto add = [&](size_t quarter, VI four, VI two) HWY_ATTR {
                        const VI whole = hn::Or(four, hn::ShiftLeft<4>(hn::And(two, three)));
                        part[quarter] = product(hn::Sub(whole, offset), x + 32 * quarter + l, part[quarter]);
                    };
                    add(0, low_of(first), bits);
                    add(1, low_of(second), hn::ShiftRight<2>(bits));
                    add(2, high_of(first), hn::ShiftRight<4>(bits));
                    add(3, high_of(second), hn::ShiftRight<6>(bits));
                }
                for (size_t quarter = 0; quarter < 4; ++quarter)
                    sum = mul_add(hn::Set(f, scales * float(scale[side + 2 * quarter])), part[quarter], sum);
            }
        }
    }
};

template <class Block>
void block_rows(const BlockRows& call, uint64_t first, uint64_t end) {
    const size_t blocks = size_t(call.columns) / Block::kNumbers;
    for (uint64_t n = first; n < end; ++n) {
        const unsigned char* block = call.weights + n * call.row_bytes;
        const float* x = call.x;
        V even = hn::Zero(F()), odd = hn::Zero(F());  // neighbouring blocks do not wait for each other
        // Two to a turn, so that both sums stay in registers.
        size_t b = 0;
        for (; b + 2 <= blocks; b += 2, block += 2 * Block::kBytes, x += 2 * Block::kNumbers) {
            Block::add(block, x, even);
            Block::add(block + Block::kBytes, x + Block::kNumbers, odd);
        }
        if (b < blocks) Block::add(block, x, even);
        call.y[n] = hn::GetLane(hn::SumOfLanes(F(), hn::Add(even, odd))) + (call.bias ? call.bias[n] : 0.0f);
    }
}

struct Widen32 {
    using Number = float;
    static HWY_INLINE V load(const float* at) { return load_row(at); }
    static HWY_INLINE float one(const float* at) { return *at; }
};
struct Widen16 {
    using Number = uint16_t;
    static HWY_INLINE V load(const uint16_t* at) { return load_row(at); }
    static HWY_INLINE float one(const uint16_t* at) { return half_to_float(*at); }
};
struct WidenBrain {
    using Number = uint16_t;
    static HWY_INLINE V load(const uint16_t* at) {
        const hn::Rebind<uint16_t, F> words;
        return hn::BitCast(F(), hn::ShiftLeft<16>(hn::PromoteTo(I(), hn::LoadU(words, at))));
    }
    static HWY_INLINE float one(const uint16_t* at) { return bfloat_to_float(*at); }
};

template <class Widen>
void float_rows(const BlockRows& call, uint64_t first, uint64_t end) {
    const F f;
    const size_t columns = size_t(call.columns), whole = columns / kLanes * kLanes;
    for (uint64_t n = first; n < end; ++n) {
        const auto* row = reinterpret_cast<const typename Widen::Number*>(call.weights + n * call.row_bytes);
        V sums[4] = {hn::Zero(f), hn::Zero(f), hn::Zero(f), hn::Zero(f)};
        size_t e = 0;
        for (; e + 4 * kLanes <= whole; e += 4 * kLanes)
            FOVEA_UNROLL for (size_t s = 0; s < 4; ++s) sums[s] =
                mul_add(Widen::load(row + e + s * kLanes), hn::LoadU(f, call.x + e + s * kLanes), sums[s]);
        for (; e < whole; e += kLanes)
            sums[0] = mul_add(Widen::load(row + e), hn::LoadU(f, call.x + e), sums[0]);
        float total =
            hn::GetLane(hn::SumOfLanes(f, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
        for (; e < columns; ++e) total += Widen::one(row + e) * call.x[e];
        call.y[n] = total + (call.bias ? call.bias[n] : 0.0f);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

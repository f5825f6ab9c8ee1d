// Dot products of stored rows with one row of activations, for one target.
#if defined(FOVEA_CPU_BLOCK_ROWS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_BLOCK_ROWS_INL_HPP
#undef FOVEA_CPU_BLOCK_ROWS_INL_HPP
#else
#define FOVEA_CPU_BLOCK_ROWS_INL_HPP
#endif

#include "cpu/block_rows.hpp"
#include "cpu/row_products_inl.hpp"
#include "cpu/weight_blocks_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Rows at a time, each from a separate part of the matrix. They share the loads of x, and reading from so
// many places avoids that the CPU's hardware prefetch stops at the end of a page. Targets with few registers
// take one row at a time.
constexpr size_t kTogether = kLanes < 4 || HWY_ARCH_WASM ? 1 : kRowParts;

// The float16 at `at` in all lanes.
HWY_INLINE V halves_of(const unsigned char* at) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    int16_t half;
    memcpy(&half, at, sizeof half);
#if HWY_TARGET == HWY_AVX3
    return V{_mm512_cvtph_ps(_mm256_set1_epi16(half))};
#else
    return V{_mm256_cvtph_ps(_mm_set1_epi16(half))};
#endif
#else
    return hn::Set(F(), half_of(at));
#endif
}

HWY_INLINE V product(VI numbers, V x, V sum) { return mul_add(hn::ConvertTo(F(), numbers), x, sum); }
HWY_INLINE V product(VI numbers, const float* x, V sum) { return product(numbers, hn::LoadU(F(), x), sum); }

// Each format adds the products of a block of each of R rows to their sums.

struct BlockQ8 {
    static constexpr size_t kNumbers = 32, kBytes = 34;
    template <size_t R>
    static HWY_INLINE void add(const unsigned char* const (&block)[R], size_t at, const float* x,
                               V (&sum)[R]) {
        V part[R];
        FOVEA_UNROLL for (V& p : part) p = hn::Zero(F());
        FOVEA_UNROLL for (size_t j = 0; j < 32; j += kLanes) {
            const V numbers = hn::LoadU(F(), x + j);
            FOVEA_UNROLL for (size_t r = 0; r < R; ++r) part[r] =
                product(signed_bytes_of(block[r] + at + 2 + j), numbers, part[r]);
        }
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) sum[r] =
            mul_add(halves_of(block[r] + at), part[r], sum[r]);
    }
};

struct BlockQ4 {
    static constexpr size_t kNumbers = 32, kBytes = 18;
    template <size_t R>
    static HWY_INLINE void add(const unsigned char* const (&block)[R], size_t at, const float* x,
                               V (&sum)[R]) {
        V part[R];
        FOVEA_UNROLL for (V& p : part) p = hn::Zero(F());
        FOVEA_UNROLL for (size_t j = 0; j < 16; j += kLanes) {
            const V first = hn::LoadU(F(), x + j), second = hn::LoadU(F(), x + 16 + j);
            FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
                const VI bytes = bytes_of(block[r] + at + 2 + j);
#if HWY_TARGET == HWY_AVX3
                // A register holds a float for each of the 16 values, and the lookup reads four bits of its
                // index.
                const V numbers = hn::Iota(F(), -8.0f);
                part[r] = mul_add(V{_mm512_permutexvar_ps(bytes.raw, numbers.raw)}, first, part[r]);
                part[r] = mul_add(V{_mm512_permutexvar_ps(high_of(bytes).raw, numbers.raw)}, second, part[r]);
#else
                const VI eight = hn::Set(I(), 8);
                part[r] = product(hn::Sub(low_of(bytes), eight), first, part[r]);
                part[r] = product(hn::Sub(high_of(bytes), eight), second, part[r]);
#endif
            }
        }
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) sum[r] =
            mul_add(halves_of(block[r] + at), part[r], sum[r]);
    }
};

// Row n of each of kTogether parts from `part` on. Past the last row it is read again and not stored.
struct RowSet {
    HWY_INLINE RowSet(const BlockRows& call, uint64_t n, uint64_t part) {
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
            index[r] = HWY_MIN(n + (part + r) * call.part_rows, call.rows - 1);
            row[r] = call.weights + index[r] * call.row_bytes;
        }
    }
    HWY_INLINE void store(const BlockRows& call, const float (&sums)[kTogether]) const {
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) call.y[index[r]] =
            sums[r] + (call.bias ? call.bias[index[r]] : 0.0f);
    }
    uint64_t index[kTogether];
    const unsigned char* row[kTogether];
};
// The sum of the lanes of each vector.
HWY_INLINE void sum_lanes(const V (&v)[kTogether], float (&to)[kTogether]) {
#if HWY_TARGET == HWY_SCALAR || HWY_ARCH_WASM
    FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) to[r] = hn::GetLane(hn::SumOfLanes(F(), v[r]));
#else
    V sums = block_sums(v[0], v[1], v[2], v[3]);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    sums = hn::Add(sums, hn::SwapAdjacentBlocks(sums));
#endif
#if HWY_TARGET == HWY_AVX3
    sums = hn::Add(sums, hn::ConcatUpperUpper(F(), sums, sums));
#endif
    HWY_ALIGN float lanes[kLanes];
    hn::Store(sums, F(), lanes);
    FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) to[r] = lanes[r];
#endif
}
// Calls body(rows) for rows [first, end) of every part.
template <class Body>
HWY_INLINE void for_row_sets(const BlockRows& call, uint64_t first, uint64_t end, const Body& body) {
    for (uint64_t part = 0; part < kRowParts; part += kTogether)
        for (uint64_t n = first; n < end; ++n) body(RowSet(call, n, part));
}

template <class Block>
void block_rows(const BlockRows& call, uint64_t first, uint64_t end) {
    const size_t blocks = size_t(call.columns) / Block::kNumbers;
    for_row_sets(call, first, end, [&](const RowSet& rows) HWY_ATTR {
        const float* x = call.x;
        // Neighbouring blocks do not wait for each other. Two to a turn, so that both sums stay in registers.
        V even[kTogether], odd[kTogether];
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) even[r] = odd[r] = hn::Zero(F());
        size_t b = 0;
        for (; b + 2 <= blocks; b += 2, x += 2 * Block::kNumbers) {
            Block::add(rows.row, b * Block::kBytes, x, even);
            Block::add(rows.row, (b + 1) * Block::kBytes, x + Block::kNumbers, odd);
        }
        if (b < blocks) Block::add(rows.row, b * Block::kBytes, x, even);
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) even[r] = hn::Add(even[r], odd[r]);
        float sums[kTogether];
        sum_lanes(even, sums);
        rows.store(call, sums);
    });
}

// Adds the products of a group of each row to its sum; the group begins at codes[r] + first. Least values are
// multiplied with the sum of x, so an infinite x may give NaN where single products would give infinity.
template <class Block>
HWY_INLINE void add_group(const Groups<Block> (&groups)[kTogether], size_t g,
                          const uint8_t (&codes)[kTogether][256], size_t first, const float* x,
                          V (&sum)[kTogether]) {
    V part[kTogether], all = hn::Zero(F());
    FOVEA_UNROLL for (V& p : part) p = hn::Zero(F());
    FOVEA_UNROLL for (size_t j = 0; j < Block::kGroup; j += kLanes) {
        const V numbers = hn::LoadU(F(), x + j);
        if (Block::kHasMin) all = hn::Add(all, numbers);
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) part[r] =
            product(signed_bytes_of(codes[r] + first + j), numbers, part[r]);
    }
    FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
        if constexpr (Block::kHasMin) sum[r] = mul_add(groups[r].least(g), all, sum[r]);
        sum[r] = mul_add(groups[r].scale(g), part[r], sum[r]);
    }
}

// Rows of blocks of problem/weight_blocks.hpp, 256 values at a time. Codes go through memory: extending
// loads are faster than taking vectors apart. A load waits for a store just before it,
// so all 256 are stored first.
template <class Block>
void coded_rows(const BlockRows& call, uint64_t first, uint64_t end) {
    constexpr size_t kAtOnce = 256 / Block::kNumbers;
    const size_t blocks = size_t(call.columns) / Block::kNumbers;
    for_row_sets(call, first, end, [&](const RowSet& rows) HWY_ATTR {
        V sum[kTogether];
        FOVEA_UNROLL for (V& s : sum) s = hn::Zero(F());
        Groups<Block> groups[kAtOnce][kTogether];
        HWY_ALIGN uint8_t codes[kTogether][256];
        const float* x = call.x;
        for (size_t b = 0; b < blocks; b += kAtOnce) {
            const size_t count = HWY_MIN(kAtOnce, blocks - b);
            for (size_t n = 0; n < count; ++n) {
                FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
                    const unsigned char* const block = rows.row[r] + (b + n) * Block::kBytes;
                    groups[n][r].read(block);
                    for (size_t unit = 0; unit < Block::kNumbers / kUnit<Block>; ++unit)
                        unpack(Block(), block, unit, codes[r] + n * Block::kNumbers + unit * kUnit<Block>);
                }
            }
#if HWY_ARCH_X86 && defined(__GNUC__)
            asm volatile("" : "+m"(codes));  // or the compiler would take them apart after all
#endif
            for (size_t e = 0; e < count * Block::kNumbers; e += Block::kGroup, x += Block::kGroup) {
                const size_t g = e % Block::kNumbers / Block::kGroup;
                add_group<Block>(groups[e / Block::kNumbers], g, codes, e, x, sum);
            }
        }
        float sums[kTogether];
        sum_lanes(sum, sums);
        rows.store(call, sums);
    });
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
    constexpr size_t kSums = kTogether == 1 ? 4 : 2;  // sums of a row, to hide latency
    const size_t columns = size_t(call.columns), whole = columns / kLanes * kLanes;
    for_row_sets(call, first, end, [&](const RowSet& rows) HWY_ATTR {
        const typename Widen::Number* row[kTogether];
        V sums[kTogether][kSums];
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
            row[r] = reinterpret_cast<const typename Widen::Number*>(rows.row[r]);
            FOVEA_UNROLL for (V& s : sums[r]) s = hn::Zero(f);
        }
        size_t e = 0;
        for (; e + kSums * kLanes <= whole; e += kSums * kLanes) {
            FOVEA_UNROLL for (size_t s = 0; s < kSums; ++s) {
                const V x = hn::LoadU(f, call.x + e + s * kLanes);
                FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) sums[r][s] =
                    mul_add(Widen::load(row[r] + e + s * kLanes), x, sums[r][s]);
            }
        }
        for (; e < whole; e += kLanes)
            FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) sums[r][0] =
                mul_add(Widen::load(row[r] + e), hn::LoadU(f, call.x + e), sums[r][0]);
        V all[kTogether];
        FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) {
            all[r] = hn::Add(sums[r][0], sums[r][1]);
            if constexpr (kSums == 4) all[r] = hn::Add(all[r], hn::Add(sums[r][2], sums[r][3]));
        }
        float total[kTogether];
        sum_lanes(all, total);
        for (; e < columns; ++e)
            FOVEA_UNROLL for (size_t r = 0; r < kTogether; ++r) total[r] +=
                Widen::one(row[r] + e) * call.x[e];
        rows.store(call, total);
    });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

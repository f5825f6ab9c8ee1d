// Products of a few query rows with many keys, and sums of values that a few rows weight: every row of K and
// V is loaded once and stays in registers for all of them. Lanes lie along a row's elements.
#if defined(FOVEA_CPU_ROW_PRODUCTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#undef FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#else
#define FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#endif

#include "cpu/decode_layout.hpp"
#include "cpu/row_queue_inl.hpp"

#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The first n < kLanes elements, then zeros.
template <class T>
HWY_INLINE V load_part(const T* from, size_t n) {
    HWY_ALIGN float part[kLanes] = {};
    for (size_t e = 0; e < n; ++e) part[e] = load_one(from + e);
    return hn::Load(F(), part);
}

#if HWY_TARGET != HWY_SCALAR
// Lane n of each block of four is the sum of that block of the n-th vector.
HWY_INLINE V block_sums(V a, V b, V c, V d) {
    const F f;
    const V ab = hn::Add(hn::InterleaveLower(f, a, b), hn::InterleaveUpper(f, a, b));
    const V cd = hn::Add(hn::InterleaveLower(f, c, d), hn::InterleaveUpper(f, c, d));
    return hn::Add(lower_pairs(ab, cd), upper_pairs(ab, cd));
}
#endif

// Lane n is the sum of the lanes of v[n].
HWY_INLINE V sum_each(const V* v) {
#if HWY_TARGET == HWY_SCALAR
    return v[0];
#elif HWY_TARGET == HWY_AVX3
    const F f;
    const V a = block_sums(v[0], v[1], v[2], v[3]), b = block_sums(v[4], v[5], v[6], v[7]);
    const V c = block_sums(v[8], v[9], v[10], v[11]), d = block_sums(v[12], v[13], v[14], v[15]);
    const V ac = hn::Add(hn::ConcatLowerLower(f, c, a), hn::ConcatUpperUpper(f, c, a));
    const V bd = hn::Add(hn::ConcatLowerLower(f, d, b), hn::ConcatUpperUpper(f, d, b));
    return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(bd), ac),
                   hn::OddEvenBlocks(bd, hn::SwapAdjacentBlocks(ac)));
#elif HWY_TARGET == HWY_AVX2
    const F f;
    const V a = block_sums(v[0], v[1], v[2], v[3]), b = block_sums(v[4], v[5], v[6], v[7]);
    return hn::Add(hn::ConcatLowerLower(f, b, a), hn::ConcatUpperUpper(f, b, a));
#else
    return block_sums(v[0], v[1], v[2], v[3]);
#endif
}

// Whether `count` rows of n numbers each may be loaded by load_finite. Looking is cheaper than it saves, and
// where memory cannot be fetched ahead, many loads at a time are quicker than those of the products.
template <class T>
HWY_INLINE bool may_load_finite(const void* const* rows, size_t count, size_t n) {
    if constexpr (!kLoadsFinite<T>) return false;
    const hn::ScalableTag<int16_t> h;
    const size_t step = hn::Lanes(h);
    const auto magnitude = hn::Set(h, 0x7fff);
    auto most = hn::Zero(h);
    int16_t rest = 0;
    for (size_t j = 0; j < count; ++j) {
        const int16_t* row = static_cast<const int16_t*>(rows[j]);
        size_t e = 0;
        for (; e + step <= n; e += step) most = hn::Max(most, hn::And(hn::LoadU(h, row + e), magnitude));
        for (; e < n; ++e) rest = HWY_MAX(rest, int16_t(row[e] & 0x7fff));
    }
    return rest < 0x7c00 && hn::AllTrue(h, hn::Lt(most, hn::Set(h, 0x7c00)));
}

// Query rows that share a load of K or V.
constexpr size_t kRowTile = kLanes < 4 ? 1 : 4;
// Keys of a tile of products of R rows: enough sums that none waits for the one before, as many as stay in
// registers beside a vector of each key.
template <size_t R>
constexpr size_t kKeyTile = kLanes == 8 && R == 4 ? 3 : HWY_MAX(kLanes, kLanes == 4 ? 8 : 0) / R;
// Vectors of V that one pass over a run of rows sums, at most.
constexpr size_t kColumnTile = kLanes == 16 ? 4 : kLanes == 8 ? 3 : 2;
// Keys that are looked through at a time.
template <class T>
constexpr size_t kKeyRun = kLoadsFinite<T> ? 32 : kDecodeBlock;
// Where the numbers of a tile of R rows stand in a block of logits or weights.
enum class LogitOrder {
    by_key,  // of key j from j * kPanel on, as in a panel
    by_tile  // of key j from j * R on, one tile behind the other: no lane is idle
};
// That of key j and the tile's first row.
template <LogitOrder kOrder, size_t R>
constexpr size_t logit_at(size_t j, size_t row) {
    return kOrder == LogitOrder::by_key ? j * kPanel + row : row * kDecodeBlock + j * R;
}

// Steps of a loop along a row that reach from line to line; one where a loop of more would cost registers.
template <class T>
constexpr size_t kLineSteps = kLanes < 8 ? 1 : 64 / sizeof(T) / kLanes;

// Sums of a tile, and what they are made of: rows of K and of q, tile by tile and vector by vector.
template <size_t R, bool kFetch, bool kFinite, class T>
struct ProductTile {
    static constexpr size_t kKeys = kKeyTile<R>;
    const T* k[kKeys];
    const char* ahead[kKeys];
    const float* q;
    V sum[kKeys * R];

    // Written out: a compiler's own is not compiled for the target, and cannot hold the vectors' on Arm.
    HWY_INLINE explicit ProductTile(const float* rows) : q(rows) {}
    HWY_INLINE void fetch(size_t e) const {
        if constexpr (kFetch) {
            FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) fetch_line(ahead[j] + e * sizeof(T));
        }
    }
    HWY_INLINE void add(const V (&a)[kKeys], size_t e) {
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
            const V b = hn::Load(F(), q + e * R + r * kLanes);
            FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) sum[j * R + r] = mul_add(a[j], b, sum[j * R + r]);
        }
    }
    HWY_INLINE void step(size_t e) {
        V a[kKeys];
        FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) a[j] =
            kFinite ? load_finite(k[j] + e) : load_row(k[j] + e);
        add(a, e);
    }
    HWY_INLINE void run(size_t depth) {
        FOVEA_UNROLL for (V& s : sum) s = hn::Zero(F());
        constexpr size_t kLine = kLineSteps<T> * kLanes;
        size_t e = 0;
        for (; e + kLine <= depth; e += kLine) {
            if (kLine * sizeof(T) == 64 || e * sizeof(T) % 64 == 0) fetch(e);
            FOVEA_UNROLL for (size_t n = 0; n < kLineSteps<T>; ++n) step(e + n * kLanes);
        }
        if (kLineSteps < T >> 1 && e + kLanes <= depth) {
            fetch(e);
            for (; e + kLanes <= depth; e += kLanes) step(e);
        }
        if (e >= depth) return;
        V a[kKeys];
        FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) a[j] = load_part(k[j] + e, depth - e);
        add(a, e);
    }
    // The numbers themselves; `to` has room for whole vectors.
    HWY_INLINE void store_sums(float* to) const {
        constexpr size_t kWhole = kKeys * R / kLanes * kLanes;
        FOVEA_UNROLL for (size_t n = 0; n < kWhole; n += kLanes) hn::Store(sum_each(sum + n), F(), to + n);
#if HWY_TARGET == HWY_AVX2
        if constexpr (kKeys * R == kWhole + 4) {
            const V* s = sum + kWhole;
            const V halves = block_sums(s[0], s[1], s[2], s[3]);
            hn::Store(hn::Add(halves, hn::SwapAdjacentBlocks(halves)), F(), to + kWhole);
        }
#endif
    }
};

// The products of kKeyTile keys (fewer at the end) from `first` on with R rows of q; s points at that of
// the first of both.
template <size_t R, LogitOrder kOrder, bool kFetch, bool kFinite, class T>
HWY_INLINE void dot_rows_tile(const RowQueue& keys, size_t first, const float* q, size_t depth, float* s) {
    using Tile = ProductTile<R, kFetch, kFinite, T>;
    constexpr size_t kKeys = Tile::kKeys;
    const size_t count = HWY_MIN(kKeys, keys.now.count - first);
    Tile tile(q);
    const void* mixed[kKeys];
    const void* const* ahead = kFetch ? keys.ahead(first, count, mixed) : nullptr;
    FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) {
        const size_t n = j < count ? j : count - 1;
        tile.k[j] = static_cast<const T*>(keys.now.rows[first + n]);
        if constexpr (kFetch) tile.ahead[j] = static_cast<const char*>(ahead[n]);
    }
    tile.run(depth);
    HWY_ALIGN float sums[(kKeys * R + kLanes - 1) / kLanes * kLanes];
    tile.store_sums(sums);
    if constexpr (kOrder == LogitOrder::by_key) {
        FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) {
            if (j < count) memcpy(s + j * kPanel, sums + j * R, R * sizeof(float));
        }
    } else if (count == kKeys) {
        memcpy(s, sums, kKeys * R * sizeof(float));
    } else {
        memcpy(s, sums, count * R * sizeof(float));
    }
}

template <size_t R, LogitOrder kOrder, bool kFetch, class T>
HWY_NOINLINE void dot_rows_of(const RowQueue& keys, const float* q, size_t depth, float* s) {
    constexpr size_t kKeys = kKeyTile<R>;
    static_assert(kKeyRun<T> % kKeys == 0 || kKeyRun<T> == kDecodeBlock);
    for (size_t first = 0; first < keys.now.count; first += kKeyRun<T>) {
        const size_t end = HWY_MIN(first + kKeyRun<T>, keys.now.count);
        if (may_load_finite<T>(keys.now.rows + first, end - first, depth)) {
            for (size_t j = first; j < end; j += kKeys)
                dot_rows_tile<R, kOrder, kFetch, true, T>(keys, j, q, depth, s + logit_at<kOrder, R>(j, 0));
        } else {
            for (size_t j = first; j < end; j += kKeys)
                dot_rows_tile<R, kOrder, kFetch, false, T>(keys, j, q, depth, s + logit_at<kOrder, R>(j, 0));
        }
    }
}

// Calls body(size of the tile, first row) for tiles that cover `rows` rows.
template <class Body>
HWY_INLINE void for_row_tiles(size_t rows, const Body& body) {
    size_t r = 0;
    for (; r + kRowTile <= rows; r += kRowTile) body(std::integral_constant<size_t, kRowTile>(), r);
    if constexpr (kRowTile > 2) {
        if (r + 2 <= rows) body(std::integral_constant<size_t, 2>(), r), r += 2;
    }
    if (r < rows) body(std::integral_constant<size_t, 1>(), r);
}

// `rows` query rows of `dim` elements, widened and padded with zeros to whole vectors, as the tiles of
// dot_rows read them: `row(n)` is row n; the tile of rows from r on begins at to + r * depth.
template <class Row>
void pack_queries(const Row& row, size_t rows, size_t dim, size_t depth, float* to) {
    for_row_tiles(rows, [&](auto tile, size_t r) {
        for (size_t n = 0; n < tile(); ++n) {
            const auto* from = row(r + n);
            for (size_t e = 0; e < depth; e += kLanes) {
                const V v = e + kLanes <= dim ? load_row(from + e) : load_part(from + e, dim - e);
                hn::Store(v, F(), to + r * depth + e * tile() + n * kLanes);
            }
        }
    });
}

// The products of all keys of the block, whose elements are T, with `rows` rows of q as pack_queries left
// them. The block's first row is key `first` of the block of logits.
template <LogitOrder kOrder, class T>
void dot_rows(const RowQueue& keys, const float* q, size_t q_stride, size_t rows, size_t depth, float* s,
              size_t first = 0) {
    for_row_tiles(rows, [&](auto tile, size_t r) {
        const float* from = q + r * q_stride;
        float* to = s + logit_at<kOrder, tile()>(first, r);
        if (kFetchesAhead && r == 0)
            dot_rows_of<tile(), kOrder, kFetchesAhead, T>(keys, from, depth, to);
        else
            dot_rows_of<tile(), kOrder, false, T>(keys, from, depth, to);
    });
}

// A run of values, and what is fetched beside each.
struct ValueRun {
    const void* const* rows;
    const void* const* ahead;
    size_t count;
};

// o[r][lane] += sum over j of weight (j, r) * values[j][lane] for R rows and C vectors from column
// `c` on; `part`: only so many elements of the last vector exist. kSeen: a weight of 0 adds nothing, whatever
// it is multiplied with.
template <size_t R, size_t C, LogitOrder kOrder, bool kSeen, bool kFinite, class T>
HWY_INLINE void sum_rows_tile(const ValueRun& values, size_t c, size_t part, const float* weights, float* o,
                              size_t o_stride) {
    const F f;
    V sum[R][C];
    FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < C; ++v) {
            sum[r][v] = hn::Load(f, o + r * o_stride + c + v * kLanes);
        }
    }
    for (size_t j = 0; j < values.count; ++j) {
        const T* row = static_cast<const T*>(values.rows[j]) + c;
        const char* ahead = static_cast<const char*>(values.ahead[j]) + c * sizeof(T);
        FOVEA_UNROLL for (size_t at = 0; at < C * kLanes * sizeof(T); at += 64) { fetch_line(ahead + at); }
        V b[C];
        FOVEA_UNROLL for (size_t v = 0; v < C; ++v) {
            const T* at = row + v * kLanes;
            b[v] = part ? load_part(row, part) : kFinite ? load_finite(at) : load_row(at);
        }
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
            const float weight = weights[logit_at<kOrder, R>(j, 0) + r];
            if (kSeen && weight == 0) continue;
            const V a = hn::Set(f, weight);
            FOVEA_UNROLL for (size_t v = 0; v < C; ++v) sum[r][v] = mul_add(a, b[v], sum[r][v]);
        }
    }
    FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < C; ++v) {
            hn::Store(sum[r][v], f, o + r * o_stride + c + v * kLanes);
        }
    }
}

template <size_t R, LogitOrder kOrder, bool kSeen, bool kFinite, class T>
HWY_NOINLINE void sum_rows_of(const ValueRun& values, const float* weights, size_t columns, float* o,
                              size_t o_stride) {
    size_t c = 0;
    const auto left = [&] { return (columns - c) / kLanes; };
    // Where three go at a time none may be left alone: the few sums of one vector wait for each other.
    for (; left() >= kColumnTile && !(kColumnTile == 3 && left() == 4); c += kColumnTile * kLanes)
        sum_rows_tile<R, kColumnTile, kOrder, kSeen, kFinite, T>(values, c, 0, weights, o, o_stride);
    if constexpr (kColumnTile > 2) {
        for (; left() >= 2; c += 2 * kLanes)
            sum_rows_tile<R, 2, kOrder, kSeen, kFinite, T>(values, c, 0, weights, o, o_stride);
    }
    for (; c + kLanes <= columns; c += kLanes)
        sum_rows_tile<R, 1, kOrder, kSeen, kFinite, T>(values, c, 0, weights, o, o_stride);
    if (c < columns)
        sum_rows_tile<R, 1, kOrder, kSeen, kFinite, T>(values, c, columns - c, weights, o, o_stride);
}

// o[r][c] += sum over j of weight (j, r) * values[j][c] for all keys of the block, whose elements are T, and
// `rows` rows. The block's first row is key `first` of the block of weights.
template <LogitOrder kOrder, bool kSeen, class T>
void sum_rows(const RowQueue& values, const float* weights, size_t rows, size_t columns, float* o,
              size_t o_stride, size_t first = 0) {
    const void* mixed[kValueRun];
    for (size_t j = 0; j < values.now.count;) {
        const size_t count = HWY_MIN(kValueRun, values.now.count - j);
        const ValueRun run{values.now.rows + j, values.ahead(j, count, mixed), count};
        const bool finite = may_load_finite<T>(run.rows, count, columns);
        for_row_tiles(rows, [&](auto tile, size_t r) {
            const float* from = weights + logit_at<kOrder, tile()>(first + j, r);
            float* to = o + r * o_stride;
            if (kLoadsFinite<T> && finite)
                sum_rows_of<tile(), kOrder, kSeen, kLoadsFinite<T>, T>(run, from, columns, to, o_stride);
            else
                sum_rows_of<tile(), kOrder, kSeen, false, T>(run, from, columns, to, o_stride);
        });
        j += count;
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

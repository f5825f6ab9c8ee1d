// Multiplies a few query rows with many keys, and sums values with the weights of a few rows: every row of K
// and V is loaded once and stays in registers for all of them. Lanes are along a row's elements.
#if defined(FOVEA_CPU_ROW_PRODUCTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#undef FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#else
#define FOVEA_CPU_ROW_PRODUCTS_INL_HPP
#endif

#include "cpu/decode_layout.hpp"
#include "cpu/row_queue_inl.hpp"
#include "problem/rotation.hpp"

#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

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

// Query rows that share a load of K or V.
constexpr size_t kRowTile = kLanes < 4 ? 1 : 4;
// Keys of a tile of products of R rows: enough sums that none waits for the one before, and as many as fit
// into registers together with a vector of each key.
template <size_t R>
constexpr size_t kKeyTile = kLanes == 8 && R == 4 ? 3 : HWY_MAX(kLanes, kLanes == 4 ? 8 : 0) / R;
// Vectors of V that one pass over a run of rows sums, at most; of blocks, whole ones or halves.
template <class T>
constexpr size_t kColumnTile = kLanes == 16                            ? 4
                               : kLanes == 8 && !StoredRow<T>::kBlocks ? 3
                                                                       : 2;
// The order of a tile of R rows in a block of logits or weights.
enum class LogitOrder {
    by_key,  // key j starts at j * kPanel, as in a panel
    by_tile  // key j starts at j * R, tile after tile: no lane is idle
};
// Return the distance from one key to the next, and the index of key j and the tile's first row.
constexpr size_t logit_step(LogitOrder order, size_t tile) {
    return order == LogitOrder::by_key ? kPanel : tile;
}
constexpr size_t logit_at(LogitOrder order, size_t tile, size_t j, size_t row) {
    return (order == LogitOrder::by_key ? row : row * kDecodeBlock) + j * logit_step(order, tile);
}

// Sums of a tile, and what they are made of: rows of K and of q, tile by tile and vector by vector.
template <size_t R, class T>
struct ProductTile {
    using Row = StoredRow<T>;
    static constexpr size_t kKeys = kKeyTile<R>;
    const char* k[kKeys];
    const char* ahead[kKeys];
    const float* q;
    const RowFetch fetch;
    V sum[kKeys * R];

    // Written out: a compiler's own is not compiled for the target, and cannot hold the vectors' on Arm.
    HWY_INLINE ProductTile(const float* rows, RowFetch to) : q(rows), fetch(to) {}
    HWY_INLINE void add(const V (&a)[kKeys], size_t e) {
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
            const V b = hn::Load(F(), q + e * R + r * kLanes);
            FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) sum[j * R + r] = mul_add(a[j], b, sum[j * R + r]);
        }
    }
    // Processes vector n of the data at byte `at` of each row, which begins with element e.
    HWY_INLINE void step(size_t at, size_t n, const typename Row::Scale (&scale)[kKeys], size_t e) {
        V a[kKeys];
        FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) a[j] = Row::load(k[j] + at, n, scale[j]);
        add(a, e);
    }
    // Adds `numbers` elements of each row, in whole vectors and within a block.
    HWY_INLINE void add_numbers(size_t e, size_t numbers) {
        const size_t at = Row::bytes(e);
        typename Row::Scale scale[kKeys];
        FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) scale[j] = Row::scale(k[j] + at);
        FOVEA_UNROLL for (size_t n = 0; n < numbers; n += kLanes) step(at, n, scale, e + n);
    }
    HWY_INLINE void run(size_t depth) {
        FOVEA_UNROLL for (V& s : sum) s = hn::Zero(F());
        size_t e = 0;
        for (; e + Row::kTurn <= depth; e += Row::kTurn) {
            if (Row::kTurn >= Row::kFetch || e % Row::kFetch == 0) fetch_lines(ahead, Row::bytes(e), fetch);
            add_numbers(e, Row::kTurn);
        }
        if constexpr (Row::kBlocks) return;
        if (Row::kTurn > kLanes && e + kLanes <= depth) {
            fetch_lines(ahead, Row::bytes(e), fetch);
            for (; e + kLanes <= depth; e += kLanes) add_numbers(e, kLanes);
        }
        if (e >= depth) return;
        V a[kKeys];
        FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) a[j] = load_part<T>(k[j], e, depth - e);
        add(a, e);
    }
    // Stores the sums; `to` has room for whole vectors.
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
// the first of both, and has `step` elements from key to key.
template <size_t R, class T>
HWY_INLINE void dot_rows_tile(const RowQueue& keys, size_t first, const float* q, size_t depth, size_t step,
                              float* s) {
    using Tile = ProductTile<R, T>;
    constexpr size_t kKeys = Tile::kKeys;
    const size_t count = HWY_MIN(kKeys, keys.now.count - first);
    Tile tile(q, keys.fetch);
    const void* mixed[kKeys];
    const void* const* ahead = kFetchesAhead ? keys.ahead(first, count, mixed) : nullptr;
    FOVEA_UNROLL for (size_t j = 0; j < kKeys; ++j) {
        const size_t n = j < count ? j : count - 1;
        tile.k[j] = static_cast<const char*>(keys.now.rows[first + n]);
        if constexpr (kFetchesAhead) tile.ahead[j] = static_cast<const char*>(ahead[n]);
    }
    tile.run(depth);
    HWY_ALIGN float sums[(kKeys * R + kLanes - 1) / kLanes * kLanes];
    tile.store_sums(sums);
    if (step == R && count == kKeys) {
        memcpy(s, sums, kKeys * R * sizeof(float));
    } else {
        for (size_t j = 0; j < count; ++j) memcpy(s + j * step, sums + j * R, R * sizeof(float));
    }
}

template <size_t R, class T>
HWY_NOINLINE void dot_rows_of(const RowQueue& keys, const float* q, size_t depth, size_t step, float* s) {
    for (size_t j = 0; j < keys.now.count; j += kKeyTile<R>)
        dot_rows_tile<R, T>(keys, j, q, depth, step, s + j * step);
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
                const V v = e + kLanes <= dim ? load_row(from + e)
                                              : load_part<std::remove_cvref_t<decltype(*from)>>(
                                                    reinterpret_cast<const char*>(from), e, dim - e);
                hn::Store(v, F(), to + r * depth + e * tile() + n * kLanes);
            }
        }
    });
}

// Rotates rows as pack_queries left them, see problem/rotation.hpp; `dim` is a multiple of 32.
inline void rotate_packed_queries(size_t rows, size_t dim, float* packed) {
    for_row_tiles(rows, [&](auto tile, size_t r) {
        for (size_t first = 0; first < dim; first += kRotationBlock) {
            for (size_t n = 0; n < tile(); ++n) {
                float* const from = packed + r * dim + first * tile() + n * kLanes;
                HWY_ALIGN float block[kRotationBlock];
                for (size_t e = 0; e < kRotationBlock; e += kLanes)
                    hn::Store(hn::Load(F(), from + e * tile()), F(), block + e);
                rotate_row(block, kRotationBlock);
                for (size_t e = 0; e < kRotationBlock; e += kLanes)
                    hn::Store(hn::Load(F(), block + e), F(), from + e * tile());
            }
        }
    });
}

// The products of all keys of the block, whose elements are T, with `rows` rows of q as pack_queries left
// them. The block's first row is key `first` of the block of logits.
template <class T>
void dot_rows(const RowQueue& keys, const float* q, size_t q_stride, size_t rows, size_t depth,
              LogitOrder order, float* s, size_t first = 0) {
    for_row_tiles(rows, [&](auto tile, size_t r) {
        const float* from = q + r * q_stride;
        const RowQueue queue{keys.now, keys.next, r == 0 ? keys.fetch : RowFetch::none};
        dot_rows_of<tile(), T>(queue, from, depth, logit_step(order, tile()),
                               s + logit_at(order, tile(), first, r));
    });
}

// A run of values, and the addresses that are prefetched with each.
struct ValueRun {
    const void* const* rows;
    const void* const* ahead;
    size_t count;
    RowFetch fetch;
};

// Weights of a tile of rows: the weight of its first row and key j is first[j * step].
struct RowWeights {
    const float* first;
    size_t step;
};

// o[r][lane] += sum over j of weight (j, r) * values[j][lane] for R rows and C vectors from column
// `c` on; `part`: only so many elements of the last vector exist. kSeen: a weight of 0 adds nothing, whatever
// it is multiplied with.
template <size_t R, size_t C, bool kSeen, class T>
HWY_INLINE void sum_rows_tile(const ValueRun& values, size_t c, size_t part, RowWeights weights, float* o,
                              size_t o_stride) {
    const F f;
    V sum[R][C];
    FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < C; ++v) {
            sum[r][v] = hn::Load(f, o + r * o_stride + c + v * kLanes);
        }
    }
    // A tile that is narrower than a cache line prefetches only at the line's begin.
    using Row = StoredRow<T>;
    const bool fetches = C * kLanes >= Row::kFetch || c % Row::kFetch < C * kLanes;
    const RowFetch to = fetches ? values.fetch : RowFetch::none;
    for (size_t j = 0; j < values.count; ++j) {
        const char* row = static_cast<const char*>(values.rows[j]);
        const char* const ahead[] = {static_cast<const char*>(values.ahead[j])};
        FOVEA_UNROLL for (size_t n = 0; n < C * kLanes; n += Row::kFetch) {
            fetch_lines(ahead, Row::bytes(c + n), to);
        }
        V b[C];
        if (part)
            b[0] = load_part<T>(row, c, part);
        else
            load_vectors<T>(row, c, b);
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
            const float weight = weights.first[j * weights.step + r];
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

template <size_t R, bool kSeen, class T>
HWY_NOINLINE void sum_rows_of(const ValueRun& values, RowWeights weights, size_t columns, float* o,
                              size_t o_stride) {
    size_t c = 0;
    const auto left = [&] { return (columns - c) / kLanes; };
    // If tiles have three vectors, no single vector may be left over: its few sums would wait for each other.
    constexpr size_t kColumns = kColumnTile<T>;
    for (; left() >= kColumns && !(kColumns == 3 && left() == 4); c += kColumns * kLanes)
        sum_rows_tile<R, kColumns, kSeen, T>(values, c, 0, weights, o, o_stride);
    if constexpr (kColumns > 2) {
        for (; left() >= 2; c += 2 * kLanes)
            sum_rows_tile<R, 2, kSeen, T>(values, c, 0, weights, o, o_stride);
    }
    if constexpr (StoredRow<T>::kBlocks) return;  // two vectors are no more than a block
    for (; c + kLanes <= columns; c += kLanes)
        sum_rows_tile<R, 1, kSeen, T>(values, c, 0, weights, o, o_stride);
    if (c < columns) sum_rows_tile<R, 1, kSeen, T>(values, c, columns - c, weights, o, o_stride);
}

// o[r][c] += sum over j of weight (j, r) * values[j][c] for all keys of the block, whose elements are T, and
// `rows` rows. The block's first row is key `first` of the block of weights.
template <bool kSeen, class T>
void sum_rows(const RowQueue& values, const float* weights, LogitOrder order, size_t rows, size_t columns,
              float* o, size_t o_stride, size_t first = 0) {
    const void* mixed[kValueRun];
    for (size_t j = 0; j < values.now.count;) {
        const size_t count = HWY_MIN(kValueRun, values.now.count - j);
        const ValueRun run{values.now.rows + j, values.ahead(j, count, mixed), count, values.fetch};
        for_row_tiles(rows, [&](auto tile, size_t r) {
            const RowWeights from{weights + logit_at(order, tile(), first + j, r), logit_step(order, tile())};
            float* to = o + r * o_stride;
            const ValueRun part{run.rows, run.ahead, count, r == 0 ? run.fetch : RowFetch::none};
            sum_rows_of<tile(), kSeen, T>(part, from, columns, to, o_stride);
        });
        j += count;
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

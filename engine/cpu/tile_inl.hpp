// Register tiles: the two matrix products of attention (and of linear layers) with queries along the lanes.
//
// A panel holds kPanel queries side by side: element e of query w is panel[e * kPanel + w]. So a product
// needs one broadcast for each element of K, V or W, which are read as they are in memory, and any depth
// works. Every result is one chain of multiply-adds in ascending order of the summed index, whatever the
// tile: results do not depend on how work is cut. With Products::bf16 the same tiles go over words of two
// elements each (pairs_inl.hpp) instead of floats.
#if defined(FOVEA_CPU_TILE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_TILE_INL_HPP
#undef FOVEA_CPU_TILE_INL_HPP
#else
#define FOVEA_CPU_TILE_INL_HPP
#endif

#include "cpu/simd_inl.hpp"

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// How many of `left` rows the next tile takes: whole tiles, but never a sliver at the end.
constexpr size_t tile_width(size_t left) {
    if (left <= kRows) return left;
    const size_t rest = left - kRows;
    return rest * 2 < kRows ? (left + 1) / 2 : kRows;
}

// The operands: single floats, or pairs of bfloat16.
enum class Products { f32, bf16 };
template <Products kProducts>
HWY_INLINE V multiply_add(V a, V b, V sum) {
    if constexpr (kProducts == Products::f32)
        return mul_add(a, b, sum);
    else
        return add_products_of_pairs(a, b, sum);
}

// The operation of a dot tile on its product.
enum class DotMode {
    plain,  // s = k * q
    add,    // s += k * q
    max     // s = k * q, and max[lane] grows to the largest of the column
};

// s[r][lane] = sum over e of k[r * k_stride + e] * q[e][lane], for r < M and NV vectors of lanes.
template <size_t M, size_t NV, DotMode kMode, Products kProducts>
HWY_NOINLINE void dot_tile(const float* HWY_RESTRICT k, size_t k_stride, const float* HWY_RESTRICT q,
                           size_t depth, float* HWY_RESTRICT s, float* HWY_RESTRICT max) {
    const F f;
    V sum[M][NV];
    FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) {
            sum[r][v] = kMode == DotMode::add ? hn::Load(f, s + r * kPanel + v * kLanes) : hn::Zero(f);
        }
    }
    // Rows of the tile after this one. There may be none, so an address, not a pointer into the array.
    uintptr_t next = reinterpret_cast<uintptr_t>(k) + M * k_stride * sizeof(float);
    FOVEA_UNROLL_TWICE for (const float* end = k + depth; k != end;
                            ++k, q += kPanel, next += M * sizeof(float)) {
        if constexpr (M == kRows) hwy::Prefetch(reinterpret_cast<const float*>(next));
        V b[NV];
        FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) b[v] = hn::Load(f, q + v * kLanes);
        FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
            const V a = hn::Set(f, k[r * k_stride]);
            FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) sum[r][v] =
                multiply_add<kProducts>(a, b[v], sum[r][v]);
        }
    }
    FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) {
        V m = hn::Zero(f);
        if constexpr (kMode == DotMode::max) m = hn::Load(f, max + v * kLanes);
        FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
            if constexpr (kMode == DotMode::max) m = larger(m, sum[r][v]);
            hn::Store(sum[r][v], f, s + r * kPanel + v * kLanes);
        }
        if constexpr (kMode == DotMode::max) hn::Store(m, f, max + v * kLanes);
    }
}

// dot_tile with DotMode::max for M rows that were packed (pack_keys), k[e * M + r], and every vector of a
// panel.
template <size_t M>
HWY_NOINLINE void packed_dot_tile(const float* HWY_RESTRICT k, const float* HWY_RESTRICT q, size_t depth,
                                  float* HWY_RESTRICT s, float* HWY_RESTRICT max) {
    const F f;
    V sum[M][kVectors];
    FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(f);
    }
    for (const float* end = q + depth * kPanel; q != end; q += kPanel, k += M) {
        V b[kVectors];
        FOVEA_UNROLL for (size_t v = 0; v < kVectors; ++v) b[v] = hn::Load(f, q + v * kLanes);
        FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
            const V a = hn::Set(f, k[r]);
            FOVEA_UNROLL for (size_t v = 0; v < kVectors; ++v) sum[r][v] = mul_add(a, b[v], sum[r][v]);
        }
    }
    FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < kVectors; ++v)
            hn::Store(sum[r][v], f, s + r * kPanel + v * kLanes);
    }
    FOVEA_UNROLL for (size_t v = 0; v < kVectors; ++v) {
        V m = hn::Load(f, max + v * kLanes);
        FOVEA_UNROLL for (size_t r = 0; r < M; ++r) m = larger(m, sum[r][v]);
        hn::Store(m, f, max + v * kLanes);
    }
}

// o[r][lane] = o[r][lane] * factor[lane] + sum over j of w[j * w_stride + r] * p[j][lane].
template <size_t M, size_t NV, Products kProducts>
HWY_NOINLINE void sum_tile(const float* HWY_RESTRICT w, size_t w_stride, const float* HWY_RESTRICT p,
                           size_t count, float* HWY_RESTRICT o, const float* HWY_RESTRICT factor) {
    const F f;
    V sum[M][NV];
    FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) {
        const V a = hn::Load(f, factor + v * kLanes);
        FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
            sum[r][v] = hn::Mul(a, hn::Load(f, o + r * kPanel + v * kLanes));
        }
    }
    FOVEA_UNROLL_TWICE for (const float* end = p + count * kPanel; p != end; p += kPanel, w += w_stride) {
        V b[NV];
        FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) b[v] = hn::Load(f, p + v * kLanes);
        FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
            const V a = hn::Set(f, w[r]);
            FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) sum[r][v] =
                multiply_add<kProducts>(a, b[v], sum[r][v]);
        }
    }
    FOVEA_UNROLL for (size_t r = 0; r < M; ++r) {
        FOVEA_UNROLL for (size_t v = 0; v < NV; ++v) hn::Store(sum[r][v], f, o + r * kPanel + v * kLanes);
    }
}

using DotTile = void (*)(const float*, size_t, const float*, size_t, float*, float*);
using SumTile = void (*)(const float*, size_t, const float*, size_t, float*, const float*);

template <size_t NV, DotMode kMode, Products kProducts, size_t... M>
DotTile dot_tile_of(size_t rows, std::index_sequence<M...>) {
    static constexpr DotTile tiles[] = {&dot_tile<M + 1, NV, kMode, kProducts>...};
    return tiles[rows - 1];
}
template <size_t NV, Products kProducts, size_t... M>
SumTile sum_tile_of(size_t rows, std::index_sequence<M...>) {
    static constexpr SumTile tiles[] = {&sum_tile<M + 1, NV, kProducts>...};
    return tiles[rows - 1];
}

// dot_tile over any number of rows.
template <size_t NV, DotMode kMode, Products kProducts>
void dot_block_of(const float* k, size_t k_stride, size_t rows, const float* q, size_t depth, float* s,
                  float* max) {
    for (size_t r = 0; r < rows;) {
        const size_t width = tile_width(rows - r);
        const DotTile tile =
            width == kRows ? &dot_tile<kRows, NV, kMode, kProducts>
                           : dot_tile_of<NV, kMode, kProducts>(width, std::make_index_sequence<kRows>());
        tile(k + r * k_stride, k_stride, q, depth, s + r * kPanel, max);
        r += width;
    }
}

inline void packed_dot_block(const float* k, size_t tiles, const float* q, size_t depth, float* s,
                             float* max) {
    constexpr size_t M = kKeyRows ? kKeyRows : 1;
    for (size_t t = 0; t < tiles; ++t)
        packed_dot_tile<M>(k + t * M * depth, q, depth, s + t * M * kPanel, max);
}

// The values that sum_block reads; the row of a key is the summed index. Column c of row j is at data + c + j
// * row_stride or, if packed, at data + first * capacity + j * width + c - first, where [first, first +
// width) is the tile that holds column c.
struct Columns {
    const float* data;
    size_t row_stride;  // 0: packed
    size_t capacity;    // packed: rows that there is room for
};

template <size_t NV, Products kProducts>
void sum_block_of(const Columns& w, size_t first_row, size_t rows, size_t columns, const float* p, float* o,
                  const float* factor) {
    for (size_t c = 0; c < columns;) {
        const size_t width = tile_width(columns - c);
        const SumTile tile = width == kRows
                                 ? &sum_tile<kRows, NV, kProducts>
                                 : sum_tile_of<NV, kProducts>(width, std::make_index_sequence<kRows>());
        const size_t stride = w.row_stride ? w.row_stride : width;
        const float* from = w.data + (w.row_stride ? c : c * w.capacity) + first_row * stride;
        tile(from, stride, p, rows, o + c * kPanel, factor);
        c += width;
    }
}

template <DotMode kMode, Products kProducts, size_t... NV>
HWY_INLINE void dot_block_dispatch(size_t vectors, const float* k, size_t k_stride, size_t rows,
                                   const float* q, size_t depth, float* s, float* max,
                                   std::index_sequence<NV...>) {
    if constexpr (kProducts == Products::f32) {
        ((vectors == NV + 1 ? dot_block_of<NV + 1, kMode, kProducts>(k, k_stride, rows, q, depth, s, max)
                            : void()),
         ...);
    } else {  // parts of a panel are few: one by one, for the code is small
        if (vectors == kVectors)
            return dot_block_of<kVectors, kMode, kProducts>(k, k_stride, rows, q, depth, s, max);
        for (size_t at = 0; at < vectors * kLanes; at += kLanes)
            dot_block_of<1, kMode, kProducts>(k, k_stride, rows, q + at, depth, s + at, max + at);
    }
}
template <Products kProducts, size_t... NV>
HWY_INLINE void sum_block_dispatch(size_t vectors, const Columns& w, size_t first_row, size_t rows,
                                   size_t columns, const float* p, float* o, const float* factor,
                                   std::index_sequence<NV...>) {
    if constexpr (kProducts == Products::f32) {
        ((vectors == NV + 1 ? sum_block_of<NV + 1, kProducts>(w, first_row, rows, columns, p, o, factor)
                            : void()),
         ...);
    } else {
        if (vectors == kVectors)
            return sum_block_of<kVectors, kProducts>(w, first_row, rows, columns, p, o, factor);
        for (size_t at = 0; at < vectors * kLanes; at += kLanes)
            sum_block_of<1, kProducts>(w, first_row, rows, columns, p + at, o + at, factor + at);
    }
}

// The products for `vectors` vectors of lanes, 1 to kVectors; q, s, max, p, o and factor point at the first
// of them.
template <DotMode kMode, Products kProducts = Products::f32>
void dot_block(size_t vectors, const float* k, size_t k_stride, size_t rows, const float* q, size_t depth,
               float* s, float* max) {
    dot_block_dispatch<kMode, kProducts>(vectors, k, k_stride, rows, q, depth, s, max,
                                         std::make_index_sequence<kVectors>());
}
template <Products kProducts = Products::f32>
void sum_block(size_t vectors, const Columns& w, size_t first_row, size_t rows, size_t columns,
               const float* p, float* o, const float* factor) {
    sum_block_dispatch<kProducts>(vectors, w, first_row, rows, columns, p, o, factor,
                                  std::make_index_sequence<kVectors>());
}

// sum_block for values that may not be finite: a weight of 0 adds nothing, whatever it is multiplied with.
inline void sum_block_of_seen(size_t vectors, const Columns& w, size_t first_row, size_t rows, size_t columns,
                              const float* p, float* o, const float* factor) {
    const F f;
    for (size_t c = 0; c < columns;) {
        const size_t width = tile_width(columns - c), stride = w.row_stride ? w.row_stride : width;
        const float* from = w.data + (w.row_stride ? c : c * w.capacity) + first_row * stride;
        for (size_t n = 0; n < width * vectors; ++n) {
            const size_t r = n / vectors, at = n % vectors * kLanes;
            float* to = o + (c + r) * kPanel + at;
            V sum = hn::Mul(hn::Load(f, factor + at), hn::Load(f, to));
            for (size_t j = 0; j < rows; ++j) {
                const V weight = hn::Load(f, p + j * kPanel + at);
                const V grown = mul_add(hn::Set(f, from[j * stride + r]), weight, sum);
                sum = hn::IfThenElse(hn::Eq(weight, hn::Zero(f)), sum, grown);
            }
            hn::Store(sum, f, to);
        }
        c += width;
    }
}

// o[c][lane] *= factor[lane] for vectors [first, last) of lanes.
inline void scale_columns(size_t first, size_t last, size_t columns, const float* factor, float* o) {
    const F f;
    for (size_t v = first; v < last; ++v) {
        const V by = hn::Load(f, factor + v * kLanes);
        for (size_t c = 0; c < columns; ++c) {
            float* at = o + c * kPanel + v * kLanes;
            hn::Store(hn::Mul(by, hn::Load(f, at)), f, at);
        }
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

// Rows in memory to panels and back, and blocks of keys and values into the order the tiles read.
#if defined(FOVEA_CPU_PANEL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_PANEL_INL_HPP
#undef FOVEA_CPU_PANEL_INL_HPP
#else
#define FOVEA_CPU_PANEL_INL_HPP
#endif

#include "cpu/tile_inl.hpp"
#include "problem/rotation.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// panel[e][lane] = rows[lane][e] for e < depth and `vectors` vectors of lanes; every rows[lane] must be
// readable.
template <class T>
void pack_panel(const T* const* rows, size_t depth, size_t vectors, float* panel) {
    const F f;
    for (size_t v = 0; v < vectors; ++v) {
        const T* const* from = rows + v * kLanes;
        float* to = panel + v * kLanes;
        size_t e = 0;
        for (; e + kLanes <= depth; e += kLanes) {
            V block[kLanes];
            FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) block[n] = load_row(from[n] + e);
            transpose(block);
            FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) hn::Store(block[n], f, to + (e + n) * kPanel);
        }
        for (; e < depth; ++e) {
            for (size_t n = 0; n < kLanes; ++n) to[e * kPanel + n] = load_one(from[n] + e);
        }
    }
}

// Rotates the rows of a panel, see problem/rotation.hpp; `depth` is a multiple of 32.
inline void rotate_panel(size_t depth, size_t vectors, float* panel) {
    const F f;
    const V scale = hn::Set(f, float(kRotationScale));
    for (float* const end = panel + depth * kPanel; panel != end; panel += kRotationBlock * kPanel) {
        for (size_t lane = 0; lane < vectors * kLanes; lane += kLanes) {
            float* const x = panel + lane;
            for (size_t step = 1; step < kRotationBlock; step *= 2) {
                const bool last = 2 * step == kRotationBlock;
                for (size_t e = 0; e < kRotationBlock; e += e % (2 * step) == step - 1 ? step + 1 : 1) {
                    const V a = hn::Load(f, x + e * kPanel), b = hn::Load(f, x + (e + step) * kPanel);
                    const V sum = hn::Add(a, b), difference = hn::Sub(a, b);
                    hn::Store(last ? hn::Mul(sum, scale) : sum, f, x + e * kPanel);
                    hn::Store(last ? hn::Mul(difference, scale) : difference, f, x + (e + step) * kPanel);
                }
            }
        }
    }
}

// rows[lane][e] = panel[e][lane] * factor[lane] for e < depth and lane < row_count. A zero becomes +0: its
// sign could come from a key that is hidden.
template <class T>
void unpack_panel(const float* panel, const float* factor, size_t depth, size_t row_count, T* const* rows) {
    const F f;
    for (size_t first = 0; first < row_count; first += kLanes) {
        const float* from = panel + first;
        const size_t lanes = HWY_MIN(kLanes, row_count - first);
        const V scale = hn::Load(f, factor + first);
        size_t e = 0;
#if FOVEA_HAS_PAIRS
        // Two elements of a row are a word: half as much to transpose.
        for (; std::is_same_v<T, Bfloat16> && e + 2 * kLanes <= depth; e += 2 * kLanes) {
            const hn::Repartition<uint16_t, F> h;
            V block[kLanes];
            FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) {
                const float* word = from + (e + 2 * n) * kPanel;
                const VU lower = bits_of_bfloat(mul_add(scale, hn::Load(f, word), hn::Zero(f)));
                const VU upper = bits_of_bfloat(mul_add(scale, hn::Load(f, word + kPanel), hn::Zero(f)));
                block[n] = hn::BitCast(
                    f, hn::OddEven(hn::BitCast(h, upper), hn::BitCast(h, hn::ShiftRight<16>(lower))));
            }
            transpose(block);
            FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) {
                if (n < lanes)
                    hn::StoreU(hn::BitCast(h, block[n]), h, reinterpret_cast<uint16_t*>(rows[first + n] + e));
            }
        }
#endif
        for (; e + kLanes <= depth; e += kLanes) {
            V block[kLanes];
            FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) {
                block[n] = mul_add(scale, hn::Load(f, from + (e + n) * kPanel), hn::Zero(f));
            }
            transpose(block);
            if (lanes == kLanes) {
                FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) store_row(block[n], rows[first + n] + e);
            } else {
                FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) {
                    if (n < lanes) store_row(block[n], rows[first + n] + e);
                }
            }
        }
        for (; e < depth; ++e) {
            for (size_t n = 0; n < lanes; ++n) {
                store_one(from[e * kPanel + n] * factor[first + n] + 0.0f, rows[first + n] + e);
            }
        }
    }
}

// Converts one row of `count` elements to float32.
template <class T>
HWY_INLINE void copy_row(const T* from, size_t count, float* to) {
    size_t e = 0;
    for (; e + kLanes <= count; e += kLanes) hn::StoreU(load_row(from + e), F(), to + e);
    for (; e < count; ++e) to[e] = load_one(from + e);
}

HWY_INLINE void store_halves(V v, float* lower, float* upper) {
#if HWY_TARGET == HWY_SCALAR
    (void)v, (void)lower, (void)upper;
#else
    const hn::Half<F> half;
    hn::StoreU(hn::LowerHalf(half, v), half, lower);
    hn::StoreU(hn::UpperHalf(half, v), half, upper);
#endif
}

// The columns of whole tiles that pack_columns moves one vector at a time: two tiles per vector, or one or
// more vectors per tile, of which the last may reach into the next columns.
constexpr size_t kTilesAtOnce = kRows * 2 == kLanes ? 2 : 1;
constexpr size_t columns_in_vectors(size_t columns) {
    constexpr size_t read = (kRows * kTilesAtOnce + kLanes - 1) / kLanes * kLanes;
    size_t c = 0;
    while (c + read <= columns && tile_width(columns - c) == kRows &&
           (kTilesAtOnce == 1 || tile_width(columns - c - kRows) == kRows))
        c += kRows * kTilesAtOnce;
    return c;
}

// Rows [first, first + rows) of a block of values into the packed order of Columns (tile by tile). A whole
// vector is stored where a tile is narrower; what it writes too much lands in the next row's place, so blocks
// are packed in ascending order of rows and `capacity` is one row more than there ever are. `load(j, c)`:
// kLanes elements of row j from column c on; `load_single(j, c, to)`: one.
template <class Load, class LoadSingle>
void pack_columns_from(const Load& load, const LoadSingle& load_single, size_t first, size_t rows,
                       size_t columns, size_t capacity, float* to) {
    const size_t in_vectors = columns_in_vectors(columns);
    // Eight tiles at a time: their rows may all fall into one set of L1.
    constexpr size_t at_once = 8 * kRows;
    for (size_t left = 0; left < in_vectors; left += at_once) {
        const size_t right = HWY_MIN(left + at_once, in_vectors);
        for (size_t j = 0; j < rows; ++j) {
            float* tile = to + left * capacity + (first + j) * kRows;
            for (size_t c = left; c < right; c += kRows * kTilesAtOnce) {
                if constexpr (kTilesAtOnce == 2) {
                    store_halves(load(j, c), tile, tile + kRows * capacity);
                } else {
                    for (size_t e = 0; e < kRows; e += kLanes) hn::StoreU(load(j, c + e), F(), tile + e);
                }
                tile += kRows * kTilesAtOnce * capacity;
            }
        }
    }
    for (size_t c = in_vectors; c < columns;) {
        const size_t width = tile_width(columns - c);
        float* tile = to + c * capacity + first * width;
        for (size_t j = 0; j < rows; ++j) {
            for (size_t e = 0; e < width; ++e) load_single(j, c + e, tile + j * width + e);
        }
        c += width;
    }
}
template <class T>
void pack_columns(const T* from, size_t from_stride, size_t first, size_t rows, size_t columns,
                  size_t capacity, float* to) {
    pack_columns_from([&](size_t j, size_t c) HWY_ATTR { return load_row(from + j * from_stride + c); },
                      [&](size_t j, size_t c, float* number)
                          HWY_ATTR { *number = load_one(from + j * from_stride + c); },
                      first, rows, columns, capacity, to);
}

// The same places filled with zeros.
inline void clear_columns(size_t first, size_t rows, size_t columns, size_t capacity, float* to) {
    for (size_t c = 0; c < columns;) {
        const size_t width = tile_width(columns - c);
        for (size_t n = 0; n < rows * width; ++n) to[c * capacity + first * width + n] = 0;
        c += width;
    }
}

// Whole tiles of kKeyRows keys, of which there are `tiles`, into the order of packed_dot_tile. Writes up to
// kLanes elements past the last one.
inline void pack_keys(const float* from, size_t from_stride, size_t tiles, size_t depth, float* to) {
    const F f;
    for (size_t t = 0; t < tiles; ++t, from += kKeyRows * from_stride, to += kKeyRows * depth) {
        size_t e = 0;
        // Every vector is stored whole; what is too much is overwritten by the next.
        for (; e + kLanes <= depth; e += kLanes) {
            V block[kLanes];
            FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) {
                block[n] = n < kKeyRows ? hn::LoadU(f, from + n * from_stride + e) : hn::Zero(f);
            }
            transpose(block);
            FOVEA_UNROLL for (size_t n = 0; n < kLanes; ++n) hn::StoreU(block[n], f, to + (e + n) * kKeyRows);
        }
        for (; e < depth; ++e) {
            for (size_t n = 0; n < kKeyRows; ++n) to[e * kKeyRows + n] = from[n * from_stride + e];
        }
    }
}

HWY_INLINE bool run_is_finite(const float* from, size_t count) {
    const F f;
    V sum = hn::Zero(f);  // x * 0 is NaN for NaN and infinities, else a zero
    float rest = 0;
    size_t n = 0;
    for (; n + kLanes <= count; n += kLanes) sum = mul_add(hn::LoadU(f, from + n), hn::Zero(f), sum);
    for (; n < count; ++n) rest += from[n] * 0.0f;
    return hn::AllTrue(f, hn::Eq(sum, hn::Zero(f))) && rest == 0.0f;
}

// True if every number of these rows is finite.
inline bool all_finite(const Columns& w, size_t rows, size_t columns) {
    if (w.row_stride) {
        for (size_t j = 0; j < rows; ++j) {
            if (!run_is_finite(w.data + j * w.row_stride, columns)) return false;
        }
        return true;
    }
    for (size_t c = 0; c < columns;) {
        const size_t width = tile_width(columns - c);
        if (!run_is_finite(w.data + c * w.capacity, rows * width)) return false;
        c += width;
    }
    return true;
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

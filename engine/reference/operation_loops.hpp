// Rotary embedding, linear layer, norms, activations, cache append, gather and merge as plain loops over
// rows, for any type of arithmetic. The descriptions are checked and their strides filled in; rows are
// numbered b, h, l with l fastest.
#pragma once

#include "problem/problem.hpp"
#include "problem/rotation.hpp"
#include "problem/row_parts.hpp"
#include "reference/element.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace fovea::reference {

struct RowIndex {
    int64_t b, h, l;
};
inline RowIndex split_row(uint64_t flat, uint32_t heads, uint64_t len) {
    const uint64_t bh = flat / len;
    return {int64_t(bh / heads), int64_t(bh % heads), int64_t(flat % len)};
}
inline int64_t first_element(const FoveaStrides& s, const RowIndex& at) {
    return at.b * s.batch + at.h * s.head + at.l * s.row;
}

// Row of COS and SIN that serves token l of entry b.
inline int64_t angle_row(const FoveaRopeDesc& d, const FoveaHostBuffer* bindings, const RowIndex& at) {
    const int64_t token = at.b * int64_t(d.len) + at.l;
    if (d.table_rows == 0) return token;
    const int64_t position = static_cast<const int32_t*>(bindings[FOVEA_BIND_POSITIONS].data)[token];
    return std::clamp<int64_t>(position, 0, int64_t(d.table_rows) - 1);
}

// x and y may be the same row: every pair is read whole before it is written.
template <class Real>
void rope_row(const FoveaRopeDesc& d, const FoveaHostBuffer* bindings, uint64_t flat) {
    const RowIndex at = split_row(flat, d.heads, d.len);
    const int64_t x = first_element(d.x_strides, at), y = first_element(d.y_strides, at);
    const void* x_data = bindings[FOVEA_BIND_X].data;
    void* y_data = bindings[FOVEA_BIND_Y].data;
    const uint32_t rotated = d.rotary_dim ? d.rotary_dim : d.dim, pairs = rotated / 2;
    const int64_t angles = angle_row(d, bindings, at) * pairs;
    for (uint32_t n = 0; n < pairs; ++n) {
        const uint32_t first = d.interleaved ? 2 * n : n, second = d.interleaved ? 2 * n + 1 : n + pairs;
        const Real x1 = load<Real>(x_data, d.x_type, x + first),
                   x2 = load<Real>(x_data, d.x_type, x + second);
        const Real cos = load<Real>(bindings[FOVEA_BIND_COS].data, FOVEA_F32, angles + n);
        const Real sin = load<Real>(bindings[FOVEA_BIND_SIN].data, FOVEA_F32, angles + n);
        const Real a = cos * x1, b = sin * x2, c = sin * x1, e = cos * x2;
        store<Real>(y_data, d.y_type, y + first, a - b);
        store<Real>(y_data, d.y_type, y + second, c + e);
    }
    for (uint32_t n = rotated; n < d.dim; ++n)
        store<Real>(y_data, d.y_type, y + n, load<Real>(x_data, d.x_type, x + n));
}

template <class Real>
void linear_row(const FoveaLinearDesc& d, const FoveaHostBuffer* bindings, uint64_t row) {
    const int64_t x = int64_t(row) * d.x_row_stride, y = int64_t(row) * d.y_row_stride;
    const auto* bias = d.has_bias ? static_cast<const float*>(bindings[FOVEA_BIND_BIAS].data) : nullptr;
    const int64_t in_step = d.weight_is_in_out ? d.w_row_stride : 1;
    const int64_t out_step = d.weight_is_in_out ? 1 : d.w_row_stride;
    for (uint32_t n = 0; n < d.n_out; ++n) {
        Real sum = 0;
        for (uint32_t k = 0; k < d.n_in; ++k)
            sum += load<Real>(bindings[FOVEA_BIND_X].data, d.x_type, x + k) *
                   load<Real>(bindings[FOVEA_BIND_WEIGHT].data, d.w_type, n * out_step + k * in_step);
        store<Real>(bindings[FOVEA_BIND_Y].data, d.y_type, y + n, bias ? sum + Real(bias[n]) : sum);
    }
}

// `row` of a norm.
template <class Real>
void norm_row(const NormDesc& d, const FoveaHostBuffer* bindings, uint64_t row) {
    const auto* x = static_cast<const float*>(bindings[FOVEA_BIND_X].data) + row * d.width;
    auto* y = static_cast<float*>(bindings[FOVEA_BIND_Y].data) + row * d.width;
    if (d.adds) {
        auto* sum = static_cast<float*>(bindings[FOVEA_BIND_O].data) + row * d.width;
        for (uint32_t c = 0; c < d.width; ++c) sum[c] += x[c];
        x = sum;
    }
    const auto* weight = static_cast<const float*>(bindings[FOVEA_BIND_WEIGHT].data);
    Real mean = 0, squares = 0;
    if (d.rule == NormRule::layer) {
        for (uint32_t c = 0; c < d.width; ++c) mean += Real(x[c]);
        mean /= Real(d.width);
    }
    for (uint32_t c = 0; c < d.width; ++c) squares += (Real(x[c]) - mean) * (Real(x[c]) - mean);
    const Real factor = 1 / std::sqrt(squares / Real(d.width) + Real(d.epsilon));
    for (uint32_t c = 0; c < d.width; ++c) {
        Real value = (Real(x[c]) - mean) * factor;
        if (d.has_weight) value *= Real(weight[c]);
        if (d.has_bias) value += Real(weight[d.width + c]);
        y[c] = float(value);
    }
}

template <class Real>
Real activated(PointwiseRule rule, Real x) {
    constexpr Real kSqrt2OverPi = Real(0.7978845608028654), kSqrtHalf = Real(0.7071067811865476);
    switch (rule) {
        case PointwiseRule::gelu:
            return x * (Real(0.5) * std::erfc(-x * kSqrtHalf));
        case PointwiseRule::gelu_tanh:
            return Real(0.5) * x * (1 + std::tanh(kSqrt2OverPi * (x + Real(0.044715) * x * x * x)));
        case PointwiseRule::silu:
            return x / (1 + std::exp(-x));
        default:
            return x > 0 ? x : Real(0);
    }
}

// Computes the stretch of kPointwiseStretch elements that is row `row`.
template <class Real>
void pointwise_row(const PointwiseDesc& d, const FoveaHostBuffer* bindings, uint64_t row) {
    const auto* x = static_cast<const float*>(bindings[FOVEA_BIND_X].data);
    const auto* other = static_cast<const float*>(bindings[FOVEA_BIND_O].data);
    auto* y = static_cast<float*>(bindings[FOVEA_BIND_Y].data);
    const uint64_t end = std::min(d.count, (row + 1) * kPointwiseStretch);
    for (uint64_t n = row * kPointwiseStretch; n < end; ++n) {
        if (d.rule == PointwiseRule::add) {
            y[n] = x[n] + other[n];
            continue;
        }
        const Real value = activated(d.rule, Real(x[n]));
        y[n] = float(d.gated ? value * Real(other[n]) : value);
    }
}

// Returns the first element of row `row` of a cache, append's Y or gather's X; -1 if its page is not in the
// pool.
template <class Desc>
int64_t first_of_cache_row(const Desc& d, const FoveaStrides& strides, const FoveaHostBuffer* bindings,
                           const RowIndex& at, int64_t row) {
    if (!d.page_size) return first_element(strides, {at.b, at.h, row});
    const auto* pages = static_cast<const int32_t*>(bindings[FOVEA_BIND_BLOCK_TABLE].data);
    const int32_t page = pages[at.b * int64_t(d.block_table_pages) + row / d.page_size];
    if (page < 0 || uint32_t(page) >= d.page_count) return -1;
    return first_element(strides, {page, at.h, row % d.page_size});
}

// Returns the first element of the cache row that receives new row at.l; -1 if there is no room for it.
inline int64_t cache_row(const FoveaAppendDesc& d, const FoveaHostBuffer* bindings, const RowIndex& at) {
    int64_t held = int64_t(d.first_row);
    if (d.has_sequences)
        held = static_cast<const FoveaSequence*>(bindings[FOVEA_BIND_SEQUENCES].data)[at.b].kv_length;
    held = std::clamp<int64_t>(held, 0, int64_t(d.capacity));
    const int64_t row = held + at.l;
    if (row >= int64_t(d.capacity)) return -1;
    return first_of_cache_row(d, d.y_strides, bindings, at, row);
}

// First element of the cache row that a list names for row at.l; -1 where it names none.
inline int64_t listed_row(const FoveaGatherDesc& d, const FoveaHostBuffer* bindings, const RowIndex& at) {
    const int64_t list = at.b * d.position_heads + (d.position_heads > 1 ? at.h : 0);
    const int64_t row =
        static_cast<const int32_t*>(bindings[FOVEA_BIND_POSITIONS].data)[list * int64_t(d.len) + at.l];
    if (row < 0 || row >= int64_t(d.capacity)) return -1;
    return first_of_cache_row(d, d.x_strides, bindings, at, row);
}

// A copy of equal types moves the bits, NaN payloads included. `d` is append's or gather's.
template <class Desc>
void copy_row(const Desc& d, const FoveaHostBuffer* bindings, int64_t x, int64_t y) {
    const auto* from = static_cast<const unsigned char*>(bindings[FOVEA_BIND_X].data);
    auto* to = static_cast<unsigned char*>(bindings[FOVEA_BIND_Y].data);
    if (d.x_type == d.y_type) {
        memcpy(to + stored_bytes(d.y_type, y), from + stored_bytes(d.x_type, x),
               size_t(stored_bytes(d.x_type, d.dim)));
        return;
    }
    // In pieces of whole blocks.
    constexpr uint32_t kPiece = kRotationBlock;
    float room[kPiece];
    for (uint32_t first = 0; first < d.dim; first += kPiece) {
        const uint32_t count = std::min(kPiece, d.dim - first);
        load_row<float>(from, d.x_type, x + first, count, room);
        if constexpr (std::is_same_v<Desc, FoveaAppendDesc>)
            if (d.rotate) rotate_row(room, count);
        if (is_compressed(d.y_type)) {
            compress_row(d.y_type, room, count, to, y + first);
        } else {
            for (uint32_t n = 0; n < count; ++n) store<float>(to, d.y_type, y + first + n, room[n]);
        }
    }
}

inline void append_row(const FoveaAppendDesc& d, const FoveaHostBuffer* bindings, uint64_t flat) {
    const RowIndex at = split_row(flat, d.heads, d.len);
    const int64_t y = cache_row(d, bindings, at);
    if (y >= 0) copy_row(d, bindings, first_element(d.x_strides, at), y);
}

inline void gather_row(const FoveaGatherDesc& d, const FoveaHostBuffer* bindings, uint64_t flat) {
    const RowIndex at = split_row(flat, d.heads, d.len);
    const int64_t x = listed_row(d, bindings, at), y = first_element(d.y_strides, at);
    if (x >= 0) return copy_row(d, bindings, x, y);
    memset(static_cast<unsigned char*>(bindings[FOVEA_BIND_Y].data) + stored_bytes(d.y_type, y), 0,
           size_t(stored_bytes(d.y_type, d.dim)));
}

// The multipliers of two parts' o, a's first, and their lse. A multiplier is 1 if the other part saw no key,
// so that its o does not count.
template <class Real>
struct MergeFactors {
    Real a, b, lse;
};
template <class Real>
MergeFactors<Real> merge_factors(Real lse_a, Real lse_b) {
    const Real nothing = -std::numeric_limits<Real>::infinity();
    if (lse_b == nothing) return {1, 0, lse_a};
    if (lse_a == nothing) return {0, 1, lse_b};
    const Real most = lse_a > lse_b ? lse_a : lse_b;
    const Real a = std::exp(lse_a - most), b = std::exp(lse_b - most), sum = a + b;
    return {a / sum, b / sum, most + std::log(sum)};
}

// b = factors.a * a + factors.b * b; a factor of 1 moves the bits.
template <class Real>
void blend_row(const Real* a, Real* b, const MergeFactors<Real>& factors, uint32_t count) {
    if (factors.a == 0) return;
    if (factors.b == 0) {
        std::copy_n(a, count, b);
        return;
    }
    for (uint32_t n = 0; n < count; ++n) b[n] = factors.a * a[n] + factors.b * b[n];
}

// A merge's tree for up to kMergeColumns columns of one row, kept as a binary counter: held[n] is the result
// of 2^n neighbouring parts, and a new part moves up past every place that is taken, as a carry does.
constexpr uint32_t kMergeLevels = 13, kMergeColumns = 64;
static_assert(1u << (kMergeLevels - 1) == FOVEA_MERGE_MAX_PARTS);
template <class Real>
struct MergeTree {
    Real held[kMergeLevels][kMergeColumns], row[kMergeColumns], held_lse[kMergeLevels], lse;

    // `read(part, out)` widens a part's columns; `blend` is blend_row or does the same.
    template <class Read, class Blend>
    void run(const float* part_lse, uint64_t lse_stride, uint32_t parts, uint32_t count, const Read& read,
             const Blend& blend) {
        const auto merge_with = [&](uint32_t level) {
            const MergeFactors<Real> factors = merge_factors(held_lse[level], lse);
            blend(held[level], row, factors, count);
            lse = factors.lse;
        };
        for (uint32_t part = 0; part < parts; ++part) {
            lse = Real(part_lse[part * lse_stride]);
            if (lse == -std::numeric_limits<Real>::infinity())
                std::fill_n(row, count, Real(0));
            else if (lse < std::numeric_limits<Real>::infinity())
                read(part, row);
            else  // NaN or +inf: the part is none, and so is the row that it is of
                std::fill_n(row, count, lse = std::numeric_limits<Real>::quiet_NaN());
            uint32_t level = 0;
            for (; part >> level & 1; ++level) merge_with(level);
            std::copy_n(row, count, held[level]);
            held_lse[level] = lse;
        }
        bool first = true;
        for (uint32_t level = 0; level < kMergeLevels; ++level) {
            if (!(parts >> level & 1)) continue;
            if (first) {
                std::copy_n(held[level], count, row);
                lse = held_lse[level];
            } else {
                merge_with(level);
            }
            first = false;
        }
    }
};

// Row `flat`: `read(element, count, out)` and `write(element, count, row)` go between memory and Real.
template <class Real, class Read, class Write, class Blend>
void merge_row(const FoveaMergeDesc& d, const FoveaHostBuffer* bindings, uint64_t flat, const Read& read,
               const Write& write, const Blend& blend) {
    const RowIndex at = split_row(flat, d.heads, d.len);
    const int64_t x = first_element(d.x_strides, at), y = first_element(d.y_strides, at);
    const auto* part_lse = static_cast<const float*>(bindings[FOVEA_BIND_PART_LSE].data) + flat;
    MergeTree<Real> tree;
    for (uint32_t column = 0; column < d.dim; column += kMergeColumns) {
        const uint32_t count = std::min(kMergeColumns, d.dim - column);
        tree.run(
            part_lse, uint64_t{d.batch} * d.heads * d.len, d.parts, count,
            [&](uint32_t part, Real* out) { read(part * d.x_part_stride + x + column, count, out); }, blend);
        write(y + column, count, tree.row);
    }
    static_cast<float*>(bindings[FOVEA_BIND_LSE].data)[flat] = float(tree.lse);
}

template <class Real>
void merge_row(const FoveaMergeDesc& d, const FoveaHostBuffer* bindings, uint64_t flat) {
    merge_row<Real>(
        d, bindings, flat,
        [&](int64_t first, uint32_t count, Real* out) {
            load_row<Real>(bindings[FOVEA_BIND_X].data, d.x_type, first, count, out);
        },
        [&](int64_t first, uint32_t count, const Real* row) {
            for (uint32_t n = 0; n < count; ++n)
                store<Real>(bindings[FOVEA_BIND_Y].data, d.y_type, first + n, row[n]);
        },
        blend_row<Real>);
}

}  // namespace fovea::reference

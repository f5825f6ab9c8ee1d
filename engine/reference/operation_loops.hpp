// Rotary embedding, linear layer and cache append as plain loops over rows, for any type of arithmetic. The
// descriptions are checked and their strides filled in; rows are numbered b, h, l with l fastest.
#pragma once

#include "reference/element.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

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

// First element of the cache row that takes new row at.l; -1 where there is no room for it.
inline int64_t cache_row(const FoveaAppendDesc& d, const FoveaHostBuffer* bindings, const RowIndex& at) {
    int64_t held = int64_t(d.first_row);
    if (d.has_batch_table)
        held = static_cast<const FoveaBatchEntry*>(bindings[FOVEA_BIND_BATCH_TABLE].data)[at.b].kv_length;
    held = std::clamp<int64_t>(held, 0, int64_t(d.capacity));
    const int64_t row = held + at.l;
    if (row >= int64_t(d.capacity)) return -1;
    if (!d.page_size) return first_element(d.y_strides, {at.b, at.h, row});
    const auto* pages = static_cast<const int32_t*>(bindings[FOVEA_BIND_BLOCK_TABLE].data);
    const int32_t page = pages[at.b * int64_t(d.block_table_pages) + row / d.page_size];
    if (page < 0 || uint32_t(page) >= d.page_count) return -1;
    return first_element(d.y_strides, {page, at.h, row % d.page_size});
}

// A copy of equal types moves the bits, NaN payloads included.
inline void append_row(const FoveaAppendDesc& d, const FoveaHostBuffer* bindings, uint64_t flat) {
    const RowIndex at = split_row(flat, d.heads, d.len);
    const int64_t x = first_element(d.x_strides, at), y = cache_row(d, bindings, at);
    if (y < 0) return;
    const auto* from = static_cast<const unsigned char*>(bindings[FOVEA_BIND_X].data);
    auto* to = static_cast<unsigned char*>(bindings[FOVEA_BIND_Y].data);
    if (d.x_type == d.y_type) {
        const int64_t size = d.x_type == FOVEA_F16 ? 2 : 4;
        memcpy(to + y * size, from + x * size, size_t(d.dim) * size_t(size));
        return;
    }
    for (uint32_t n = 0; n < d.dim; ++n)
        store<float>(to, d.y_type, y + n, load<float>(from, d.x_type, x + n));
}

}  // namespace fovea::reference

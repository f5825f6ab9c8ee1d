// Rows of rotary embeddings: a few elements each, so that a call is a walk through memory.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rope.cpp"
#include <hwy/foreach_target.h>

#include "cpu/convert_row_inl.hpp"
#include "reference/operation_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Rotates pairs whose first and second elements are in separate halves. x and y may be the same memory: each
// step reads its elements before it writes them.
HWY_INLINE void rotate_halves(const float* x1, const float* x2, const float* cos, const float* sin,
                              size_t pairs, float* y1, float* y2) {
    const F f;
    size_t n = 0;
    for (; n + kLanes <= pairs; n += kLanes) {
        const V c = hn::LoadU(f, cos + n), s = hn::LoadU(f, sin + n);
        const V first = load_row(x1 + n), second = load_row(x2 + n);
        store_row(hn::Sub(hn::Mul(c, first), hn::Mul(s, second)), y1 + n);
        store_row(hn::Add(hn::Mul(s, first), hn::Mul(c, second)), y2 + n);
    }
    for (; n < pairs; ++n) {
        const float first = x1[n], second = x2[n];
        y1[n] = cos[n] * first - sin[n] * second;
        y2[n] = sin[n] * first + cos[n] * second;
    }
}

// Pairs (2n, 2n + 1).
HWY_INLINE void rotate_neighbours(const float* x, const float* cos, const float* sin, size_t pairs,
                                  float* y) {
    size_t n = 0;
#if HWY_TARGET != HWY_SCALAR
    const F f;
    const I i;
    const VI lane = hn::Iota(i, 0);
    const auto each_twice = hn::IndicesFromVec(f, hn::BitCast(U(), hn::ShiftRight<1>(lane)));
    const V minus_first =
        hn::BitCast(f, hn::ShiftLeft<31>(hn::Sub(hn::Set(i, 1), hn::And(lane, hn::Set(i, 1)))));
    const hn::Half<F> half;
    for (; n + kLanes / 2 <= pairs; n += kLanes / 2) {
        const V c = hn::TableLookupLanes(hn::ZeroExtendVector(f, hn::LoadU(half, cos + n)), each_twice);
        const V s = hn::TableLookupLanes(hn::ZeroExtendVector(f, hn::LoadU(half, sin + n)), each_twice);
        const V both = load_row(x + 2 * n);
        const V turned = hn::Mul(hn::Xor(s, minus_first), hn::Shuffle2301(both));
        store_row(hn::Add(hn::Mul(c, both), turned), y + 2 * n);
    }
#endif
    for (; n < pairs; ++n) {
        const float first = x[2 * n], second = x[2 * n + 1];
        y[2 * n] = cos[n] * first - sin[n] * second;
        y[2 * n + 1] = sin[n] * first + cos[n] * second;
    }
}

// Rotates one row of any two types. 16-bit elements are converted one piece of the row at a time, which stays
// in L1: one rotation for all types, because one for each pair would be much code.
inline void rope_row(const FoveaRopeDesc& d, const void* x_data, int64_t x, void* y_data, int64_t y,
                     const float* cos, const float* sin) {
    const size_t pairs = d.rotary_dim / 2;
    if (d.x_type == FOVEA_F32 && d.y_type == FOVEA_F32) {
        const float* from = static_cast<const float*>(x_data) + x;
        float* to = static_cast<float*>(y_data) + y;
        if (d.interleaved)
            rotate_neighbours(from, cos, sin, pairs, to);
        else
            rotate_halves(from, from + pairs, cos, sin, pairs, to, to + pairs);
        convert_row(from + d.rotary_dim, d.dim - d.rotary_dim, to + d.rotary_dim);
        return;
    }
    constexpr size_t kPiece = 256;
    HWY_ALIGN float room[2 * kPiece];
    const auto widen = [&](size_t first, size_t count, float* to) {
        with_elements(d.x_type, x_data,
                      [&](const auto* from) { convert_row(from + x + int64_t(first), count, to); });
    };
    const auto narrow = [&](const float* from, size_t count, size_t first) {
        with_elements(d.y_type, y_data, [&](auto* to) { convert_row(from, count, to + y + int64_t(first)); });
    };
    for (size_t n = 0; n < pairs; n += kPiece) {
        const size_t count = HWY_MIN(kPiece, pairs - n);
        if (d.interleaved) {
            widen(2 * n, 2 * count, room);
            rotate_neighbours(room, cos + n, sin + n, count, room);
            narrow(room, 2 * count, 2 * n);
            continue;
        }
        widen(n, count, room), widen(pairs + n, count, room + kPiece);
        rotate_halves(room, room + kPiece, cos + n, sin + n, count, room, room + kPiece);
        narrow(room, count, n), narrow(room + kPiece, count, pairs + n);
    }
    if (d.x_type == d.y_type) {  // the bits, NaN payloads included
        const size_t size = dtype_bytes(d.x_type);
        memmove(static_cast<unsigned char*>(y_data) + (size_t(y) + d.rotary_dim) * size,
                static_cast<const unsigned char*>(x_data) + (size_t(x) + d.rotary_dim) * size,
                (d.dim - d.rotary_dim) * size);
        return;
    }
    for (size_t n = d.rotary_dim; n < d.dim; n += kPiece) {
        const size_t count = HWY_MIN(kPiece, d.dim - n);
        widen(n, count, room), narrow(room, count, n);
    }
}

inline void rope_rows(const FoveaRopeDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    const auto* cos = static_cast<const float*>(bindings[FOVEA_BIND_COS].data);
    const auto* sin = static_cast<const float*>(bindings[FOVEA_BIND_SIN].data);
    for (uint64_t row = begin; row < end; ++row) {
        const reference::RowIndex at = reference::split_row(row, d.heads, d.len);
        const int64_t angles = reference::angle_row(d, bindings, at) * int64_t(d.rotary_dim / 2);
        rope_row(d, bindings[FOVEA_BIND_X].data, reference::first_element(d.x_strides, at),
                 bindings[FOVEA_BIND_Y].data, reference::first_element(d.y_strides, at), cos + angles,
                 sin + angles);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::rope) rope_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, rope_rows) }

}  // namespace fovea::cpu
#endif

// Rows of rotary embeddings: a few numbers each, so that a call is a walk through memory.
#if defined(FOVEA_CPU_ROPE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_ROPE_INL_HPP
#undef FOVEA_CPU_ROPE_INL_HPP
#else
#define FOVEA_CPU_ROPE_INL_HPP
#endif

#include "cpu/convert_row_inl.hpp"
#include "reference/operation_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Pairs (n, n + pairs). x and y may be the same row: what a step writes it has read.
template <class X, class Y>
HWY_INLINE void rotate_halves(const X* x, const float* cos, const float* sin, size_t pairs, Y* y) {
    const F f;
    size_t n = 0;
    for (; n + kLanes <= pairs; n += kLanes) {
        const V c = hn::LoadU(f, cos + n), s = hn::LoadU(f, sin + n);
        const V first = load_row(x + n), second = load_row(x + n + pairs);
        store_row(hn::Sub(hn::Mul(c, first), hn::Mul(s, second)), y + n);
        store_row(hn::Add(hn::Mul(s, first), hn::Mul(c, second)), y + n + pairs);
    }
    for (; n < pairs; ++n) {
        const float first = load_one(x + n), second = load_one(x + n + pairs);
        store_one(cos[n] * first - sin[n] * second, y + n);
        store_one(sin[n] * first + cos[n] * second, y + n + pairs);
    }
}

// Pairs (2n, 2n + 1).
template <class X, class Y>
HWY_INLINE void rotate_neighbours(const X* x, const float* cos, const float* sin, size_t pairs, Y* y) {
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
        const float first = load_one(x + 2 * n), second = load_one(x + 2 * n + 1);
        store_one(cos[n] * first - sin[n] * second, y + 2 * n);
        store_one(sin[n] * first + cos[n] * second, y + 2 * n + 1);
    }
}

template <class X, class Y>
void rope_rows_of(const FoveaRopeDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    const size_t pairs = d.rotary_dim / 2;
    const auto* cos = static_cast<const float*>(bindings[FOVEA_BIND_COS].data);
    const auto* sin = static_cast<const float*>(bindings[FOVEA_BIND_SIN].data);
    for (uint64_t row = begin; row < end; ++row) {
        const reference::RowIndex at = reference::split_row(row, d.heads, d.len);
        const X* x =
            static_cast<const X*>(bindings[FOVEA_BIND_X].data) + reference::first_element(d.x_strides, at);
        Y* y = static_cast<Y*>(bindings[FOVEA_BIND_Y].data) + reference::first_element(d.y_strides, at);
        const int64_t angles = reference::angle_row(d, bindings, at) * int64_t(pairs);
        if (d.interleaved)
            rotate_neighbours(x, cos + angles, sin + angles, pairs, y);
        else
            rotate_halves(x, cos + angles, sin + angles, pairs, y);
        convert_row(x + d.rotary_dim, d.dim - d.rotary_dim, y + d.rotary_dim);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/merge.cpp"
#include <hwy/foreach_target.h>

#include "cpu/convert_row_inl.hpp"
#include "reference/operation_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// reference::blend_row in vectors. Whole ones: the tree's rows have room behind their columns.
inline void blend_vectors(const float* a, float* b, const reference::MergeFactors<float>& factors,
                          uint32_t count) {
    static_assert(reference::kMergeColumns % kLanes == 0);
    if (factors.a == 0 || factors.b == 0) return reference::blend_row(a, b, factors, count);
    const F f;
    const V of_a = hn::Set(f, factors.a), of_b = hn::Set(f, factors.b);
    for (size_t n = 0; n < count; n += kLanes)
        hn::StoreU(mul_add(of_a, hn::LoadU(f, a + n), hn::Mul(of_b, hn::LoadU(f, b + n))), f, b + n);
}

template <class X, class Y>
void merge_rows_of(const FoveaMergeDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    const auto* x = static_cast<const X*>(bindings[FOVEA_BIND_X].data);
    auto* y = static_cast<Y*>(bindings[FOVEA_BIND_Y].data);
    for (uint64_t flat = begin; flat < end; ++flat)
        reference::merge_row<float>(
            d, bindings, flat,
            [&](int64_t first, uint32_t count, float* out) { convert_row(x + first, count, out); },
            [&](int64_t first, uint32_t count, const float* row) { convert_row(row, count, y + first); },
            blend_vectors);
}

void merge_rows(const FoveaMergeDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    with_type(d.x_type, [&](auto x) {
        with_type(d.y_type,
                  [&](auto y) { merge_rows_of<decltype(x), decltype(y)>(d, bindings, begin, end); });
    });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::merge) merge_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, merge_rows) }

}  // namespace fovea::cpu
#endif

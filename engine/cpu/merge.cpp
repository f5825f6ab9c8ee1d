#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/merge.cpp"
#include <hwy/foreach_target.h>

#include "cpu/convert_row_inl.hpp"
#include "reference/operation_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// reference::blend_row with vectors. It writes whole vectors: the tree's rows have room after their columns.
inline void blend_vectors(const float* a, float* b, const reference::MergeFactors<float>& factors,
                          uint32_t count) {
    static_assert(reference::kMergeColumns % kLanes == 0);
    if (factors.a == 0 || factors.b == 0) return reference::blend_row(a, b, factors, count);
    const F f;
    const V of_a = hn::Set(f, factors.a), of_b = hn::Set(f, factors.b);
    for (size_t n = 0; n < count; n += kLanes)
        hn::StoreU(mul_add(of_a, hn::LoadU(f, a + n), hn::Mul(of_b, hn::LoadU(f, b + n))), f, b + n);
}

void merge_rows(const FoveaMergeDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    const void* x = bindings[FOVEA_BIND_X].data;
    const auto load = [&](int64_t first, uint32_t count, float* out) {
        with_elements(d.x_type, x, [&](const auto* from) { convert_row(from + first, count, out); });
    };
    const auto store = [&](int64_t first, uint32_t count, const float* row) {
        with_elements(d.y_type, bindings[FOVEA_BIND_Y].data,
                      [&](auto* to) { convert_row(row, count, to + first); });
    };
    for (uint64_t flat = begin; flat < end; ++flat)
        reference::merge_row<float>(d, bindings, flat, load, store, blend_vectors);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::merge) merge_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, merge_rows) }

}  // namespace fovea::cpu
#endif

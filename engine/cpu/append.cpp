#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/append.cpp"
#include <hwy/foreach_target.h>

#include "cpu/convert_row_inl.hpp"
#include "reference/operation_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

template <class X, class Y>
void append_rows_of(const FoveaAppendDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
        const reference::RowIndex at = reference::split_row(row, d.heads, d.len);
        const int64_t x = reference::first_element(d.x_strides, at),
                      y = reference::cache_row(d, bindings, at);
        if (y < 0) continue;
        convert_row(static_cast<const X*>(bindings[FOVEA_BIND_X].data) + x, d.dim,
                    static_cast<Y*>(bindings[FOVEA_BIND_Y].data) + y);
    }
}

// Rows of equal types move their bits, NaN payloads included.
void append_rows(const FoveaAppendDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    if (d.x_type == d.y_type) {
        for (uint64_t row = begin; row < end; ++row) reference::append_row(d, bindings, row);
        return;
    }
    with_type(d.x_type, [&](auto x) {
        with_type(d.y_type,
                  [&](auto y) { append_rows_of<decltype(x), decltype(y)>(d, bindings, begin, end); });
    });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::append) append_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, append_rows) }

}  // namespace fovea::cpu
#endif

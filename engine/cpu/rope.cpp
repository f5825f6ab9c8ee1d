#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rope.cpp"
#include <hwy/foreach_target.h>

#include "cpu/rope_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void rope_rows(const FoveaRopeDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    with_type(d.x_type, [&](auto x) {
        with_type(d.y_type, [&](auto y) { rope_rows_of<decltype(x), decltype(y)>(d, bindings, begin, end); });
    });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::rope) rope_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, rope_rows) }

}  // namespace fovea::cpu
#endif

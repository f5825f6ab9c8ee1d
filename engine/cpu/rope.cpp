#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rope.cpp"
#include <hwy/foreach_target.h>

#include "cpu/rope_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void rope_rows(const FoveaRopeDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    const bool x16 = d.x_type == FOVEA_F16, y16 = d.y_type == FOVEA_F16;
    if (x16 && y16) return rope_rows_of<uint16_t, uint16_t>(d, bindings, begin, end);
    if (x16) return rope_rows_of<uint16_t, float>(d, bindings, begin, end);
    if (y16) return rope_rows_of<float, uint16_t>(d, bindings, begin, end);
    rope_rows_of<float, float>(d, bindings, begin, end);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::rope) rope_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, rope_rows) }

}  // namespace fovea::cpu
#endif

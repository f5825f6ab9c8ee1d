#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/linear.cpp"
#include <hwy/foreach_target.h>

#include "cpu/linear_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void linear_task(const LinearCall& call, uint64_t task, unsigned char* scratch) {
    LinearTask(call, task, scratch).run();
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::linear) linear_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, linear_task) }

}  // namespace fovea::cpu
#endif

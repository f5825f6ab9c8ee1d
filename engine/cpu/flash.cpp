#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/flash.cpp"
#include <hwy/foreach_target.h>

#include "cpu/flash_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void flash_task(const AttentionCall& call, uint64_t task, unsigned char* scratch) {
    FlashTask<Products::f32>(call, task, scratch).run();
}
#if FOVEA_HAS_PAIRS
void flash_pairs_task(const AttentionCall& call, uint64_t task, unsigned char* scratch) {
    FlashTask<Products::bf16>(call, task, scratch).run();
}
#endif

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

FOVEA_DECLARE_TARGETS(flash_task)
FOVEA_IF_PAIRS(namespace N_AVX3 { decltype(HWY_NAMESPACE::flash_task) flash_pairs_task; })

decltype(Kernels::flash) flash_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, flash_task) }
decltype(Kernels::flash) flash_pairs_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET_OF_PAIRS(target, flash_pairs_task)
}

}  // namespace fovea::cpu
#endif

#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/decode.cpp"
#include <hwy/foreach_target.h>

#include "cpu/decode_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void decode_task(const AttentionCall& call, uint64_t task, unsigned char* scratch, unsigned char* partial) {
    DecodeTask(call, task, scratch, partial).run();
}

void merge_splits(const AttentionCall& call, uint64_t group, unsigned char* partials) {
    DecodeMerge(call, group, partials).run();
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

FOVEA_DECLARE_TARGETS(decode_task)
FOVEA_DECLARE_TARGETS(merge_splits)

decltype(Kernels::decode) decode_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, decode_task) }
decltype(Kernels::decode_merge) decode_merge_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET(target, merge_splits)
}

}  // namespace fovea::cpu
#endif

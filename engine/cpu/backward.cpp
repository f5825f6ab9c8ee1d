#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/backward.cpp"
#include <hwy/foreach_target.h>

#include "cpu/backward_key_inl.hpp"
#include "cpu/backward_query_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void backward_task(const BackwardCall& call, uint64_t task, unsigned char* scratch) {
    const BackwardCut& cut = call.cut;
    if (task < cut.query_tasks) return QueryPanel(call, scratch).query_tile(task);
    task -= cut.query_tasks;
    if (task < cut.key_tasks) return KeyPanel(call, scratch).run(task);
    task -= cut.key_tasks;
    if (task < cut.bias_tasks) return QueryPanel(call, scratch).bias_rows(task);
    task -= cut.bias_tasks;
    if (task < cut.slope_tasks) return QueryPanel(call, scratch).slope(uint32_t(task));
    QueryPanel(call, scratch).sink(uint32_t(task - cut.slope_tasks));
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

FOVEA_DECLARE_TARGETS(backward_task)

decltype(Kernels::backward) backward_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, backward_task) }

}  // namespace fovea::cpu
#endif

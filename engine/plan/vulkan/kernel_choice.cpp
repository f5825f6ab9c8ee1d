// Which kernel runs an attention call on Vulkan.
#include "plan/kernel_choice.hpp"

#include "plan/vulkan/attention.hpp"
#include "plan/vulkan/flash.hpp"
#include "plan/vulkan/kernels.hpp"
#include "plan/vulkan/limits.hpp"

namespace fovea {
namespace {

const char* staged_obstacle(const FoveaPlan_T& plan) {
    if (!has_compressed(plan.problem)) return nullptr;
    return "the KV cache is quantized, which only the flash kernels support, and they have no matrix outputs";
}

// The best first.
constexpr Candidate kVulkanCandidates[] = {
    {FOVEA_KERNEL_FLASH_COOPMAT2, flash_coopmat2_obstacle, no_reason, within_buffers<plan_flash_coopmat2>,
     "one pass on NV cooperative matrices, float16 inputs, float32 accumulation"},
    {FOVEA_KERNEL_FLASH_COOPMAT, flash_coopmat_obstacle, no_reason, within_buffers<plan_flash_coopmat>,
     "one pass on cooperative matrices, 16-bit inputs, float32 accumulation"},
    {FOVEA_KERNEL_FLASH, flash_obstacle, no_reason, within_buffers<plan_flash>,
     "one pass with an online softmax; memory does not grow with the lengths"},
    {FOVEA_KERNEL_STAGED, staged_obstacle, no_reason, within_buffers<plan_staged>,
     "scores, softmax and weighted sum as separate dispatches; every intermediate result is available"},
};

}  // namespace

FoveaResult plan_vulkan_attention(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (FoveaResult r = check_attention(plan, diag)) return r;
    plan.vulkan.visible = visibility_of(plan.problem);
    return choose(kVulkanCandidates, plan.problem.kernel, "Vulkan", plan, diag);
}

}  // namespace fovea

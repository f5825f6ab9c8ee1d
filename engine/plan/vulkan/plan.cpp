#include "plan/vulkan/plan.hpp"

#include "plan/plan.hpp"
#include "plan/vulkan/attention.hpp"
#include "plan/vulkan/flash.hpp"
#include "plan/vulkan/kernel_choice.hpp"
#include "plan/vulkan/limits.hpp"
#include "plan/vulkan/map_tile.hpp"
#include "plan/vulkan/operations.hpp"
#include "plan/vulkan/staged.hpp"
#include "problem/bindings.hpp"
#include "problem/checked.hpp"

namespace fovea {
namespace {

// Inputs are read in 32-bit words, float16 ones too; outputs are written so where there is no 16-bit storage.
void round_to_words(const FoveaDeviceFacts& facts, FoveaPlanInfo& info) {
    BindingMask rounded = info.binding_mask & ~info.output_mask;
    if (!(facts.features & FOVEA_FEATURE_F16_STORAGE)) rounded |= info.output_mask;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (rounded >> i & 1) info.binding_bytes[i] = align_up(info.binding_bytes[i], 4);
}

FoveaResult plan_attention(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (FoveaResult r = check_attention(plan, diag)) return r;
    plan.vulkan.visible = visibility_of(plan.problem);
    return plan_vulkan_kernel(plan, diag);
}

}  // namespace

FoveaResult plan_vulkan(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (FoveaResult r = check_vulkan_facts(plan.facts, diag)) return r;
    round_to_words(plan.facts, plan.info);
    switch (plan.operation) {
        case Operation::attention:
            return plan_attention(plan, diag);
        case Operation::rope:
            return plan_vulkan_rope(plan, diag);
        case Operation::linear:
            return plan_vulkan_linear(plan, diag);
        case Operation::append:
            return plan_vulkan_append(plan, diag);
        case Operation::map_tile:
            return plan_vulkan_map_tile(plan, diag);
    }
    return FOVEA_INVALID_ARGUMENT;
}

FoveaResult vulkan_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                         FoveaDiag* diag) {
    if (plan.operation == Operation::map_tile) return map_tile_slice(plan, slice, out, count, diag);
    if (plan.operation != Operation::attention) return operation_slice(plan, slice, out, count, diag);
    if (plan.info.kernel == FOVEA_KERNEL_STAGED) return staged_slice(plan, slice, out, count, diag);
    return flash_slice(plan, slice, out, count, diag);
}

void explain_vulkan(const FoveaPlan_T& plan, TextSink& text) {
    if (plan.operation == Operation::map_tile)
        explain_vulkan_map_tile(plan, text);
    else if (plan.operation != Operation::attention)
        explain_operation(plan, text);
    else if (plan.info.kernel == FOVEA_KERNEL_STAGED)
        explain_staged(plan, text);
    else
        explain_flash(plan, text);
}

}  // namespace fovea

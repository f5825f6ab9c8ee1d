#include "plan/vulkan/plan.hpp"

#include "plan/plan.hpp"
#include "plan/text_sink.hpp"
#include "plan/vulkan/attention.hpp"
#include "plan/vulkan/flash.hpp"
#include "plan/vulkan/gather.hpp"
#include "plan/vulkan/kernels.hpp"
#include "plan/vulkan/limits.hpp"
#include "plan/vulkan/rotation.hpp"
#include "problem/bindings.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"

namespace fovea {
namespace {

// Rounds sizes to 32-bit words. Inputs are read as words, even float16 ones. Outputs are written as words if
// there is no 16-bit storage; gradients and quantized outputs always are.
void round_to_words(const FoveaPlan_T& plan, FoveaPlanInfo& info) {
    BindingMask rounded = info.binding_mask & ~info.output_mask;
    const bool has_halves = (plan.properties.features & FOVEA_FEATURE_F16_STORAGE) != 0;
    if (!has_halves || plan.operation == Operation::backward) rounded |= info.output_mask;
    rounded |= plan.narrow.one_byte;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (rounded >> i & 1) info.binding_bytes[i] = align_up(info.binding_bytes[i], 4);
}

FoveaResult attention_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                            FoveaDiag* diag) {
    return plan.info.kernel == FOVEA_KERNEL_STAGED ? staged_slice(plan, slice, out, count, diag)
                                                   : flash_slice(plan, slice, out, count, diag);
}

void explain_attention(const FoveaPlan_T& plan, TextSink& text) {
    plan.info.kernel == FOVEA_KERNEL_STAGED ? explain_staged(plan, text) : explain_flash(plan, text);
}

// Slices that fit kMaxDispatchesPerSlice have all their dispatches in the first part.
template <FoveaResult (*Slice)(const FoveaPlan_T&, uint64_t, FoveaDispatch*, uint32_t&, FoveaDiag*)>
FoveaResult in_one(const FoveaPlan_T& plan, uint64_t slice, uint64_t first, FoveaDispatch* out,
                   uint32_t& count, FoveaDiag* diag) {
    if (first == 0) return Slice(plan, slice, out, count, diag);
    count = 0;
    return FOVEA_OK;
}

struct VulkanOperation {
    FoveaResult (*make)(FoveaPlan_T& plan, FoveaDiag* diag);
    FoveaResult (*slice)(const FoveaPlan_T& plan, uint64_t slice, uint64_t first, FoveaDispatch* out,
                         uint32_t& count, FoveaDiag* diag);
    void (*explain)(const FoveaPlan_T& plan, TextSink& text);
};

// The dispatch of a slice, for operations that have one each.
template <FoveaResult (*make)(FoveaPlan_T& plan, FoveaDiag* diag),
          void (*explain)(const FoveaPlan_T& plan, TextSink& text) = explain_rows>
constexpr VulkanOperation kByRows{within_buffers<make>, in_one<operation_slice>, explain};

// By Operation. Each candidate of attention keeps to the number of buffers by itself.
constexpr VulkanOperation kOperations[] = {
    {plan_vulkan_attention, in_one<attention_slice>, explain_attention},
    kByRows<plan_vulkan_rope>,
    kByRows<plan_vulkan_linear, explain_linear>,
    kByRows<plan_vulkan_append>,
    {within_buffers<plan_vulkan_map_tile>, in_one<map_tile_slice>, explain_vulkan_map_tile},
    {within_buffers<plan_vulkan_backward>, backward_slice, explain_vulkan_backward},
    kByRows<plan_vulkan_merge>,
    kByRows<plan_vulkan_gather>,
#ifndef FOVEA_NO_ROW_PARTS  // a page makes no plans of them
    kByRows<plan_vulkan_norm>,
    kByRows<plan_vulkan_pointwise>,
#endif
};

const VulkanOperation& operation_of(const FoveaPlan_T& plan) { return kOperations[size_t(plan.operation)]; }

}  // namespace

FoveaResult plan_vulkan(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (FoveaResult r = check_vulkan_properties(plan.properties, diag)) return r;
    round_to_words(plan, plan.info);
    if (FoveaResult r = use_rotated_copies(plan, diag)) return r;
    return operation_of(plan).make(plan, diag);
}

FoveaResult vulkan_slice(const FoveaPlan_T& plan, uint64_t slice, uint64_t first, FoveaDispatch* out,
                         uint32_t& count, FoveaDiag* diag) {
    if (first >= plan.info.dispatches_per_slice) {
        count = 0;
        return FOVEA_OK;
    }
    return operation_of(plan).slice(plan, slice, first, out, count, diag);
}

void explain_vulkan(const FoveaPlan_T& plan, TextSink& text) {
    operation_of(plan).explain(plan, text);
    explain_rotation(plan.vulkan, text);
    if (gathered_count(plan))
        text.line("%u inputs are copied into the workspace first: a kernel binds %u storage buffers at most",
                  gathered_count(plan), storage_buffer_limit(plan.properties));
}

}  // namespace fovea

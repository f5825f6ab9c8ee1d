// An application's device as Fovea uses it. Immutable after creation, except for the table of pipelines
// (which locks itself) and the mark that the device is lost.
#pragma once

#include "plan/plan.hpp"
#include "vulkan/device_query.hpp"
#include "vulkan/pipeline_table.hpp"

#include <atomic>

struct FoveaContext_T {
    FoveaHostAllocator allocator;
    VkAllocationCallbacks vk_callbacks;
    bool has_vk_callbacks;
    VkDevice device;
    fovea::vulkan::DeviceTable vk;
    fovea::vulkan::PhysicalDevice physical_device;
    fovea::vulkan::Features enabled;
    FoveaDeviceProperties properties;
    VkPipelineCache cache;
    bool owns_cache, cache_accepted;
    fovea::vulkan::PipelineTable pipelines;
    std::atomic<bool> lost;

    const VkAllocationCallbacks* callbacks() const { return has_vk_callbacks ? &vk_callbacks : nullptr; }
};

namespace fovea::vulkan {

// At most this many dispatches in a slice and pipelines in a plan, so that recording can keep them on the
// stack.
constexpr uint32_t kMaxPipelinesOfPlan = 32;

// A plan's pipelines, copied out of the table of its context, which owns them. Allocated by the plan's
// allocator.
struct PlanPipelines : CompiledPlan {
    FoveaContext context;
    uint32_t count;
    Pipeline pipelines[kMaxPipelinesOfPlan];
    // True where every slice runs the same pipelines in the same order, few enough for this, which are
    // indices of `pipelines`.
    bool slices_alike;
    uint32_t dispatches_per_slice;
    uint32_t of_dispatch[kMaxDispatchesPerSlice];

    const Pipeline* find(const FoveaDispatch& dispatch) const;
};
inline const PlanPipelines* pipelines_of(const FoveaPlan_T& plan) {
    return static_cast<const PlanPipelines*>(plan.compiled);
}

// Fails if the device was lost.
FoveaResult check_alive(const FoveaContext_T& context, FoveaDiag* diag);
// For a Vulkan call that failed: remembers a loss.
FoveaResult call_failed(FoveaContext_T& context, VkResult result, const char* call, FoveaDiag* diag);

// Finds or builds one pipeline.
FoveaResult get_pipeline(FoveaContext_T& context, const PipelineKey& key, Pipeline& out, FoveaDiag* diag);
void destroy_pipeline(const FoveaContext_T& context, const Pipeline& pipeline);

}  // namespace fovea::vulkan

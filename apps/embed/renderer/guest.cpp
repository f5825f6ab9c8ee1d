#include "guest.hpp"

#include <algorithm>
#include <utility>

namespace embed {

Guest::Guest(const Gpu& lender) : gpu(lender) {
    // Fovea uses the renderer's objects, and only the features that were enabled.
    const FoveaVulkanDevice vulkan = {
        .struct_size = sizeof vulkan,
        .api_version = VK_API_VERSION_1_3,
        .instance = gpu.instance,
        .physical_device = gpu.physical,
        .device = gpu.device,
        .get_instance_proc_addr = vkGetInstanceProcAddr,
        .enabled_features = foveaEnabledFeatures2(&gpu.enabled),
        .enabled_extensions = gpu.enabled.extensions,
        .enabled_extension_count = gpu.enabled.extension_count,
    };
    fovea::Diag diag;
    require(foveaCreateContext(&vulkan, &context, &diag) == FOVEA_OK, diag.text);
    foveaContextProperties(context, &properties, &diag);
}

SlicedPlan::SlicedPlan(const Guest& guest, fovea::Result<fovea::Plan> plan) : guest_(guest) {
    require(plan.has_value(), plan ? "" : plan.error().text.c_str());
    plan_ = std::move(*plan);
    fovea::Diag diag;
    require(foveaCompilePlan(guest.context, plan_.get(), &diag) == FOVEA_OK, diag.text);
    info = plan_.info();
    workspace_ = guest.gpu.buffer(std::max<uint64_t>(info.workspace_bytes, 16));
    if (guest.properties.features & FOVEA_FEATURE_PUSH_DESCRIPTORS) return;  // no pool is needed
    const uint32_t sets = slice_count() * info.dispatches_per_slice;  // a frame may record the whole round
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    const VkDescriptorPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                            .maxSets = sets,
                                            .poolSizeCount = 1,
                                            .pPoolSizes = &size};
    for (VkDescriptorPool& pool : pools_)
        check(vkCreateDescriptorPool(guest.gpu.device, &create, nullptr, &pool), "no descriptor pool");
}

SlicedPlan::~SlicedPlan() {
    for (const VkDescriptorPool pool : pools_) vkDestroyDescriptorPool(guest_.gpu.device, pool, nullptr);
    guest_.gpu.destroy(workspace_);
}

uint32_t SlicedPlan::record(VkCommandBuffer cmd, const Bindings& bindings, double budget_seconds,
                            VkQueryPool queries, uint32_t first_query, uint32_t frame) {
    const uint32_t left = slice_count() - next_slice_;
    double fits = 1;  // as long as nothing has been measured
    if (slowest_slice_seconds_ > 0 || budget_seconds == kNoBudget)
        fits = 0.6 * budget_seconds / slowest_slice_seconds_;
    const uint32_t slices = uint32_t(std::clamp(fits, 1.0, double(left)));
    const FoveaRecord record = {
        .struct_size = sizeof record,
        .binding_count = FOVEA_BIND_COUNT,
        .cmd = cmd,
        .bindings = bindings,
        .workspace = {workspace_.handle, 0, workspace_.size},
        .first_slice = next_slice_,
        .slice_count = slices,
        .timestamps = queries,
        .first_query = first_query,
        .descriptor_pool = {pools_[frame]},
    };
    if (pools_[frame])
        vkResetDescriptorPool(guest_.gpu.device, pools_[frame], 0);  // the frame that used it has finished
    fovea::Diag diag;
    require(foveaCmdRun(plan_.get(), &record, &diag) == FOVEA_OK, diag.text);
    next_slice_ = (next_slice_ + slices) % slice_count();
    return slices;
}

// The slowest of late counts: it fades, so that one bad moment does not slow the renderer for good.
void SlicedPlan::measured(double slice_seconds) {
    slowest_slice_seconds_ = std::max(slice_seconds, 0.98 * slowest_slice_seconds_);
}

}  // namespace embed

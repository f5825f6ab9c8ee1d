#include "attention.hpp"

#include <algorithm>

namespace flock {

// [plan]
Attention::Attention(const Gpu& gpu, uint32_t birds) : gpu_(gpu) {
    // Fovea takes what the renderer has. It is told what was enabled, and uses nothing else.
    const FoveaVulkanHost host = {
        .struct_size = sizeof host,
        .api_version = VK_API_VERSION_1_3,
        .instance = gpu.instance,
        .physical_device = gpu.physical,
        .device = gpu.device,
        .get_instance_proc_addr = vkGetInstanceProcAddr,
        .enabled_features = gpu.enabled.features,
        .enabled_extensions = gpu.enabled.extensions,
        .enabled_extension_count = gpu.enabled.extension_count,
    };
    fovea::Diag diag;
    require(foveaCreateContext(&host, &context_, &diag) == FOVEA_OK, diag.text);
    FoveaDeviceFacts facts = foveaDeviceFacts();
    foveaContextFacts(context_, &facts, &diag);

    fovea::Attention call;
    call.batch(1).heads(kHeads, 1).lengths(birds, birds).dims(kDim).scale(1);
    call.outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE);
    call.desc.max_slice_cost = 1e6;  // FLOP: by how much a misjudged budget is missed at most
    fovea::Result<fovea::Plan> plan = fovea::plan_attention(facts, call);
    require(plan.has_value(), plan ? "" : plan.error().text.c_str());
    plan_ = std::move(*plan);
    require(foveaCompilePlan(context_, plan_.get(), &diag) == FOVEA_OK, diag.text);
    info_ = plan_.info();

    q_ = gpu.buffer(info_.binding_bytes[FOVEA_BIND_Q]);
    k_ = gpu.buffer(info_.binding_bytes[FOVEA_BIND_K]);
    v_ = gpu.buffer(info_.binding_bytes[FOVEA_BIND_V]);
    for (uint32_t side = 0; side < 2; ++side) {
        means_[side] = gpu.buffer(info_.binding_bytes[FOVEA_BIND_O]);
        log_sums_[side] = gpu.buffer(info_.binding_bytes[FOVEA_BIND_LSE]);
    }
    workspace_ = gpu.buffer(std::max<uint64_t>(info_.workspace_bytes, 16));
    if (facts.features & FOVEA_FEATURE_PUSH_DESCRIPTORS) return;       // no pool is needed
    const uint32_t sets = slice_count() * info_.dispatches_per_slice;  // a frame may record the whole round
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    const VkDescriptorPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                            .maxSets = sets,
                                            .poolSizeCount = 1,
                                            .pPoolSizes = &size};
    for (VkDescriptorPool& pool : pools_)
        check(vkCreateDescriptorPool(gpu.device, &create, nullptr, &pool), "no descriptor pool");
}
// [end plan]

Attention::~Attention() {
    plan_ = {};
    foveaDestroyContext(context_);
    for (const VkDescriptorPool pool : pools_) vkDestroyDescriptorPool(gpu_.device, pool, nullptr);
    for (const Buffer* b : {&q_, &k_, &v_, &workspace_, &means_[0], &means_[1], &log_sums_[0], &log_sums_[1]})
        gpu_.destroy(*b);
}

// [record]
uint32_t Attention::record(VkCommandBuffer cmd, double budget_seconds, VkQueryPool queries,
                           uint32_t first_query, uint32_t frame) {
    const uint32_t left = slice_count() - next_slice_;
    const double fits = slowest_slice_seconds_ > 0 ? 0.6 * budget_seconds / slowest_slice_seconds_ : 1;
    const uint32_t slices = uint32_t(std::clamp(fits, 1.0, double(left)));

    FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
    const auto bind = [&](FoveaBinding to, const Buffer& b) { bindings[to] = {b.handle, 0, b.size}; };
    bind(FOVEA_BIND_Q, q_);
    bind(FOVEA_BIND_K, k_);
    bind(FOVEA_BIND_V, v_);
    bind(FOVEA_BIND_O, means_[side_]);
    bind(FOVEA_BIND_LSE, log_sums_[side_]);
    FoveaRecord record = {
        .struct_size = sizeof record,
        .binding_count = FOVEA_BIND_COUNT,
        .cmd = cmd,
        .bindings = bindings,
        .workspace = {workspace_.handle, 0, workspace_.size},
        .first_slice = next_slice_,
        .slice_count = slices,
        .timestamps = queries,
        .first_query = first_query,
        .arena = {pools_[frame]},
    };
    if (pools_[frame])
        vkResetDescriptorPool(gpu_.device, pools_[frame], 0);  // the frame that used it has finished
    fovea::Diag diag;
    require(foveaCmdRun(plan_.get(), &record, &diag) == FOVEA_OK, diag.text);
    next_slice_ += slices;
    if (next_slice_ == slice_count()) {  // the round is complete: show this side, write the other
        next_slice_ = 0;
        side_ = 1 - side_;
    }
    return slices;
}
// [end record]

// The slowest of late counts: it fades, so that one bad moment does not slow the flock for good.
void Attention::measured(double slice_seconds) {
    slowest_slice_seconds_ = std::max(slice_seconds, 0.98 * slowest_slice_seconds_);
}

}  // namespace flock

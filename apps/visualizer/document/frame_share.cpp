#include "document/frame_share.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

// FLOP/s to begin with; measured from the first frame on.
constexpr double kSoftwareRate = 1e9, kHardwareRate = 2e11;

}  // namespace

FrameShares::FrameShares(GpuDevice& device) : device_(device) {
    rates_.fill(device.facts().device_class == FOVEA_CLASS_CPU ? kSoftwareRate : kHardwareRate);
}

FrameShares::~FrameShares() {
    for (const FrameShare& share : shares_) {
        vkDestroyDescriptorPool(device_.device(), share.pool, nullptr);
        vkDestroyQueryPool(device_.device(), share.queries, nullptr);
    }
}

Result<void> FrameShares::create() {
    for (FrameShare& share : shares_) {
        if (device_.has_timestamps()) {
            VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
            queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
            queries.queryCount = 2;
            if (VkResult r = vkCreateQueryPool(device_.device(), &queries, nullptr, &share.queries))
                return vulkan_error("vkCreateQueryPool", r);
        }
        if (device_.facts().features & FOVEA_FEATURE_PUSH_DESCRIPTORS) continue;
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        kSetsAFrame * FOVEA_MAX_DISPATCH_BINDINGS};
        VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
        pool.maxSets = kSetsAFrame;
        pool.poolSizeCount = 1;
        pool.pPoolSizes = &size;
        if (VkResult r = vkCreateDescriptorPool(device_.device(), &pool, nullptr, &share.pool))
            return vulkan_error("vkCreateDescriptorPool", r);
    }
    return {};
}

FrameShare& FrameShares::next(uint64_t frame, uint64_t ended, bool of_window) {
    FrameShare& share = shares_[frame % shares_.size()];
    learn(share, ended);
    share.frame = frame, share.work = Work::none, share.flops = 0;
    share.of_window = of_window;
    share.sets_left = kSetsAFrame;
    if (share.pool) vkResetDescriptorPool(device_.device(), share.pool, 0);
    return share;
}

void FrameShares::begin(VkCommandBuffer cmd, const FrameShare& share) const {
    if (!share.queries) return;
    vkCmdResetQueryPool(cmd, share.queries, 0, 2);
    vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, share.queries, 0);
}

void FrameShares::end(VkCommandBuffer cmd, const FrameShare& share) const {
    if (share.queries) vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, share.queries, 1);
}

void FrameShares::learn(const FrameShare& share, uint64_t ended) {
    if (share.work == Work::none || !share.queries || share.frame > ended) return;
    uint64_t ticks[2] = {};
    if (vkGetQueryPoolResults(device_.device(), share.queries, 0, 2, sizeof ticks, ticks, 8,
                              VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
        return;
    const double taken = double(ticks[1] - ticks[0]) * double(device_.timestamp_period_ns()) * 1e-9;
    if (share.of_window) last_seconds_ = taken;
    if (taken < 1e-6 || share.flops < 1e5) return;
    double& known = rates_[size_t(share.work)];
    known = std::clamp(0.5 * (known + share.flops / taken), known / 4, known * 4);
}

}  // namespace fovea::visualizer

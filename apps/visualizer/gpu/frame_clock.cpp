#include "gpu/frame_clock.hpp"

namespace fovea::visualizer {

Result<std::unique_ptr<FrameClock>> FrameClock::create(GpuDevice& device, size_t frames_in_flight) {
    std::unique_ptr<FrameClock> clock(new FrameClock(device));
    clock->written_.resize(frames_in_flight);
    if (!device.has_timestamps()) return clock;
    VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = uint32_t(2 * frames_in_flight);
    if (VkResult r = vkCreateQueryPool(device.device(), &queries, nullptr, &clock->queries_))
        return vulkan_error("vkCreateQueryPool", r);
    return clock;
}

FrameClock::~FrameClock() {
    if (queries_) vkDestroyQueryPool(device_.device(), queries_, nullptr);
}

double FrameClock::begin(VkCommandBuffer cmd) {
    if (!queries_) return 0;
    double seconds = 0;
    uint64_t ticks[2];
    if (written_[place_] && vkGetQueryPoolResults(device_.device(), queries_, 2 * place_, 2, sizeof ticks,
                                                  ticks, 8, VK_QUERY_RESULT_64_BIT) == VK_SUCCESS)
        seconds = double(ticks[1] - ticks[0]) * double(device_.timestamp_period_ns()) * 1e-9;
    vkCmdResetQueryPool(cmd, queries_, 2 * place_, 2);
    vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries_, 2 * place_);
    return seconds;
}

void FrameClock::end_in_pass(VkCommandBuffer cmd) {
    if (!queries_) return;
    vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 2 * place_ + 1);
    written_[place_] = true;
    place_ = (place_ + 1) % uint32_t(written_.size());
}

}  // namespace fovea::visualizer

#include "frames.hpp"

#include <algorithm>
#include <numeric>

namespace embed {

double FrameTime::attention_ms() const { return std::accumulate(slice_ms.begin(), slice_ms.end(), 0.0); }

double median(std::vector<double> v) {
    if (v.empty()) return 0;
    std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
    return v[v.size() / 2];
}

Frames::Frames(const Gpu& gpu, uint32_t max_slices) : gpu_(gpu), max_slices_(max_slices) {
    VkSemaphoreTypeCreateInfo timeline{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &timeline};
    check(vkCreateSemaphore(gpu.device, &semaphore, nullptr, &timeline_), "no timeline semaphore");
    for (uint32_t i = 0; i < kFramesInFlight; ++i) {
        Frame& frame = frames_[i];
        frame.index = i;
        const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                           .queueFamilyIndex = gpu.queue_family};
        check(vkCreateCommandPool(gpu.device, &pool, nullptr, &frame.pool), "no command pool");
        const VkCommandBufferAllocateInfo buffer{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                 .commandPool = frame.pool,
                                                 .commandBufferCount = 1};
        check(vkAllocateCommandBuffers(gpu.device, &buffer, &frame.cmd), "no command buffer");
        const VkQueryPoolCreateInfo times{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                          .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                          .queryCount = 2 + 2 * max_slices};
        check(vkCreateQueryPool(gpu.device, &times, nullptr, &frame.times), "no timestamps");
    }
}

Frames::~Frames() {
    for (const Frame& frame : frames_) {
        vkDestroyQueryPool(gpu_.device, frame.times, nullptr);
        vkDestroyCommandPool(gpu_.device, frame.pool, nullptr);
    }
    vkDestroySemaphore(gpu_.device, timeline_, nullptr);
}

bool Frames::collect(Frame& frame, FrameTime& done) {
    if (frame.number == 0) return false;
    const VkSemaphoreWaitInfo wait{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                   .semaphoreCount = 1,
                                   .pSemaphores = &timeline_,
                                   .pValues = &frame.number};
    require(vkWaitSemaphores(gpu_.device, &wait, 60'000'000'000) == VK_SUCCESS, "a frame did not finish");
    std::vector<uint64_t> ticks(2 + 2 * frame.slices);
    check(vkGetQueryPoolResults(gpu_.device, frame.times, 0, uint32_t(ticks.size()), ticks.size() * 8,
                                ticks.data(), 8, VK_QUERY_RESULT_64_BIT),
          "no times");
    const double ms = gpu_.properties.limits.timestampPeriod * 1e-6;
    done = {double(ticks[1] - ticks[0]) * ms, {}};
    for (uint32_t i = 2; i < ticks.size(); i += 2)
        done.slice_ms.push_back(double(ticks[i + 1] - ticks[i]) * ms);
    frame.number = 0;
    return true;
}

void Frames::begin(Frame& frame) {
    vkResetCommandPool(gpu_.device, frame.pool, 0);
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(frame.cmd, &begin);
    vkCmdResetQueryPool(frame.cmd, frame.times, 0, 2 + 2 * max_slices_);
    vkCmdWriteTimestamp2(frame.cmd, VK_PIPELINE_STAGE_2_NONE, frame.times, 0);
    frame.slices = 0;
}

void Frames::submit(Frame& frame, const Canvas* canvas) {
    vkCmdWriteTimestamp2(frame.cmd, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, frame.times, 1);
    check(vkEndCommandBuffer(frame.cmd), "the frame was not recorded");
    const VkSemaphore acquired = canvas ? canvas->acquired(frame.index) : VK_NULL_HANDLE;
    const VkSemaphoreSubmitInfo wait{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                     .semaphore = acquired,
                                     .stageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT};
    const VkSemaphoreSubmitInfo signals[] = {{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                              .semaphore = timeline_,
                                              .value = next_number_,
                                              .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT},
                                             {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                              .semaphore = canvas ? canvas->drawn() : VK_NULL_HANDLE,
                                              .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT}};
    const VkCommandBufferSubmitInfo buffer{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                           .commandBuffer = frame.cmd};
    const VkSubmitInfo2 info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                             .waitSemaphoreInfoCount = acquired ? 1u : 0u,
                             .pWaitSemaphoreInfos = &wait,
                             .commandBufferInfoCount = 1,
                             .pCommandBufferInfos = &buffer,
                             .signalSemaphoreInfoCount = acquired ? 2u : 1u,
                             .pSignalSemaphoreInfos = signals};
    check(vkQueueSubmit2(gpu_.queue, 1, &info, VK_NULL_HANDLE), "the submission failed");
    frame.number = next_number_++;
}

}  // namespace embed

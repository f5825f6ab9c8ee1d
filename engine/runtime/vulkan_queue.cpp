#include "runtime/vulkan_queue.hpp"

#include <algorithm>

namespace fovea::runtime {
namespace {

// Room for the dispatches of one slice, for gradients of what many entries share as well.
constexpr uint32_t kSetsPerSubmission = FOVEA_MAX_DESCRIPTOR_SETS;

uint64_t nanoseconds(double seconds) {
    return static_cast<uint64_t>(std::clamp(seconds, 0.0, 1e6) * 1e9);  // never UINT64_MAX: a wait must end
}

}  // namespace

Result<std::unique_ptr<VulkanQueue>> VulkanQueue::create(VulkanDevice& device) {
    std::unique_ptr<VulkanQueue> queue(new VulkanQueue(device));
    if (device.has_timeline()) {
        VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
        type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
        const VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
        const VkResult r =
            device.vk().vkCreateSemaphore(device.handle(), &create, nullptr, &queue->timeline_);
        if (r != VK_SUCCESS) return vk_error(r, "vkCreateSemaphore");
    }
    for (Slot& slot : queue->slots_) {
        if (Result<void> r = queue->create_slot(slot); !r) return r.error();
    }
    return queue;
}

Result<void> VulkanQueue::create_slot(Slot& slot) {
    const DeviceCalls& vk = device_.vk();
    const VkDevice device = device_.handle();
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = device_.queue_family();
    VkResult r = vk.vkCreateCommandPool(device, &pool, nullptr, &slot.pool);
    if (r != VK_SUCCESS) return vk_error(r, "vkCreateCommandPool");
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = slot.pool;
    allocate.commandBufferCount = 1;
    r = vk.vkAllocateCommandBuffers(device, &allocate, &slot.submission.cmd);
    if (r != VK_SUCCESS) return vk_error(r, "vkAllocateCommandBuffers");
    if (!timeline_) {
        const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        r = vk.vkCreateFence(device, &fence, nullptr, &slot.fence);
        if (r != VK_SUCCESS) return vk_error(r, "vkCreateFence");
    }
    if (device_.timestamp_bits()) {
        VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
        queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
        queries.queryCount = 2;
        r = vk.vkCreateQueryPool(device, &queries, nullptr, &slot.submission.timestamps);
        if (r != VK_SUCCESS) return vk_error(r, "vkCreateQueryPool");
    }
    if (!(device_.properties().features & FOVEA_FEATURE_PUSH_DESCRIPTORS)) {
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        kSetsPerSubmission * FOVEA_MAX_DISPATCH_BINDINGS};
        VkDescriptorPoolCreateInfo sets{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
        sets.maxSets = kSetsPerSubmission;
        sets.poolSizeCount = 1;
        sets.pPoolSizes = &size;
        r = vk.vkCreateDescriptorPool(device, &sets, nullptr, &slot.submission.sets);
        if (r != VK_SUCCESS) return vk_error(r, "vkCreateDescriptorPool");
    }
    return {};
}

void VulkanQueue::settle(double timeout_seconds) {
    if (broken_ && broken_->code != FOVEA_TIMEOUT) return;
    broken_.reset();
    drop_callbacks();
    if (finish(timeout_seconds)) device_.abandon(false);
}

VulkanQueue::~VulkanQueue() {
    if (device_.abandoned()) return;
    const DeviceCalls& vk = device_.vk();
    for (Slot& slot : slots_) {
        vk.vkDestroyDescriptorPool(device_.handle(), slot.submission.sets, nullptr);
        vk.vkDestroyQueryPool(device_.handle(), slot.submission.timestamps, nullptr);
        vk.vkDestroyFence(device_.handle(), slot.fence, nullptr);
        vk.vkDestroyCommandPool(device_.handle(), slot.pool, nullptr);
    }
    vk.vkDestroySemaphore(device_.handle(), timeline_, nullptr);
}

Error VulkanQueue::failed(VkResult result, const char* call, const std::string& what) {
    Error error = vk_error(result, call);
    error.text += " during " + what;
    if (error.code == FOVEA_DEVICE_LOST) error.text += device_.fault_text();
    // Seen once as a submission of four minutes: under load the driver's compiler takes its time.
    if (error.code == FOVEA_TIMEOUT && device_.properties().device_class == FOVEA_CLASS_CPU)
        error.text +=
            "; a software driver compiles a pipeline in the first submission that uses it, which may take "
            "minutes on a busy machine: give a longer RunOptions::timeout_seconds";
    if (error.code == FOVEA_DEVICE_LOST || error.code == FOVEA_TIMEOUT) broken_ = error;
    // Nothing that the device may still use must be destroyed, and it may use it forever.
    if (error.code == FOVEA_TIMEOUT) device_.abandon();
    return error;
}

double VulkanQueue::seconds_of(const Slot& slot) const {
    if (!slot.timestamps_written) return 0;
    uint64_t ticks[2] = {};
    const VkResult r =
        device_.vk().vkGetQueryPoolResults(device_.handle(), slot.submission.timestamps, 0, 2, sizeof ticks,
                                           ticks, sizeof ticks[0], VK_QUERY_RESULT_64_BIT);
    if (r != VK_SUCCESS) return 0;
    const uint32_t bits = device_.timestamp_bits();
    const uint64_t mask = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
    return double((ticks[1] - ticks[0]) & mask) * double(device_.limits().timestampPeriod) * 1e-9;
}

Result<void> VulkanQueue::wait(Slot& slot, double timeout_seconds) {
    if (!slot.busy) return {};
    const DeviceCalls& vk = device_.vk();
    VkResult r;
    if (timeline_) {
        VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
        wait.semaphoreCount = 1;
        wait.pSemaphores = &timeline_;
        wait.pValues = &slot.value;
        r = vk.vkWaitSemaphores(device_.handle(), &wait, nanoseconds(timeout_seconds));
        if (r != VK_SUCCESS) return failed(r, "vkWaitSemaphores", slot.what);
    } else {
        r = vk.vkWaitForFences(device_.handle(), 1, &slot.fence, VK_TRUE, nanoseconds(timeout_seconds));
        if (r != VK_SUCCESS) return failed(r, "vkWaitForFences", slot.what);
    }
    slot.busy = false;
    const std::function<void(double)> done = std::exchange(slot.done, nullptr);
    if (done) done(seconds_of(slot));
    return {};
}

Result<Submission> VulkanQueue::begin(double timeout_seconds) {
    if (broken_) return *broken_;
    Slot& slot = slots_[next_];
    if (Result<void> r = wait(slot, timeout_seconds); !r) return r.error();
    const DeviceCalls& vk = device_.vk();
    VkResult r = vk.vkResetCommandPool(device_.handle(), slot.pool, 0);
    if (r != VK_SUCCESS) return failed(r, "vkResetCommandPool", "recording");
    if (slot.submission.sets) {
        r = vk.vkResetDescriptorPool(device_.handle(), slot.submission.sets, 0);
        if (r != VK_SUCCESS) return failed(r, "vkResetDescriptorPool", "recording");
    }
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    r = vk.vkBeginCommandBuffer(slot.submission.cmd, &begin);
    if (r != VK_SUCCESS) return failed(r, "vkBeginCommandBuffer", "recording");
    if (slot.submission.timestamps)
        vk.vkCmdResetQueryPool(slot.submission.cmd, slot.submission.timestamps, 0, 2);
    return slot.submission;
}

Result<void> VulkanQueue::submit(std::string what, bool timestamps_written,
                                 std::function<void(double)> done) {
    const DeviceCalls& vk = device_.vk();
    Slot& slot = slots_[next_];
    VkResult r = vk.vkEndCommandBuffer(slot.submission.cmd);
    if (r != VK_SUCCESS) return failed(r, "vkEndCommandBuffer", what);
    const uint64_t value = last_value_ + 1;
    VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &value;
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &slot.submission.cmd;
    if (timeline_) {
        submit.pNext = &timeline;
        submit.signalSemaphoreCount = 1;
        submit.pSignalSemaphores = &timeline_;
    } else {
        r = vk.vkResetFences(device_.handle(), 1, &slot.fence);
        if (r != VK_SUCCESS) return failed(r, "vkResetFences", what);
    }
    r = vk.vkQueueSubmit(device_.queue(), 1, &submit, slot.fence);
    if (r != VK_SUCCESS) return failed(r, "vkQueueSubmit", what);
    last_value_ = slot.value = value;
    slot.busy = true;
    slot.timestamps_written = timestamps_written;
    slot.what = std::move(what);
    slot.done = std::move(done);
    next_ = (next_ + 1) % kSlots;
    return {};
}

Result<void> VulkanQueue::finish(double timeout_seconds) {
    if (broken_) return *broken_;
    for (uint32_t i = 0; i < kSlots; ++i) {
        if (Result<void> r = wait(slots_[(next_ + i) % kSlots], timeout_seconds); !r) return r;
    }
    return {};
}

void VulkanQueue::cmd_full_barrier(VkCommandBuffer cmd) const {
    constexpr VkPipelineStageFlags kDevice =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier barrier{
        VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
            VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT};
    device_.vk().vkCmdPipelineBarrier(cmd, kDevice, kDevice | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                                      nullptr, 0, nullptr);
}

}  // namespace fovea::runtime

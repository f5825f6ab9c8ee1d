// Submissions to one queue, at most two ahead of the device, and waits that always end.
#pragma once

#include "runtime/vulkan_device.hpp"

#include <functional>

namespace fovea::runtime {

// One recorded piece of work.
struct Submission {
    VkCommandBuffer cmd = VK_NULL_HANDLE;
    VkQueryPool timestamps = VK_NULL_HANDLE;  // room for 2, reset already; null where the queue has none
    VkDescriptorPool sets = VK_NULL_HANDLE;   // empty; null with push descriptors
};

class VulkanQueue {
  public:
    static Result<std::unique_ptr<VulkanQueue>> create(VulkanDevice& device);
    ~VulkanQueue();
    VulkanQueue(const VulkanQueue&) = delete;
    VulkanQueue& operator=(const VulkanQueue&) = delete;

    // Waits until at most one submission is under way, then opens the next one.
    Result<Submission> begin(double timeout_seconds);
    // `what` names the work in errors ("slice 3 of 20 of kernel staged"); `done`, if any, is called from a
    // later begin() or finish() with the seconds between the two timestamps, 0 where they were not written.
    Result<void> submit(std::string what, bool timestamps_written, std::function<void(double)> done);
    // Called before destruction: waits once more for work that an earlier wait gave up on. If it has ended,
    // the device is no longer abandoned.
    void settle(double timeout_seconds);
    // Calls none of the `done` given so far any more.
    void drop_callbacks() {
        for (Slot& slot : slots_) slot.done = nullptr;
    }
    // Waits for all that was submitted.
    Result<void> finish(double timeout_seconds);
    // Records, submits and waits.
    template <class Record>
    Result<void> run_once(const char* what, double timeout_seconds, Record record) {
        Result<Submission> submission = begin(timeout_seconds);
        if (!submission) return submission.error();
        record(submission->cmd);
        if (Result<void> r = submit(what, false, nullptr); !r) return r;
        return finish(timeout_seconds);
    }

    // Compute and copies before it -> compute, copies and the host after it.
    void cmd_full_barrier(VkCommandBuffer cmd) const;

  private:
    static constexpr uint32_t kSlots = 2;
    struct Slot {
        VkCommandPool pool = VK_NULL_HANDLE;
        VkFence fence = VK_NULL_HANDLE;  // without timeline semaphores
        Submission submission;
        uint64_t value = 0;  // value of the timeline
        bool busy = false, timestamps_written = false;
        std::string what;
        std::function<void(double)> done;
    };
    explicit VulkanQueue(VulkanDevice& device) : device_(device) {}
    Result<void> create_slot(Slot& slot);
    Result<void> wait(Slot& slot, double timeout_seconds);
    Error failed(VkResult result, const char* call, const std::string& what);
    double seconds_of(const Slot& slot) const;

    VulkanDevice& device_;
    Slot slots_[kSlots];
    uint32_t next_ = 0;
    VkSemaphore timeline_ = VK_NULL_HANDLE;
    uint64_t last_value_ = 0;
    std::optional<Error> broken_;  // the first loss or unfinished wait; nothing works after it
};

}  // namespace fovea::runtime

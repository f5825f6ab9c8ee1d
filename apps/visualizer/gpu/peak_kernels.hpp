// A device's peak rates by a kernel that does nothing else: multiply-adds in registers, and copies of a
// buffer. The visualizer's roofline and the tools' ceilings are measured with it. Vulkan's functions are
// volk's.
#pragma once

#include <fovea/fovea.hpp>

#include <volk.h>

#include <span>

namespace fovea::visualizer {

class PeakKernels {
  public:
    enum Kind : uint32_t { multiply_adds, copies };
    struct Place {
        VkDevice device = VK_NULL_HANDLE;
        VkQueue queue = VK_NULL_HANDLE;
        uint32_t queue_family = 0;
        double tick_seconds = 0;  // one step of a timestamp; 0: the queue has none
        uint64_t wait_nanoseconds = 0;
        VkBuffer from = VK_NULL_HANDLE, to = VK_NULL_HANDLE;
        uint64_t copy_bytes = 0;  // size of each buffer
    };

    PeakKernels() = default;
    ~PeakKernels();
    PeakKernels(const PeakKernels&) = delete;
    PeakKernels& operator=(const PeakKernels&) = delete;

    // `code` is shaders/roof.comp. Call it once; what the place names must outlive this.
    Result<void> open(const Place& place, std::span<const uint32_t> code);
    // Submits one dispatch, of `rounds` if it is of multiply-adds, and waits. Returns seconds by the device's
    // clock, 0 without timestamps.
    Result<double> run(Kind kind, uint32_t rounds = 0);
    // FLOP, two to a multiply-add; or bytes, those read and those written.
    double work(Kind kind, uint32_t rounds = 0) const;

  private:
    Result<void> create_commands();
    Result<void> create_layout();
    Result<void> create_pipelines(std::span<const uint32_t> code);
    Result<void> create_set();
    void record(Kind kind, uint32_t rounds) const;

    Place at_;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipelines_[2] = {};
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    VkQueryPool queries_ = VK_NULL_HANDLE;
    VkCommandPool commands_ = VK_NULL_HANDLE;
    VkCommandBuffer cmd_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace fovea::visualizer

// Measures the device time of each frame, in seconds, by two timestamps in its command buffer. Nothing waits
// for them: they are read when the frame's slot is used again, after it has ended.
#pragma once

#include "gpu/gpu_device.hpp"

#include <memory>
#include <vector>

namespace fovea::visualizer {

class FrameClock {
  public:
    // `frames_in_flight`: submissions after which the caller has waited for a recorded one.
    static Result<std::unique_ptr<FrameClock>> create(GpuDevice& device, size_t frames_in_flight);
    ~FrameClock();
    FrameClock(const FrameClock&) = delete;
    FrameClock& operator=(const FrameClock&) = delete;

    // Outside a render pass, before anything else of the frame. The seconds of the frame whose place this one
    // takes; 0: not known.
    double begin(VkCommandBuffer cmd);
    // Ends the measurement within the frame's render pass, after everything else.
    void end_in_pass(VkCommandBuffer cmd);

  private:
    explicit FrameClock(GpuDevice& device) : device_(device) {}

    GpuDevice& device_;
    VkQueryPool queries_ = VK_NULL_HANDLE;  // two for each place; null: the device has no timestamps
    std::vector<bool> written_;             // one for each slot
    uint32_t place_ = 0;
};

}  // namespace fovea::visualizer

// How much of a map's work fits one frame: the rates that the device's timestamps showed, and what a frame
// needs of its own to record it.
#pragma once

#include "gpu/gpu_device.hpp"

#include <array>

namespace fovea::visualizer {

// Kinds of a map's work. Each has its own rate, and a frame does one.
enum class Work { none, rows, pixels };
inline constexpr size_t kWorkKinds = 3;

struct FrameShare {                          // of one frame
    VkDescriptorPool pool = VK_NULL_HANDLE;  // only where push descriptors are missing
    VkQueryPool queries = VK_NULL_HANDLE;
    uint64_t frame = 0;
    Work work = Work::none;
    double flops = 0;
    bool of_window = false;  // else a picture waited for it
    uint32_t sets_left = 0;
};

class FrameShares {
  public:
    static constexpr uint32_t kSetsAFrame = 256;

    explicit FrameShares(GpuDevice& device);
    ~FrameShares();
    FrameShares(const FrameShares&) = delete;
    FrameShares& operator=(const FrameShares&) = delete;
    Result<void> create();

    // The share of frame `frame`. Learns from the one that had its place, if that is known to have ended:
    // it was frame `ended` or one before.
    FrameShare& next(uint64_t frame, uint64_t ended, bool of_window);
    // Around what is recorded.
    void begin(VkCommandBuffer cmd, const FrameShare& share) const;
    void end(VkCommandBuffer cmd, const FrameShare& share) const;

    double rate(Work work) const { return rates_[size_t(work)]; }  // FLOP/s
    double last_seconds() const { return last_seconds_; }          // of the newest window's frame measured

  private:
    void learn(const FrameShare& share, uint64_t ended);

    GpuDevice& device_;
    std::array<FrameShare, 4> shares_;  // more than any number of frames in flight
    std::array<double, kWorkKinds> rates_{};
    double last_seconds_ = 0;
};

}  // namespace fovea::visualizer

// Frames in flight: for each a command buffer and timestamps, and one timeline semaphore that counts the
// frames.
#pragma once

#include "canvas.hpp"
#include "gpu.hpp"

#include <vector>

namespace embed {

struct Frame {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer cmd = VK_NULL_HANDLE;
    VkQueryPool times = VK_NULL_HANDLE;  // begin, end, then two for each slice of attention
    uint64_t number = 0;                 // value of the timeline semaphore; 0: not in flight
    uint32_t index = 0, slices = 0;
};

struct FrameTime {
    double all_ms = 0;
    std::vector<double> slice_ms;
    double attention_ms() const;
};

class Frames {
  public:
    // `max_slices` is how many slices one frame may record.
    Frames(const Gpu& gpu, uint32_t max_slices);
    ~Frames();
    Frames(const Frames&) = delete;

    // The frame to record next. Waits until the one that used its objects before has finished, whose times go
    // to `done`; true where there was one.
    Frame& at(uint32_t index) { return frames_[index]; }
    Frame& next() { return frames_[next_number_ % kFramesInFlight]; }
    bool collect(Frame& frame, FrameTime& done);
    // Begins the frame's command buffer with its first timestamp, after all shaders of the frame before.
    void begin(Frame& frame);
    // Ends and submits it, after the canvas's image is there and before it is shown (null: nothing is shown).
    void submit(Frame& frame, const Canvas* canvas);

  private:
    const Gpu& gpu_;
    uint32_t max_slices_;
    VkSemaphore timeline_ = VK_NULL_HANDLE;
    Frame frames_[kFramesInFlight];
    uint64_t next_number_ = 1;
};

double median(std::vector<double> v);

}  // namespace embed

// Background threads: each finished step is counted, and wakes the thread that draws.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <utility>

namespace fovea::visualizer {

// Files of at least this size are read and computed by a thread.
inline constexpr uint64_t kLargeFileBytes = 16u << 20;

class Background {
  public:
    // `wake` may be called from any thread. `has_frames`: someone draws while threads work; without frames
    // everything is computed at once, on the caller's thread.
    Background(bool has_frames, std::function<void()> wake)
        : has_frames_(has_frames), wake_(std::move(wake)) {}

    bool has_frames() const { return has_frames_; }
    const std::function<void()>& wake() const { return wake_; }
    // To be called by a thread at the end of a step; it may outlive this object.
    std::function<void()> end_of_step() const {
        return [steps = steps_, wake = wake_] {
            ++*steps;
            if (wake) wake();
        };
    }
    uint64_t steps() const { return *steps_; }

  private:
    const bool has_frames_;
    const std::function<void()> wake_;
    std::shared_ptr<std::atomic<uint64_t>> steps_ = std::make_shared<std::atomic<uint64_t>>(0);
};

template <class T>
bool has_come(const std::future<T>& future) {
    return future.valid() && future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace fovea::visualizer

// Kernels made ready beside the frames: a frame that uses one before waits for the driver's compiler, which
// takes seconds where it is slow.
#pragma once

#include "gpu/kernel.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

namespace fovea::visualizer {

class GpuDevice;

// Used by one thread; works on one of its own, begun with the first wish.
class KernelWarmer {
  public:
    explicit KernelWarmer(GpuDevice& device) : device_(device) {}
    // Waits for the kernel under way; the others are left.
    ~KernelWarmer();
    KernelWarmer(const KernelWarmer&) = delete;
    KernelWarmer& operator=(const KernelWarmer&) = delete;

    // Whether all kernels of the plan have been made ready. True, too, where that has failed: the plan's user
    // is told then.
    bool ready(const Plan& plan) const;
    // Makes the plan's kernels ready. `done` is called from the other thread; it may be empty.
    void warm(Plan plan, std::function<void()> done);
    // Wishes that are not fulfilled yet.
    size_t waiting() const;

  private:
    struct Wish {
        Plan plan;
        std::function<void()> done;
    };
    void work();

    GpuDevice& device_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Wish> wishes_;  // guarded by mutex_, as the next two
    std::set<Kernel> ready_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace fovea::visualizer

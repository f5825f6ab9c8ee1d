// Compiles kernels in the background: otherwise the first frame that uses one waits for the driver's
// compiler, which can take seconds.
#pragma once

#include <fovea/fovea.hpp>

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace fovea::visualizer {

class GpuDevice;

// The parts of a dispatch that are compiled, which distinguish one of the engine's pipelines from another.
struct Kernel {
    uint32_t shader = 0, subgroup_size = 0, push_words = 0, slot_mask = 0;
    std::vector<uint32_t> spec;
    friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

// The kernels of all slices of a Vulkan plan, each once.
std::vector<Kernel> kernels_of(const Plan& plan);

// To be used by one thread; it works on its own thread, which the first request starts.
class KernelWarmer {
  public:
    explicit KernelWarmer(GpuDevice& device) : device_(device) {}
    // Waits for the kernel under way; the others are left.
    ~KernelWarmer();
    KernelWarmer(const KernelWarmer&) = delete;
    KernelWarmer& operator=(const KernelWarmer&) = delete;

    // True if all kernels of the plan are ready, and also after a failure: then the plan's user gets the
    // error.
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

#include "gpu/kernel_warmer.hpp"

#include "gpu/gpu_device.hpp"
#include "gpu/twin_device.hpp"

#include <algorithm>
#include <utility>

namespace fovea::visualizer {

std::vector<Kernel> kernels_of(const Plan& plan) {
    const FoveaPlanInfo info = plan.info();
    std::vector<FoveaDispatch> dispatches(info.dispatches_per_slice);
    std::set<Kernel> found;
    for (uint64_t slice = 0; slice < info.slice_count; ++slice) {
        auto count = uint32_t(dispatches.size());
        if (foveaGetDispatches(plan.get(), slice, dispatches.data(), &count, nullptr) != FOVEA_OK) break;
        for (uint32_t i = 0; i < count; ++i) {
            const FoveaDispatch& d = dispatches[i];
            Kernel kernel{d.shader, d.subgroup_size, d.push_words, 0, {d.spec, d.spec + d.spec_count}};
            for (uint32_t b = 0; b < d.binding_count; ++b) kernel.slot_mask |= 1u << d.bindings[b].slot;
            found.insert(std::move(kernel));
        }
    }
    return {found.begin(), found.end()};
}

KernelWarmer::~KernelWarmer() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

bool KernelWarmer::ready(const Plan& plan) const {
    const std::vector<Kernel> kernels = kernels_of(plan);
    const std::lock_guard lock(mutex_);
    return std::all_of(kernels.begin(), kernels.end(),
                       [&](const Kernel& kernel) { return ready_.count(kernel) > 0; });
}

size_t KernelWarmer::waiting() const {
    const std::lock_guard lock(mutex_);
    return wishes_.size();
}

void KernelWarmer::warm(Plan plan, std::function<void()> done) {
    {
        const std::lock_guard lock(mutex_);
        wishes_.push_back({std::move(plan), std::move(done)});
    }
    changed_.notify_all();
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void KernelWarmer::work() {
    // Created on this thread, and only if needed. If the driver's cache is off or the twin fails, the first
    // frame that uses the kernel waits, as it would without this class.
    std::unique_ptr<TwinDevice> twin;
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || !wishes_.empty(); });
        if (ending_) return;
        // Stays the first of the queue while it is worked on: only this thread takes from it.
        Wish& wish = wishes_.front();
        std::vector<Kernel> kernels = kernels_of(wish.plan);
        for (const Kernel& kernel : kernels) {
            if (ready_.count(kernel) > 0) continue;
            lock.unlock();
            if (device_.compiles_at_dispatch() && !twin) twin = TwinDevice::open(device_);
            if (twin) twin->dispatch_nothing(kernel);
            lock.lock();
            if (ending_) return;
        }
        lock.unlock();
        (void)foveaCompilePlan(device_.context(), wish.plan.get(), nullptr);
        lock.lock();
        for (Kernel& kernel : kernels) ready_.insert(std::move(kernel));
        const std::function<void()> done = std::move(wish.done);
        wishes_.pop_front();
        if (wishes_.empty()) twin.reset();
        lock.unlock();
        if (done) done();
        lock.lock();
    }
}

}  // namespace fovea::visualizer

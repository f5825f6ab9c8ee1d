#include "ceiling.hpp"

#include "apps/visualizer/gpu/peak_kernels.hpp"
#include "runtime/vulkan_memory.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "bench_ceiling.comp.h"

namespace fovea::app {

using visualizer::PeakKernels;

struct DeviceCeiling::State {
    std::unique_ptr<runtime::Instance> instance;
    std::unique_ptr<runtime::VulkanDevice> device;
    std::unique_ptr<runtime::VulkanQueue> queue;
    std::unique_ptr<runtime::VulkanAllocator> allocator;
    std::unique_ptr<runtime::VulkanMemory> from, to;
    PeakKernels kernels;
    uint32_t fma_rounds = 64;
    bool software = false;

    Result<void> open(uint32_t number) {
        constexpr uint64_t kCopyBytes = uint64_t{64} << 20;  // no cache holds it
        constexpr uint64_t kTimeout = 300'000'000'000;
        auto made = runtime::Instance::create(false);
        if (!made) return made.error();
        instance = std::move(*made);
        const std::vector<VkPhysicalDevice>& all = instance->physical_devices();
        if (number == 0 || number > all.size())
            return Error{FOVEA_INVALID_ARGUMENT, "device", "this machine does not have that Vulkan device"};
        auto opened = runtime::VulkanDevice::open(*instance, all[number - 1]);
        if (!opened) return opened.error();
        device = std::move(*opened);
        software = device->properties().device_class == FOVEA_CLASS_CPU;
        auto queued = runtime::VulkanQueue::create(*device);
        if (!queued) return queued.error();
        queue = std::move(*queued);
        auto allocated = runtime::VulkanAllocator::create(*device, *queue);
        if (!allocated) return allocated.error();
        allocator = std::move(*allocated);
        for (auto* memory : {&from, &to}) {
            auto buffer = allocator->allocate(kCopyBytes);
            if (!buffer) return buffer.error();
            *memory = std::move(*buffer);
            if (Result<void> r = (*memory)->fill_zero(); !r) return r;
        }
        volkLoadInstanceOnly(instance->handle());
        volkLoadDevice(device->handle());
        return kernels.open({device->handle(), device->queue(), device->queue_family(), 0, kTimeout,
                             from->buffer(), to->buffer(), kCopyBytes},
                            kBenchCeiling);
    }

    // Seconds of one dispatch, submission included.
    Result<double> time(PeakKernels::Kind kind, uint32_t rounds = 0) {
        const double begin = bench_now(software);
        const Result<double> r = kernels.run(kind, rounds);
        if (!r) return r;
        return bench_now(software) - begin;
    }
};

double bench_now(bool software) {
    if (software) return double(std::clock()) / CLOCKS_PER_SEC;
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

DeviceCeiling::DeviceCeiling(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceCeiling::DeviceCeiling(DeviceCeiling&&) noexcept = default;
DeviceCeiling::~DeviceCeiling() = default;

Result<DeviceCeiling> DeviceCeiling::open(uint32_t number) {
    auto state = std::make_unique<State>();
    if (Result<void> r = state->open(number); !r) return r.error();
    for (const auto kind : {PeakKernels::multiply_adds, PeakKernels::copies})
        if (Result<double> r = state->time(kind, 1); !r) return r.error();  // software drivers compile here
    return DeviceCeiling(std::move(state));
}

Result<double> DeviceCeiling::gflops(double seconds) {
    uint32_t& rounds = state_->fma_rounds;
    for (;;) {
        const Result<double> time = state_->time(PeakKernels::multiply_adds, rounds);
        if (!time) return time;
        if (*time >= seconds / 2 || rounds > (1u << 24))
            return state_->kernels.work(PeakKernels::multiply_adds, rounds) / *time * 1e-9;
        rounds *= 2;
    }
}

Result<double> DeviceCeiling::gigabytes_per_second(double seconds) {
    double best = 0, spent = 0;
    for (int n = 0; n < 3 || spent < seconds; ++n) {
        const Result<double> time = state_->time(PeakKernels::copies);
        if (!time) return time;
        spent += *time;
        best = std::max(best, state_->kernels.work(PeakKernels::copies) / *time * 1e-9);
    }
    return best;
}

}  // namespace fovea::app

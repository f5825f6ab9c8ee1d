#include "gpu/roof.hpp"

#include "gpu/peak_kernels.hpp"
#include "visualizer_shaders.hpp"

#include <algorithm>

namespace fovea::visualizer {

Result<Roof> measure_roof(GpuDevice& device) {
    constexpr uint64_t kCopyBytes = uint64_t{32} << 20;
    constexpr double kLongEnough = 0.03;  // seconds of one dispatch
    if (!device.has_vulkan() || !device.has_timestamps())
        return Error{FOVEA_UNSUPPORTED, "roof", "the roofline needs a device with timestamps"};
    const Result<GpuBuffer> from = GpuBuffer::create(device, kCopyBytes, "roof"),
                            to = GpuBuffer::create(device, kCopyBytes, "roof");
    if (!from) return from.error();
    if (!to) return to.error();
    PeakKernels kernels;
    if (Result<void> r = kernels.open({device.device(), device.queue(), device.queue_family(),
                                       double(device.timestamp_period_ns()) * 1e-9, device.wait_nanoseconds(),
                                       from->handle(), to->handle(), kCopyBytes},
                                      {kRoofComputeWords, kRoofComputeWordCount});
        !r)
        return r.error();
    Roof roof;
    // The first dispatches compile, warm up and find how many rounds are long enough; of several that are,
    // the fastest was disturbed least.
    constexpr int kRepeats = 4;
    uint32_t rounds = 4;
    for (int long_ones = 0; long_ones < kRepeats && rounds <= 1u << 24;) {
        const Result<double> seconds = kernels.run(PeakKernels::multiply_adds, rounds);
        if (!seconds) return seconds.error();
        roof.flops_per_s =
            std::max(roof.flops_per_s, kernels.work(PeakKernels::multiply_adds, rounds) / *seconds);
        if (*seconds >= kLongEnough)
            ++long_ones;
        else
            rounds *= 2;
    }
    for (int n = 0; n < kRepeats; ++n) {
        const Result<double> seconds = kernels.run(PeakKernels::copies);
        if (!seconds) return seconds.error();
        roof.bytes_per_s = std::max(roof.bytes_per_s, kernels.work(PeakKernels::copies) / *seconds);
    }
    return roof;
}

}  // namespace fovea::visualizer

// Measures the device's peak rates: multiply-adds in registers, and a copy.
#pragma once

#include "gpu/gpu_device.hpp"

namespace fovea::visualizer {

struct Roof {
    double flops_per_s = 0, bytes_per_s = 0;  // two FLOP to a multiply-add; bytes read and written both count
};

// Takes about a third of a second; the device must be idle. Fails without timestamps.
Result<Roof> measure_roof(GpuDevice& device);

}  // namespace fovea::visualizer

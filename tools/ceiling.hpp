// The ceilings that Vulkan benchmarks are measured against: float32 multiply-adds and copies of this device,
// by kernels that do nothing else, in this process.
#pragma once

#include <fovea/fovea.hpp>

#include <memory>

namespace fovea::app {

// Returns seconds since some moment. A software driver computes on this process's threads and shares the CPU
// with other programs: for it this is CPU time, which counts every thread.
double bench_now(bool software);

class DeviceCeiling {
  public:
    // `number` as in fovea::DeviceInfo.
    static Result<DeviceCeiling> open(uint32_t number);
    DeviceCeiling(DeviceCeiling&&) noexcept;
    ~DeviceCeiling();

    // By bench_now. Each about `seconds` long, two to a multiply-add; bytes read and bytes written both
    // count.
    Result<double> gflops(double seconds);
    Result<double> gigabytes_per_second(double seconds);

    struct State;

  private:
    explicit DeviceCeiling(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fovea::app

// The measured speed of a device, which sizes the slices of the next plan. Until the first timestamps the
// planner's estimate for the device's class is used.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea::runtime {

class SliceRate {
  public:
    static constexpr double kTargetSeconds = 0.05;  // a slice: far below any watchdog, far above a submission
    static constexpr double kMinSeconds = 1e-4;     // shorter measurements tell of overheads

    void add(FoveaKernel kernel, double flops, double seconds) {
        const auto index = static_cast<uint32_t>(kernel);
        if (index >= kKernels || seconds < kMinSeconds || flops <= 0) return;
        flops_per_second_[index] = flops / seconds;
    }
    // FLOPs of one slice; 0: nothing measured. The slowest of the kernels seen decides, because the next
    // plan's kernel is not chosen yet.
    double slice_cost() const {
        double slowest = 0;
        for (const double rate : flops_per_second_) {
            if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
        }
        return slowest * kTargetSeconds;
    }

  private:
    static constexpr uint32_t kKernels = 16;
    double flops_per_second_[kKernels] = {};  // the last measurement of each
};

}  // namespace fovea::runtime

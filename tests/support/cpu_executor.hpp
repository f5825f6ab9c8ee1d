// Runs the CPU backend through the public C functions.
#pragma once

#include "support/executor.hpp"

namespace fovea::test {

struct CpuChoice {
    FoveaKernel kernel = FOVEA_KERNEL_AUTO;
    bool force_target = false;
    uint32_t target = 0;  // FoveaDeviceProperties::cpu_target
};
std::unique_ptr<Executor> make_cpu_executor(std::string name, const CpuChoice& choice);

}  // namespace fovea::test

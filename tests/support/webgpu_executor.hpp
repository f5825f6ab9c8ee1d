#pragma once

#include "support/executor.hpp"

namespace fovea::test {

// A WebGPU in software: plans are made here, with the properties of its adapter, and played by the page's own
// script (web/tests/gpu_player.mjs, which node runs), in Chromium or, `dawn`, in node by npm's package of
// Dawn.
class WebGpu {
  public:
    virtual ~WebGpu() = default;
    // The properties for its plans.
    virtual const FoveaDeviceProperties& properties() const = 0;
    // Bindings that are not outputs need contents; outputs may have some.
    virtual Outcome run(const Plan& plan, const Tensors& inputs, const ExecuteOptions& options) = 0;
};

// `buffers`: storage buffers a kernel that the device is asked for; empty: as many as it has. Null with the
// reason in `error` where node, Chromium, the package or an adapter is missing.
std::unique_ptr<WebGpu> open_webgpu(bool dawn, std::string_view buffers, std::string& error);

// The same as an executor of attention.
std::unique_ptr<Executor> make_webgpu_executor(std::string name, bool dawn, FoveaKernel kernel,
                                               std::string_view buffers, std::string& error);

}  // namespace fovea::test

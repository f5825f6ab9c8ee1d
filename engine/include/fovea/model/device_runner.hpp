// Runs a trace's calls on an engine of the runtime: the CPU's fast kernels or a Vulkan device.
#pragma once

#include <fovea/model/trace.hpp>
#include <fovea/runtime.hpp>

namespace fovea {

// Borrows the engine, which must outlive it. Every call moves its tensors to the device and back: made for
// looking into models, not for serving them.
class DeviceRunner final : public EngineRunner {
  public:
    explicit DeviceRunner(Engine& engine, FoveaKernel kernel = FOVEA_KERNEL_AUTO)
        : engine_(engine), kernel_(kernel) {}

    std::string name() const override { return engine_.device().name; }  // "CPU (AVX2)", "llvmpipe (...)"
    Result<void> attention(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings) override;
    Result<void> linear(const FoveaLinearDesc& call, const FoveaHostBuffer* bindings) override;
    std::string reason() const override { return last_attention_.reason; }

    // What ran last and why.
    const RunReport& last_attention() const { return last_attention_; }

  private:
    Engine& engine_;
    FoveaKernel kernel_;
    RunReport last_attention_;
};

}  // namespace fovea

// Runs layers on an engine of the runtime: the CPU's fast kernels or a Vulkan device.
#pragma once

#include <fovea/model/executor.hpp>
#include <fovea/runtime.hpp>

namespace fovea {

// Borrows the engine, which must outlive it. Every call moves its tensors to the device and back: made for
// looking into layers, not for serving them.
class EngineExecutor final : public Executor {
  public:
    explicit EngineExecutor(Engine& engine, FoveaKernel kernel = FOVEA_KERNEL_AUTO)
        : engine_(engine), kernel_(kernel) {}

    // The device's name: "CPU (AVX2)", "llvmpipe (...)".
    std::string name() const override;
    Result<AttentionResult> attention(const AttentionProblem& problem) override;
    Result<F32Tensor> linear(const F32Tensor& x, const Linear& layer) override;
    Result<F32Tensor> rope(const F32Tensor& x, const Rope& rope) override;

    // What ran last and why; of the last attention call where a layer made several.
    const RunReport& last_attention() const { return last_attention_; }

  private:
    Engine& engine_;
    FoveaKernel kernel_;
    RunReport last_attention_;
};

}  // namespace fovea

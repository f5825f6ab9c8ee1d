// The interface to the device that computes models: this machine's CPU or a device of the runtime. Traces,
// generation and training use it.
#pragma once

#include <fovea/fovea.hpp>
#include <fovea/model/transformer.hpp>

#include <memory>
#include <span>
#include <string>

namespace fovea {

// The layers of one text, whose values and whose keys and values of heads stay where they are computed.
class ResidentText {
  public:
    virtual ~ResidentText() = default;
    // Rows [rows, width] enter the first layer after `held` rows that every layer has already processed.
    virtual Result<void> enter(const F32Tensor& x, uint64_t held) = 0;
    // Runs the entered rows through layer n; its output enters the next layer. A layer has the same block in
    // every call.
    virtual Result<void> layer(uint64_t n, const Block& block) = 0;
    // Row `index` of what left the last one, [1, width].
    virtual Result<F32Tensor> row(uint64_t index) = 0;
};

// y [rows, n] = x W^T + bias for a matrix of n rows that stays as its file stores it; `bias` is [n] or empty,
// y has its size already.
struct StoredProduct {
    const StoredWeight* weight;
    const F32Tensor* bias;
    F32Tensor* y;
};

// Plans calls and runs them on host memory. One runner, one thread.
class EngineRunner {
  public:
    virtual ~EngineRunner() = default;
    virtual std::string name() const = 0;  // "CPU", a device's name
    // `bindings` has FOVEA_BIND_COUNT entries. Inputs are not written to.
    virtual Result<void> attention(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings) = 0;
    virtual Result<void> linear(const FoveaLinearDesc& call, const FoveaHostBuffer* bindings) = 0;
    // Several of the same x. linear() reads the types that it supports. Other types, and bytes that are not
    // aligned to their elements, are converted to float32 piece by piece.
    virtual Result<void> stored_linears(std::span<const StoredProduct> products, const F32Tensor& x);
    Result<void> stored_linear(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x,
                               F32Tensor& y) {
        const StoredProduct one{&weight, &bias, &y};
        return stored_linears(std::span(&one, 1), x);
    }
    // By which linear() takes `rows` rows with a weight as its file stores it.
    virtual FoveaKernel stored_kernel(uint64_t) const { return FOVEA_KERNEL_AUTO; }
    // Returns the application's thread pool for work on host memory outside the calls; null means the
    // caller's thread only.
    virtual const FoveaParallel* parallel() const { return nullptr; }
    // Returns a text of so many layers and at most `capacity` rows that the runner keeps on its device, or
    // null if it computes only on host memory. It must be destroyed before the runner.
    virtual std::unique_ptr<ResidentText> text(uint64_t layers, uint64_t capacity);
    // Returns the last kernel and the reason for the choice: "flash: ...".
    virtual std::string reason() const = 0;

    // Plans that a program keeps and runs again.
    virtual Result<Plan> plan_attention(const FoveaAttentionDesc& call) = 0;
    virtual Result<Plan> plan_attention_backward(const FoveaAttentionDesc& forward,
                                                 const FoveaAttentionBackwardDesc& backward) = 0;
    virtual Result<Plan> plan_linear(const FoveaLinearDesc& call) = 0;
    virtual Result<Plan> plan_rope(const FoveaRopeDesc& call) = 0;
    virtual Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) = 0;
};

// Returns a runner of the CPU's kernels on the application's threads; null and 1 mean this thread only. The
// number of threads does not change the result.
std::unique_ptr<EngineRunner> make_cpu_runner(const FoveaParallel* parallel = nullptr, uint32_t threads = 1);

}  // namespace fovea

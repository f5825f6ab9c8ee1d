// Where models compute: this machine's CPU or a device of the runtime, behind one interface. Traces,
// generation and training run on it.
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
    // Rows [rows, width] that enter the first layer; they stand behind `held` rows that every layer has seen.
    virtual Result<void> enter(const F32Tensor& x, uint64_t held) = 0;
    // What entered goes through layer n, and what leaves it is what enters the next. A layer has the same
    // block in every call.
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
    // Several of the same x. linear() reads the types that it has; of another, and where the bytes
    // are not aligned as its numbers, a stretch of the matrix at a time becomes float32.
    virtual Result<void> stored_linears(std::span<const StoredProduct> products, const F32Tensor& x);
    Result<void> stored_linear(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x,
                               F32Tensor& y) {
        const StoredProduct one{&weight, &bias, &y};
        return stored_linears(std::span(&one, 1), x);
    }
    // By which linear() takes `rows` rows with a weight as its file stores it.
    virtual FoveaKernel stored_kernel(uint64_t) const { return FOVEA_KERNEL_AUTO; }
    // The threads that a host lends for what is done on host memory beside the calls; null: the caller's
    // own.
    virtual const FoveaParallel* parallel() const { return nullptr; }
    // A text of so many layers and at most `capacity` rows that the runner keeps to itself, and that must go
    // before it; null: it computes on host memory alone.
    virtual std::unique_ptr<ResidentText> text(uint64_t layers, uint64_t capacity);
    // What ran last and why: "flash: ...".
    virtual std::string reason() const = 0;

    // Plans that a program keeps and runs again.
    virtual Result<Plan> plan_attention(const FoveaAttentionDesc& call) = 0;
    virtual Result<Plan> plan_attention_backward(const FoveaAttentionDesc& forward,
                                                 const FoveaAttentionBackwardDesc& backward) = 0;
    virtual Result<Plan> plan_linear(const FoveaLinearDesc& call) = 0;
    virtual Result<Plan> plan_rope(const FoveaRopeDesc& call) = 0;
    virtual Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) = 0;
};

// The CPU's kernels on the threads that a host lends: null and 1 for this thread alone. Their number changes
// no bit.
std::unique_ptr<EngineRunner> make_cpu_runner(const FoveaParallel* parallel = nullptr, uint32_t threads = 1);

}  // namespace fovea

// The interface to what computes: this machine's CPU or a device of the runtime.
#pragma once

#include <fovea/fovea.hpp>
#include <fovea/model/transformer.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fovea {

class ThreadPool;  // <fovea/thread_pool.hpp>

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

// One device, or the CPU: makes plans for it, runs one operation or a list of them, and keeps what it will
// run again. Traces, generation, training, maps and the page compute by it. One runner, one thread.
class Runner {
  public:
    virtual ~Runner() = default;
    virtual std::string name() const = 0;  // "CPU", a device's name
    // The planner's input: plan_rope(runner.properties(), desc).
    virtual const FoveaDeviceProperties& properties() const = 0;
    // Runs a plan on host memory; `bindings` has FOVEA_BIND_COUNT entries. Inputs are not written to.
    virtual Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) = 0;

    // Plan and run a call. Plans are kept: the layers of a text make few different calls one after the other,
    // and a plan costs more than a token's attention.
    Result<void> attention(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings);
    Result<void> linear(const FoveaLinearDesc& call, const FoveaHostBuffer* bindings);
    // Several of the same x. linear() reads the types that it supports. Other types, and bytes that are not
    // aligned to their elements, are converted to float32 piece by piece.
    virtual Result<void> stored_linears(std::span<const StoredProduct> products, const F32Tensor& x);
    Result<void> stored_linear(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x,
                               F32Tensor& y) {
        const StoredProduct one{&weight, &bias, &y};
        return stored_linears(std::span(&one, 1), x);
    }
    // The precision of stored products with quantized weights, float32 or int8 inputs; others are float32.
    FoveaPrecision stored_precision() const { return stored_precision_; }
    void set_stored_precision(FoveaPrecision precision) { stored_precision_ = precision; }
    // By which linear() takes `rows` rows with a weight as its file stores it.
    virtual FoveaKernel stored_kernel(uint64_t) const { return FOVEA_KERNEL_AUTO; }
    // Returns the threads for work on host memory outside the calls; null means the caller's thread only.
    virtual const FoveaParallel* parallel() const { return nullptr; }
    // Returns a text of so many layers and at most `capacity` rows that the runner keeps on its device, or
    // null if it computes only on host memory. It must be destroyed before the runner.
    virtual std::unique_ptr<ResidentText> text(uint64_t layers, uint64_t capacity);
    // Returns the kernel of the last attention and the reason for the choice: "flash: ...".
    const std::string& reason() const { return reason_; }

  protected:
    FoveaKernel kernel_ = FOVEA_KERNEL_AUTO;  // kernel of attention(); AUTO: the one that the call names
    std::string reason_;

  private:
    template <class Desc>
    struct Kept {
        Desc call;
        Plan plan;
    };
    void drop_outdated();

    FoveaPrecision stored_precision_ = FOVEA_PRECISION_F32;
    double slice_cost_ = 0;  // for which the plans were made
    std::optional<Kept<FoveaAttentionDesc>> attention_;
    std::vector<Kept<FoveaLinearDesc>> linears_;
};

// Return a runner of the CPU's kernels, on the application's threads or on a pool that it owns. Null and 1
// mean this thread only. The number of threads does not change the result.
std::unique_ptr<Runner> make_cpu_runner(const FoveaParallel* parallel = nullptr, uint32_t threads = 1);
std::unique_ptr<Runner> make_cpu_runner(std::unique_ptr<ThreadPool> pool);

// Returns the given runner or, if that is null, one of this thread's CPU kernels, which `own` keeps.
inline Runner& runner_or_own(Runner* given, std::unique_ptr<Runner>& own) {
    if (!given && !own) own = make_cpu_runner();
    return given ? *given : *own;
}

}  // namespace fovea

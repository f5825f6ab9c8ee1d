#include <fovea/model/trace.hpp>

#include <cstdint>

#include "cpu/target.hpp"
#include "model/stored_linear.hpp"

namespace fovea {
namespace {

constexpr uint64_t kFewRows = 4;

class CpuRunner final : public EngineRunner {
  public:
    CpuRunner(const FoveaParallel* parallel, uint32_t threads)
        : parallel_(parallel), threads_(parallel ? threads : 1) {}

    std::string name() const override { return "CPU"; }
    Result<void> attention(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings) override {
        return run([&](const FoveaDeviceFacts& facts) { return plan_attention(facts, call); }, bindings,
                   true);
    }
    Result<void> linear(const FoveaLinearDesc& call, const FoveaHostBuffer* bindings) override {
        return run([&](const FoveaDeviceFacts& facts) { return plan_linear(facts, call); }, bindings, false);
    }
    Result<void> stored_linear(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x,
                               F32Tensor& y) override {
        // With more rows the float32 copy of a stretch is used often enough to be worth its writing.
        if (x.rows() > kFewRows || !has_stored_rows(weight))
            return EngineRunner::stored_linear(weight, bias, x, y);
        stored_rows_on_cpu(target_, weight, bias.values.empty() ? nullptr : bias.values.data(), x, y,
                           parallel_);
        return {};
    }
    std::string reason() const override { return reason_; }

  private:
    template <class MakePlan>
    Result<void> run(MakePlan make_plan, const FoveaHostBuffer* bindings, bool tells) {
        if (!facts_) return facts_.error();
        const Result<Plan> plan = make_plan(*facts_);
        if (!plan) return plan.error();
        if (tells) reason_ = plan->info().reason;
        return run_on_host(*plan, bindings, workspace_, parallel_);
    }

    const FoveaParallel* parallel_;
    uint32_t threads_;
    // Asked once: virtual machines answer questions about the processor slowly.
    uint32_t target_ = cpu::best_target();
    Result<FoveaDeviceFacts> facts_ = cpu_facts(threads_);
    std::string reason_;
    Workspace workspace_;
};

}  // namespace

std::unique_ptr<ResidentText> EngineRunner::text(uint64_t, uint64_t) { return nullptr; }

std::unique_ptr<EngineRunner> make_cpu_runner(const FoveaParallel* parallel, uint32_t threads) {
    return std::make_unique<CpuRunner>(parallel, threads);
}

}  // namespace fovea

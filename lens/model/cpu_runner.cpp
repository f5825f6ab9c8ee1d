#include <fovea/model/runner.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace fovea {
namespace {

constexpr uint64_t kFewRows = 4;
constexpr size_t kMaxLinearPlans = 32;

class CpuRunner final : public EngineRunner {
  public:
    CpuRunner(const FoveaParallel* parallel, uint32_t threads)
        : parallel_(parallel), threads_(parallel ? threads : 1) {}

    std::string name() const override { return "CPU"; }
    Result<Plan> plan_attention(const FoveaAttentionDesc& call) override {
        return properties_ ? fovea::plan_attention(*properties_, call) : properties_.error();
    }
    Result<Plan> plan_attention_backward(const FoveaAttentionDesc& forward,
                                         const FoveaAttentionBackwardDesc& backward) override {
        return properties_ ? fovea::plan_attention_backward(*properties_, forward, backward)
                           : properties_.error();
    }
    Result<Plan> plan_linear(const FoveaLinearDesc& call) override {
        return properties_ ? fovea::plan_linear(*properties_, call) : properties_.error();
    }
    Result<Plan> plan_rope(const FoveaRopeDesc& call) override {
        return properties_ ? fovea::plan_rope(*properties_, call) : properties_.error();
    }
    Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) override {
        return run_on_host(plan, bindings, workspace_, parallel_);
    }
    Result<void> attention(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings) override {
        // The layers of a text make one call after the other that are the same, and a plan costs more than a
        // token's attention.
        if (!attention_ || memcmp(&attention_call_, &call, sizeof call) != 0) {
            Result<Plan> plan = plan_attention(call);
            if (!plan) return plan.error();
            reason_ = plan->info().reason;
            attention_.emplace(std::move(*plan)), attention_call_ = call;
        }
        return run(*attention_, bindings);
    }
    Result<void> linear(const FoveaLinearDesc& call, const FoveaHostBuffer* bindings) override {
        const auto kept = std::find_if(linears_.begin(), linears_.end(), [&](const LinearPlan& l) {
            return memcmp(&l.call, &call, sizeof call) == 0;
        });
        if (kept != linears_.end()) return run(kept->plan, bindings);
        Result<Plan> plan = plan_linear(call);
        if (!plan) return plan.error();
        if (linears_.size() == kMaxLinearPlans) linears_.clear();
        linears_.push_back({call, std::move(*plan)});
        return run(linears_.back().plan, bindings);
    }
    FoveaKernel stored_kernel(uint64_t rows) const override {
        return rows <= kFewRows ? FOVEA_KERNEL_DECODE : FOVEA_KERNEL_AUTO;
    }
    const FoveaParallel* parallel() const override { return parallel_; }
    std::string reason() const override { return reason_; }

  private:
    const FoveaParallel* parallel_;
    uint32_t threads_;
    Result<FoveaDeviceProperties> properties_ = cpu_properties(threads_);
    std::optional<Plan> attention_;  // plan of the last call, `attention_call_`
    FoveaAttentionDesc attention_call_{};
    // Planning queries the CPU's features, which virtual machines answer slowly, and the layers of a text
    // have few shapes.
    struct LinearPlan {
        FoveaLinearDesc call;
        Plan plan;
    };
    std::vector<LinearPlan> linears_;
    std::string reason_;
    Workspace workspace_;
};

}  // namespace

std::unique_ptr<ResidentText> EngineRunner::text(uint64_t, uint64_t) { return nullptr; }

std::unique_ptr<EngineRunner> make_cpu_runner(const FoveaParallel* parallel, uint32_t threads) {
    return std::make_unique<CpuRunner>(parallel, threads);
}

}  // namespace fovea

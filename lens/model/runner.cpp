#include <fovea/model/runner.hpp>
#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace fovea {
namespace {

constexpr uint64_t kFewRows = 4;
constexpr size_t kMaxLinearPlans = 32;

class CpuRunner final : public Runner {
  public:
    CpuRunner(const FoveaParallel* parallel, uint32_t threads) : parallel_(parallel) {
        if (Result<FoveaDeviceProperties> here = cpu_properties(parallel ? threads : 1)) properties_ = *here;
    }
    explicit CpuRunner(std::unique_ptr<ThreadPool> pool) : CpuRunner(&lent_, pool->worker_count()) {
        lent_ = pool->parallel();
        pool_ = std::move(pool);
    }

    std::string name() const override { return "CPU"; }
    const FoveaDeviceProperties& properties() const override { return properties_; }
    Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) override {
        return run_on_host(plan, bindings, workspace_, parallel_);
    }
    FoveaKernel stored_kernel(uint64_t rows) const override {
        return rows <= kFewRows ? FOVEA_KERNEL_DECODE : FOVEA_KERNEL_AUTO;
    }
    const FoveaParallel* parallel() const override { return parallel_; }

  private:
    std::unique_ptr<ThreadPool> pool_;
    FoveaParallel lent_{};
    const FoveaParallel* parallel_;
    FoveaDeviceProperties properties_{};
    Workspace workspace_;
};

}  // namespace

// Slices have other sizes once a device's speed was measured.
void Runner::drop_outdated() {
    const double cost = properties().slice_cost;
    if (std::exchange(slice_cost_, cost) != cost) attention_.reset(), linears_.clear();
}

Result<void> Runner::attention(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings) {
    drop_outdated();
    if (!attention_ || memcmp(&attention_->call, &call, sizeof call) != 0) {
        FoveaAttentionDesc by_kernel = call;
        if (kernel_) by_kernel.kernel = kernel_;
        Result<Plan> plan = plan_attention(properties(), by_kernel);
        if (!plan) return plan.error();
        reason_ = plan->info().reason;
        attention_ = Kept<FoveaAttentionDesc>{call, std::move(*plan)};
    }
    return run(attention_->plan, bindings);
}

Result<void> Runner::linear(const FoveaLinearDesc& call, const FoveaHostBuffer* bindings) {
    drop_outdated();
    const auto kept = std::find_if(linears_.begin(), linears_.end(), [&](const Kept<FoveaLinearDesc>& l) {
        return memcmp(&l.call, &call, sizeof call) == 0;
    });
    if (kept != linears_.end()) return run(kept->plan, bindings);
    Result<Plan> plan = plan_linear(properties(), call);
    if (!plan) return plan.error();
    if (linears_.size() == kMaxLinearPlans) linears_.clear();
    linears_.push_back({call, std::move(*plan)});
    return run(linears_.back().plan, bindings);
}

std::unique_ptr<ResidentText> Runner::text(uint64_t, uint64_t) { return nullptr; }

std::unique_ptr<Runner> make_cpu_runner(const FoveaParallel* parallel, uint32_t threads) {
    return std::make_unique<CpuRunner>(parallel, threads);
}

std::unique_ptr<Runner> make_cpu_runner(std::unique_ptr<ThreadPool> pool) {
    return std::make_unique<CpuRunner>(std::move(pool));
}

}  // namespace fovea

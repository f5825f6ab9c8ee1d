#include <fovea/model/trace.hpp>

#include <cstdint>

namespace fovea {
namespace {

class CpuRunner final : public EngineRunner {
  public:
    CpuRunner(const FoveaParallel* parallel, uint32_t threads)
        : parallel_(parallel), threads_(parallel ? threads : 1) {}

    Result<void> attention(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings) override {
        return run([&](const FoveaDeviceFacts& facts) { return plan_attention(facts, call); }, bindings,
                   true);
    }
    Result<void> linear(const FoveaLinearDesc& call, const FoveaHostBuffer* bindings) override {
        return run([&](const FoveaDeviceFacts& facts) { return plan_linear(facts, call); }, bindings, false);
    }
    std::string reason() const override { return reason_; }

  private:
    template <class MakePlan>
    Result<void> run(MakePlan make_plan, const FoveaHostBuffer* bindings, bool tells) {
        const Result<FoveaDeviceFacts> facts = cpu_facts(threads_);
        if (!facts) return facts.error();
        const Result<Plan> plan = make_plan(*facts);
        if (!plan) return plan.error();
        const FoveaPlanInfo info = plan->info();
        if (tells) reason_ = info.reason;
        workspace_.resize(info.workspace_bytes + info.workspace_alignment);
        FoveaCpuRun call{};
        call.struct_size = sizeof call;
        call.bindings = bindings;
        call.binding_count = FOVEA_BIND_COUNT;
        call.parallel = parallel_;
        if (info.workspace_bytes) {
            const auto address = reinterpret_cast<uintptr_t>(workspace_.data());
            const uint64_t alignment = info.workspace_alignment ? info.workspace_alignment : 1;
            call.workspace = {workspace_.data() + (alignment - address % alignment) % alignment,
                              info.workspace_bytes};
        }
        return plan->run_cpu(call);
    }

    const FoveaParallel* parallel_;
    uint32_t threads_;
    std::string reason_;
    std::vector<unsigned char> workspace_;
};

}  // namespace

std::unique_ptr<EngineRunner> make_cpu_runner(const FoveaParallel* parallel, uint32_t threads) {
    return std::make_unique<CpuRunner>(parallel, threads);
}

}  // namespace fovea

#include <fovea/train/device.hpp>

namespace fovea {
namespace {

class CpuTrainDevice final : public TrainDevice {
  public:
    CpuTrainDevice(const FoveaParallel* parallel, uint32_t threads)
        : parallel_(parallel), facts_(cpu_facts(parallel ? threads : 1)) {}

    std::string name() const override {
        if (!facts_) return "CPU";
        return std::string("CPU (") + foveaCpuTargetName(facts_->cpu_target) + ")";
    }
    Result<Plan> plan_attention(const FoveaAttentionDesc& call) override {
        if (!facts_) return facts_.error();
        return fovea::plan_attention(*facts_, call);
    }
    Result<Plan> plan_attention_backward(const FoveaAttentionDesc& forward,
                                         const FoveaAttentionBackwardDesc& backward) override {
        if (!facts_) return facts_.error();
        return fovea::plan_attention_backward(*facts_, forward, backward);
    }
    Result<Plan> plan_linear(const FoveaLinearDesc& call) override {
        if (!facts_) return facts_.error();
        return fovea::plan_linear(*facts_, call);
    }
    Result<Plan> plan_rope(const FoveaRopeDesc& call) override {
        if (!facts_) return facts_.error();
        return fovea::plan_rope(*facts_, call);
    }
    Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) override {
        return run_on_host(plan, bindings, workspace_, parallel_);
    }

  private:
    const FoveaParallel* parallel_;
    Result<FoveaDeviceFacts> facts_;
    Workspace workspace_;
};

}  // namespace

std::unique_ptr<TrainDevice> make_cpu_train_device(const FoveaParallel* parallel, uint32_t threads) {
    return std::make_unique<CpuTrainDevice>(parallel, threads);
}

}  // namespace fovea

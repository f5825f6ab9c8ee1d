#include <fovea/runtime.hpp>
#include <fovea/train/device.hpp>

#include <algorithm>
#include <iterator>

namespace fovea {
namespace {

class EngineTrainDevice final : public TrainDevice {
  public:
    explicit EngineTrainDevice(Engine& engine) : engine_(engine) {}

    std::string name() const override { return engine_.device().name; }
    Result<Plan> plan_attention(const FoveaAttentionDesc& call) override {
        return engine_.plan_attention(call);
    }
    Result<Plan> plan_attention_backward(const FoveaAttentionDesc& forward,
                                         const FoveaAttentionBackwardDesc& backward) override {
        return engine_.plan_attention_backward(forward, backward);
    }
    Result<Plan> plan_linear(const FoveaLinearDesc& call) override { return engine_.plan_linear(call); }
    Result<Plan> plan_rope(const FoveaRopeDesc& call) override { return engine_.plan_rope(call); }
    Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) override {
        HostBindings all;
        std::copy_n(bindings, FOVEA_BIND_COUNT, std::begin(all));
        const Result<RunReport> report = engine_.run_on_host(plan, all);
        if (!report) return report.error();
        return {};
    }

  private:
    Engine& engine_;
};

}  // namespace

std::unique_ptr<TrainDevice> make_engine_train_device(Engine& engine) {
    return std::make_unique<EngineTrainDevice>(engine);
}

}  // namespace fovea

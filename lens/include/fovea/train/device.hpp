// Where a step's attention and linear layers run: on plans that are made once and run at every step.
#pragma once

#include <fovea/fovea.hpp>

#include <memory>
#include <string>

namespace fovea {

class Engine;  // <fovea/runtime.hpp>

// One device, one thread.
class TrainDevice {
  public:
    virtual ~TrainDevice() = default;
    virtual std::string name() const = 0;
    virtual Result<Plan> plan_attention(const FoveaAttentionDesc& call) = 0;
    virtual Result<Plan> plan_attention_backward(const FoveaAttentionDesc& forward,
                                                 const FoveaAttentionBackwardDesc& backward) = 0;
    virtual Result<Plan> plan_linear(const FoveaLinearDesc& call) = 0;
    virtual Result<Plan> plan_rope(const FoveaRopeDesc& call) = 0;
    // On host memory: `bindings` has FOVEA_BIND_COUNT entries.
    virtual Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) = 0;
};

// This processor, on the threads that a host lends: null and 1 for the calling thread alone. Their number
// changes no bit. Small models gain nothing from more than one.
std::unique_ptr<TrainDevice> make_cpu_train_device(const FoveaParallel* parallel = nullptr,
                                                   uint32_t threads = 1);
// A device of the runtime, which must outlive it; data are copied there and back at every call. Only in
// builds that have the runtime.
std::unique_ptr<TrainDevice> make_engine_train_device(Engine& engine);

}  // namespace fovea

#include "engine_call.hpp"

namespace fovea::web {

Result<void> Engine::attention(const FoveaAttentionDesc& desc, const Bindings& bindings,
                               std::string* reason) {
    Result<FoveaDeviceFacts> device = facts(worker_count());
    if (!device) return device.error();
    Result<Plan> plan = plan_attention(*device, desc);
    if (!plan) return plan.error();
    if (reason) *reason = plan->info().reason;
    return run(*plan, bindings, worker_count());
}

Result<void> Engine::linear(const FoveaLinearDesc& desc, const Bindings& bindings) {
    Result<FoveaDeviceFacts> device = facts(worker_count());
    if (!device) return device.error();
    const Result<Plan> plan = plan_linear(*device, desc);
    if (!plan) return plan.error();
    return run(*plan, bindings, worker_count());
}

Result<void> Engine::run(const Plan& plan, const Bindings& bindings, uint32_t workers, uint64_t first,
                         uint64_t count) {
    const FoveaParallel parallel = pool_.parallel(workers);
    return run_on_host(plan, bindings.buffers, workspace_, &parallel, first, count);
}

void Engine::for_each(uint32_t count, FoveaTask task, void* arg) { pool_.run(count, task, arg); }

}  // namespace fovea::web

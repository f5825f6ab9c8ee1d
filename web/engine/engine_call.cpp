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
    const FoveaPlanInfo info = plan.info();
    const uint64_t alignment = info.workspace_alignment ? info.workspace_alignment : 1;
    workspace_.resize(info.workspace_bytes ? info.workspace_bytes + alignment : 0);
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = bindings.buffers;
    if (info.workspace_bytes) {
        const auto address = reinterpret_cast<uintptr_t>(workspace_.data());
        unsigned char* aligned = workspace_.data() + (alignment - address % alignment) % alignment;
        run.workspace = {aligned, info.workspace_bytes};
    }
    run.parallel = pool_.parallel(workers);
    run.first_slice = first;
    run.slice_count = count;
    return plan.run_cpu(run);
}

void Engine::for_each(uint32_t count, FoveaTask task, void* arg) {
    if (const FoveaParallel* parallel = pool_.parallel(worker_count())) {
        parallel->run(parallel->user, count, task, arg);
        return;
    }
    for (uint32_t i = 0; i < count; ++i) task(arg, i, 0);
}

}  // namespace fovea::web

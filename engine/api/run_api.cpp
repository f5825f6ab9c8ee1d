// Runs of CPU plans: every argument is checked before the first write.
#include "cpu/run.hpp"
#include "plan/cpu/plan.hpp"
#include "problem/abi_struct.hpp"
#include "problem/bindings.hpp"

namespace fovea {
namespace {

FoveaResult read_ranges(const FoveaCpuRun& run, BindingRange (&ranges)[FOVEA_BIND_COUNT], FoveaDiag* diag) {
    if (run.binding_count && !run.bindings)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "bindings", "bindings is null but binding_count is %u",
                    run.binding_count);
    if (FoveaResult r = check_binding_count(run.binding_count, diag)) return r;
    const auto range = [](const FoveaHostBuffer& b) {
        return BindingRange{b.data != nullptr, 0, uint64_t(reinterpret_cast<uintptr_t>(b.data)),
                            b.size_bytes};
    };
    for (uint32_t i = 0; i < run.binding_count && i < FOVEA_BIND_COUNT; ++i)
        ranges[i] = range(run.bindings[i]);
    for (uint32_t i = 0; i < run.binding_count; ++i)
        if (!is_named_binding(i) && run.bindings[i].data) return unknown_binding(i, diag);
    ranges[FOVEA_BIND_WORKSPACE] = range(run.workspace);
    return FOVEA_OK;
}

}  // namespace
}  // namespace fovea

using namespace fovea;

FoveaResult foveaRunCpu(FoveaPlan plan, const FoveaCpuRun* given, FoveaDiag* diag) {
    if (!plan) return fail(diag, FOVEA_INVALID_ARGUMENT, "plan", "plan is null");
    if (plan->properties.backend != FOVEA_BACKEND_CPU)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "plan",
                    "the plan is for Vulkan; record it with foveaCmdRun");
    FoveaCpuRun run;
    FoveaResult r;
    if ((r = read_struct(given, run, "run", diag))) return r;
    BindingRange ranges[FOVEA_BIND_COUNT];
    if ((r = read_ranges(run, ranges, diag))) return r;
    const BindingRules rules{0, works_in_place(*plan), plan->narrow, true};
    if ((r = check_bindings(plan->info, rules, ranges, diag))) return r;
    uint64_t end = 0;
    if ((r = check_slices(run.first_slice, run.slice_count, plan->info.slice_count, end, diag))) return r;
    if (run.parallel && (!run.parallel->run || run.parallel->worker_count == 0))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "parallel",
                    "parallel needs a run function and at least one worker");
    const uint32_t planned = plan->properties.cpu_threads ? plan->properties.cpu_threads : 1;
    if (run.parallel && run.parallel->worker_count > planned)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "parallel.worker_count",
                    "parallel.worker_count is %u; the plan is for %u", run.parallel->worker_count, planned);
    if (!has_cpu_kernel(*plan))
        return fail(diag, FOVEA_UNSUPPORTED, "properties.cpu_target",
                    "the plan is for %s, which %s cannot run", foveaCpuTargetName(plan->cpu.target),
                    "this CPU or build");
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < run.binding_count && i < FOVEA_BIND_COUNT; ++i) bindings[i] = run.bindings[i];
    run_cpu(*plan, plan->info.kernel, plan->cpu,
            CpuRun{bindings, static_cast<unsigned char*>(run.workspace.data), run.parallel, run.first_slice,
                   end});
    return FOVEA_OK;
}

// Divides the gradients of an attention call into tasks. Every sum is computed within one task, in an order
// that depends only on the problem and the instruction set: neither threads nor slices change a bit.
#include "cpu/backward_layout.hpp"
#include "plan/cpu/plan.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

// The three products of a block with a panel stay near L1; its rows stay in L2.
constexpr uint64_t kTileBytes = 40 * 1024, kRowBytes = 128 * 1024;

uint32_t block_of(const Problem& p, const cpu::TargetShape& shape) {
    const uint64_t by_tile = kTileBytes / (uint64_t{shape.panel()} * 4 * 2);
    const uint64_t by_rows = kRowBytes / (4 * std::max(p.dim_qk, p.dim_v));
    return uint32_t(std::clamp<uint64_t>(std::min(by_tile, by_rows), 16, 128) / 16 * 16);
}

// The most that one task computes.
double largest_task(const Problem& p, const Backward& w, const cpu::BackwardCut& cut, uint32_t panel) {
    const PairFlops flops = pair_flops(p, w);
    const double queries = double(p.len_q), keys = double(p.len_kv);
    double most = 1;
    if (cut.query_tasks) most = std::max(most, flops.query_row * cut.query_tile * p.group * keys);
    if (cut.key_tasks) most = std::max(most, flops.key_row * panel * p.group * queries);
    if (cut.bias_tasks)
        most = std::max(
            most, flops.bias_row * double(p.batch) * p.heads_q * queries * keys / double(cut.bias_tasks));
    if (cut.slope_tasks) most = std::max(most, flops.slope * p.batch * queries * keys);
    if (cut.sink_tasks) most = std::max(most, flops.sink_row * p.batch * queries);
    return most;
}

cpu::BackwardCut cut_backward(const Problem& p, const Backward& w, const cpu::TargetShape& shape) {
    const BackwardParts parts = parts_of(p, w);
    const uint64_t panel = shape.panel();
    cpu::BackwardCut cut{};
    cut.block = block_of(p, shape);
    cut.query_tile =
        uint32_t(std::clamp<uint64_t>(panel / p.group, 1, uint64_t(std::max<int64_t>(p.len_q, 1))));
    cut.query_tiles = uint32_t(ceil_div(uint64_t(p.len_q), cut.query_tile));
    cut.key_panels = uint32_t(ceil_div(uint64_t(p.len_kv), panel));
    const uint64_t groups = uint64_t{p.batch} * p.heads_kv;
    if (parts.query_rows) cut.query_tasks = groups * cut.query_tiles;
    if (parts.key_rows) cut.key_tasks = groups * cut.key_panels;
    if (parts.bias_rows) {
        cut.bias_panels = uint32_t(w.bias_rows > 1 ? ceil_div(uint64_t(w.bias_rows), panel) : 1);
        cut.bias_tasks = uint64_t{w.bias_batch} * w.bias_heads * cut.bias_panels;
    }
    cut.slope_tasks = parts.slopes;
    cut.sink_tasks = parts.sinks;
    return cut;
}

FoveaResult plan_loops(FoveaPlan_T& plan, FoveaKernel kernel, const char* why, FoveaDiag* diag) {
    plan.info.kernel = kernel;
    snprintf(plan.info.reason, sizeof plan.info.reason, "%s%s: gradients in %s plain loops",
             foveaKernelName(kernel), why, kernel == FOVEA_KERNEL_REFERENCE ? "float64" : "float32");
    return cut_cpu_rows(plan, diag);
}

}  // namespace

FoveaResult plan_cpu_backward(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    CpuPlan& cpu = plan.cpu;
    const FoveaKernel wanted = p.kernel;
    if (wanted == FOVEA_KERNEL_PLAIN || wanted == FOVEA_KERNEL_REFERENCE)
        return plan_loops(plan, wanted, " (asked for by name)", diag);
    if (wanted != FOVEA_KERNEL_AUTO && wanted != FOVEA_KERNEL_FLASH)
        return fail(diag, FOVEA_UNSUPPORTED, "kernel",
                    "kernel %s has no gradients on the CPU; auto, flash, plain and reference have",
                    foveaKernelName(wanted));
    const cpu::TargetShape shape = cpu::target_shape(cpu.target);
    const uint64_t threads = std::max<uint64_t>(plan.properties.cpu_threads, 1);
    cpu.backward = cut_backward(p, plan.backward, shape);
    cpu.scratch_bytes = cpu::backward_layout(shape, p.dim_qk, p.dim_v, cpu.backward.block).size_bytes;
    if (cpu.scratch_bytes * threads > p.workspace_limit) {
        if (wanted == FOVEA_KERNEL_AUTO)
            return plan_loops(plan, FOVEA_KERNEL_PLAIN, " (workspace_limit is too small for flash)", diag);
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "workspace_limit",
                    "workspace_limit is %llu; it must be at least %llu bytes: %llu for each CPU thread",
                    static_cast<unsigned long long>(p.workspace_limit),
                    static_cast<unsigned long long>(cpu.scratch_bytes * threads),
                    static_cast<unsigned long long>(cpu.scratch_bytes));
    }
    plan.info.kernel = FOVEA_KERNEL_FLASH;
    snprintf(plan.info.reason, sizeof plan.info.reason,
             "%s%s: gradients in two passes of register tiles, weights from lse, memory linear in length",
             foveaKernelName(plan.info.kernel), wanted == FOVEA_KERNEL_FLASH ? " (asked for by name)" : "");
    const double cost = p.max_slice_cost > 0 ? p.max_slice_cost : kWorkerSliceCost * double(threads);
    const double task = largest_task(p, plan.backward, cpu.backward, shape.panel());
    cpu.tasks = cpu.backward.tasks();
    cpu.tasks_per_slice = uint64_t(std::clamp(cost / task, 1.0, double(std::max<uint64_t>(cpu.tasks, 1))));
    if (cpu.tasks_per_slice > threads) cpu.tasks_per_slice -= cpu.tasks_per_slice % threads;
    cpu.serial = plan.info.flops < kSerialFlops;
    plan.info.workspace_bytes = cpu.scratch_bytes * threads;
    plan.info.slice_count = ceil_div(cpu.tasks, cpu.tasks_per_slice);
    plan.info.max_slice_flops = task * double(cpu.tasks_per_slice);
    return FOVEA_OK;
}

}  // namespace fovea

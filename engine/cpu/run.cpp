#include "cpu/run.hpp"

#include "cpu/attention_call.hpp"
#include "cpu/plain.hpp"
#include "plan/plan.hpp"
#include "reference/reference.hpp"

namespace fovea {
namespace {

struct AttentionJob {
    cpu::AttentionCall call;
    unsigned char* workspace;
    uint64_t first_task;
};

void run_flash_task(void* arg, uint32_t index, uint32_t worker) {
    const auto& job = *static_cast<const AttentionJob*>(arg);
    const CpuPlan& cut = job.call.cut;
    cut.kernels.flash(job.call, job.first_task + index, job.workspace + worker * cut.scratch_bytes);
}

void run_attention_tasks(const FoveaPlan_T& plan, const CpuRun& run) {
    const CpuPlan& cut = plan.cpu;
    const FoveaParallel* parallel = cut.serial ? nullptr : run.parallel;
    const uint64_t end = std::min(run.slice_end * cut.tasks_per_slice, cut.tasks);
    for (uint64_t first = run.slice_begin * cut.tasks_per_slice; first < end;) {
        const uint64_t count = std::min<uint64_t>(end - first, 1u << 30);
        AttentionJob job{{plan.problem, cut, run.bindings}, run.workspace, first};
        for_each_task(parallel, uint32_t(count), run_flash_task, &job);
        first += count;
    }
}

void run_decode_task(void* arg, uint32_t index, uint32_t worker) {
    const auto& job = *static_cast<const AttentionJob*>(arg);
    const CpuPlan& cut = job.call.cut;
    unsigned char* const scratch = job.workspace + cut.groups_per_slice * cut.splits * cut.partial_bytes;
    cut.kernels.decode(job.call, job.first_task + index, scratch + worker * cut.scratch_bytes,
                       job.workspace + index * cut.partial_bytes);
}

void run_merge_task(void* arg, uint32_t index, uint32_t) {
    const auto& job = *static_cast<const AttentionJob*>(arg);
    const CpuPlan& cut = job.call.cut;
    cut.kernels.merge(job.call, job.first_task / cut.splits + index,
                      job.workspace + index * cut.splits * cut.partial_bytes);
}

void run_decode_slices(const FoveaPlan_T& plan, const CpuRun& run) {
    const CpuPlan& cut = plan.cpu;
    const FoveaParallel* parallel = cut.serial ? nullptr : run.parallel;
    for (uint64_t slice = run.slice_begin; slice < run.slice_end; ++slice) {
        const uint64_t first = slice * cut.groups_per_slice * cut.splits;
        const uint64_t tasks = std::min(cut.groups_per_slice * cut.splits, cut.tasks - first);
        AttentionJob job{{plan.problem, cut, run.bindings}, run.workspace, first};
        for_each_task(parallel, uint32_t(tasks), run_decode_task, &job);
        for_each_task(parallel, uint32_t(tasks / cut.splits), run_merge_task, &job);
    }
}

}  // namespace

void run_cpu(const FoveaPlan_T& plan, const CpuRun& run) {
    const CpuPlan& cpu = plan.cpu;
    if (plan.info.kernel == FOVEA_KERNEL_DECODE) return run_decode_slices(plan, run);
    if (!cpu.by_rows) return run_attention_tasks(plan, run);
    const reference::RowRun rows{run.bindings,
                                 run.workspace,
                                 run.parallel,
                                 run.slice_begin * cpu.rows_per_slice,
                                 std::min(run.slice_end * cpu.rows_per_slice, cpu.rows),
                                 cpu.rows_per_task};
    switch (plan.operation) {
        case Operation::attention:
            return plan.info.kernel == FOVEA_KERNEL_REFERENCE ? reference::attention(plan.problem, rows)
                                                              : plain::attention(plan.problem, rows);
        case Operation::map_tile:
            return plan.info.kernel == FOVEA_KERNEL_REFERENCE
                       ? reference::map_tile(plan.problem, plan.tile, rows)
                       : plain::map_tile(plan.problem, plan.tile, rows);
        case Operation::rope:
            return plain::rope(plan.rope, rows);
        case Operation::linear:
            return plain::linear(plan.linear, rows);
        case Operation::append:
            return plain::append(plan.append, rows);
    }
}

}  // namespace fovea

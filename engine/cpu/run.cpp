#include "cpu/run.hpp"

#include "cpu/attention_call.hpp"
#include "cpu/linear_call.hpp"
#include "cpu/plain.hpp"
#include "plan/plan.hpp"
#include "reference/reference.hpp"

#include <algorithm>

namespace fovea {
namespace {

struct AttentionJob {
    cpu::AttentionCall call;
    const MapTile* tile;  // null: attention itself
    unsigned char* workspace;
    uint64_t first_task;
};

void run_attention_task(void* arg, uint32_t index, uint32_t worker) {
    const auto& job = *static_cast<const AttentionJob*>(arg);
    const CpuPlan& cut = job.call.cut;
    unsigned char* scratch = job.workspace + worker * cut.scratch_bytes;
    if (job.tile)
        cut.kernels.map_tile(job.call, *job.tile, job.first_task + index, scratch);
    else
        cut.kernels.flash(job.call, job.first_task + index, scratch);
}

template <class Job>
void run_tasks(const CpuPlan& cut, const CpuRun& run, FoveaTask task, Job job) {
    const FoveaParallel* parallel = cut.serial ? nullptr : run.parallel;
    const uint64_t end = std::min(run.slice_end * cut.tasks_per_slice, cut.tasks);
    for (uint64_t first = run.slice_begin * cut.tasks_per_slice; first < end;) {
        const uint64_t count = std::min<uint64_t>(end - first, 1u << 30);
        job.first_task = first;
        for_each_task(parallel, uint32_t(count), task, &job);
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
        AttentionJob job{{plan.problem, cut, run.bindings}, nullptr, run.workspace, first};
        for_each_task(parallel, uint32_t(tasks), run_decode_task, &job);
        for_each_task(parallel, uint32_t(tasks / cut.splits), run_merge_task, &job);
    }
}

struct LinearJob {
    cpu::LinearCall call;
    const CpuPlan& cut;
    unsigned char* workspace;
    uint64_t first_task;
};

void run_linear_task(void* arg, uint32_t index, uint32_t worker) {
    const auto& job = *static_cast<const LinearJob*>(arg);
    job.cut.kernels.linear(job.call, job.first_task + index, job.workspace + worker * job.cut.scratch_bytes);
}

// Rows of a description, `kernel(desc, bindings, begin, end)` for each task.
template <class Desc, class Kernel>
void run_rows(const Desc& desc, Kernel kernel, const reference::RowRun& run) {
    struct Job {
        const Desc& desc;
        Kernel kernel;
        const reference::RowRun& run;
        uint64_t rows_per_task;
    };
    const uint64_t rows = run.row_end - run.row_begin;
    const Job job{desc, kernel, run, std::max(run.rows_per_task, ceil_div(rows, uint64_t{1} << 31))};
    const FoveaTask task = [](void* arg, uint32_t index, uint32_t) {
        const Job& j = *static_cast<const Job*>(arg);
        const uint64_t begin = j.run.row_begin + index * j.rows_per_task;
        j.kernel(j.desc, j.run.bindings, begin, std::min(begin + j.rows_per_task, j.run.row_end));
    };
    for_each_task(run.parallel, uint32_t(ceil_div(rows, job.rows_per_task)), task, const_cast<Job*>(&job));
}

}  // namespace

void run_cpu(const FoveaPlan_T& plan, const CpuRun& run) {
    const CpuPlan& cpu = plan.cpu;
    if (plan.info.kernel == FOVEA_KERNEL_DECODE) return run_decode_slices(plan, run);
    if (!cpu.by_rows && plan.operation == Operation::linear)
        return run_tasks(cpu, run, run_linear_task,
                         LinearJob{{plan.linear, cpu.linear, run.bindings}, cpu, run.workspace, 0});
    if (!cpu.by_rows)
        return run_tasks(cpu, run, run_attention_task,
                         AttentionJob{{plan.problem, cpu, run.bindings},
                                      plan.operation == Operation::map_tile ? &plan.tile : nullptr,
                                      run.workspace,
                                      0});
    const bool plain = plan.info.kernel == FOVEA_KERNEL_PLAIN,
               reference = plan.info.kernel == FOVEA_KERNEL_REFERENCE;
    const reference::RowRun rows{run.bindings,
                                 run.workspace,
                                 cpu.serial ? nullptr : run.parallel,
                                 run.slice_begin * cpu.rows_per_slice,
                                 std::min(run.slice_end * cpu.rows_per_slice, cpu.rows),
                                 cpu.rows_per_task};
    switch (plan.operation) {
        case Operation::attention:
            return reference ? reference::attention(plan.problem, rows)
                             : plain::attention(plan.problem, rows);
        case Operation::map_tile:
            return reference ? reference::map_tile(plan.problem, plan.tile, rows)
                             : plain::map_tile(plan.problem, plan.tile, rows);
        case Operation::rope:
            if (!plain && !reference) return run_rows(plan.rope, cpu.kernels.rope, rows);
            return reference ? reference::rope(plan.rope, rows) : plain::rope(plan.rope, rows);
        case Operation::linear:
            return reference ? reference::linear(plan.linear, rows) : plain::linear(plan.linear, rows);
        case Operation::append:
            return run_rows(plan.append, cpu.kernels.append, rows);
    }
}

}  // namespace fovea

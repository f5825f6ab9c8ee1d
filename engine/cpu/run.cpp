#include "cpu/run.hpp"

#include "cpu/attention_call.hpp"
#include "cpu/backward_call.hpp"
#include "cpu/linear_call.hpp"
#include "cpu/plain.hpp"
#include "problem/parallel.hpp"
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
    cut.kernels.decode_merge(job.call, job.first_task / cut.splits + index,
                             job.workspace + index * cut.splits * cut.partial_bytes);
}

void run_decode_slices(const Problem& problem, const CpuPlan& cut, const CpuRun& run) {
    const FoveaParallel* parallel = cut.serial ? nullptr : run.parallel;
    for (uint64_t slice = run.slice_begin; slice < run.slice_end; ++slice) {
        const uint64_t first = slice * cut.groups_per_slice * cut.splits;
        const uint64_t tasks = std::min(cut.groups_per_slice * cut.splits, cut.tasks - first);
        AttentionJob job{{problem, cut, run.bindings}, nullptr, run.workspace, first};
        for_each_task(parallel, uint32_t(tasks), run_decode_task, &job);
        for_each_task(parallel, uint32_t(tasks / cut.splits), run_merge_task, &job);
    }
}

struct BackwardJob {
    cpu::BackwardCall call;
    const CpuPlan& cut;
    unsigned char* workspace;
    uint64_t first_task;
};

void run_backward_task(void* arg, uint32_t index, uint32_t worker) {
    const auto& job = *static_cast<const BackwardJob*>(arg);
    job.cut.kernels.backward(job.call, job.first_task + index,
                             job.workspace + worker * job.cut.scratch_bytes);
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

// The numbers of rows that slices of plain loops are.
reference::RowRun rows_of(const CpuPlan& cut, const CpuRun& run) {
    return {run.bindings,
            run.workspace,
            cut.serial ? nullptr : run.parallel,
            run.slice_begin * cut.rows_per_slice,
            std::min(run.slice_end * cut.rows_per_slice, cut.rows),
            cut.rows_per_task};
}

struct CpuLoops {
    void (*reference)(const Call& call, const reference::RowRun& rows);  // float64
    void (*plain)(const Call& call, const reference::RowRun& rows);      // float32
    // Vector kernels: by tasks, or row by row.
    void (*kernels)(const Call& call, const CpuPlan& cut, const CpuRun& run);
};

void run_attention_kernels(const Call& call, const CpuPlan& cut, const CpuRun& run) {
    const MapTile* tile = call.operation == Operation::map_tile ? &call.tile : nullptr;
    run_tasks(cut, run, run_attention_task,
              AttentionJob{{call.problem, cut, run.bindings}, tile, run.workspace, 0});
}

void run_linear_kernel(const Call& call, const CpuPlan& cut, const CpuRun& run) {
    run_tasks(cut, run, run_linear_task,
              LinearJob{{call.linear, cut.linear, run.bindings}, cut, run.workspace, 0});
}

void run_backward_kernel(const Call& call, const CpuPlan& cut, const CpuRun& run) {
    run_tasks(
        cut, run, run_backward_task,
        BackwardJob{{{call.problem, cut, run.bindings}, call.backward, cut.backward}, cut, run.workspace, 0});
}

// By Operation. Append and gather move bits and have no arithmetic to be exact in.
constexpr CpuLoops kLoops[] = {
    // attention
    {[](const Call& call, const reference::RowRun& rows) { reference::attention(call.problem, rows); },
     [](const Call& call, const reference::RowRun& rows) { plain::attention(call.problem, rows); },
     run_attention_kernels},
    // rope
    {[](const Call& call, const reference::RowRun& rows) { reference::rope(call.rope, rows); },
     [](const Call& call, const reference::RowRun& rows) { plain::rope(call.rope, rows); },
     [](const Call& call, const CpuPlan& cut, const CpuRun& run) {
         run_rows(call.rope, cut.kernels.rope, rows_of(cut, run));
     }},
    // linear
    {[](const Call& call, const reference::RowRun& rows) { reference::linear(call.linear, rows); },
     [](const Call& call, const reference::RowRun& rows) { plain::linear(call.linear, rows); },
     run_linear_kernel},
    // append
    {nullptr, nullptr,
     [](const Call& call, const CpuPlan& cut, const CpuRun& run) {
         run_rows(call.append, cut.kernels.append, rows_of(cut, run));
     }},
    // map_tile
    {[](const Call& call, const reference::RowRun& rows) {
         reference::map_tile(call.problem, call.tile, rows);
     },
     [](const Call& call, const reference::RowRun& rows) { plain::map_tile(call.problem, call.tile, rows); },
     run_attention_kernels},
    // backward
    {[](const Call& call, const reference::RowRun& rows) {
         reference::backward(call.problem, call.backward, rows);
     },
     [](const Call& call, const reference::RowRun& rows) {
         plain::backward(call.problem, call.backward, rows);
     },
     run_backward_kernel},
    // merge
    {[](const Call& call, const reference::RowRun& rows) { reference::merge(call.merge, rows); },
     [](const Call& call, const reference::RowRun& rows) { plain::merge(call.merge, rows); },
     [](const Call& call, const CpuPlan& cut, const CpuRun& run) {
         run_rows(call.merge, cut.kernels.merge, rows_of(cut, run));
     }},
    // gather
    {nullptr, nullptr,
     [](const Call& call, const CpuPlan& cut, const CpuRun& run) {
         run_rows(call.gather, cut.kernels.gather, rows_of(cut, run));
     }},
#ifndef FOVEA_NO_ROW_PARTS  // a page makes no plans of them
    // norm
    {[](const Call& call, const reference::RowRun& rows) { reference::norm(call.norm, rows); },
     [](const Call& call, const reference::RowRun& rows) { plain::norm(call.norm, rows); },
     [](const Call& call, const CpuPlan& cut, const CpuRun& run) {
         run_rows(call.norm, cut.kernels.norm, rows_of(cut, run));
     }},
    // pointwise
    {[](const Call& call, const reference::RowRun& rows) { reference::pointwise(call.pointwise, rows); },
     [](const Call& call, const reference::RowRun& rows) { plain::pointwise(call.pointwise, rows); },
     [](const Call& call, const CpuPlan& cut, const CpuRun& run) {
         run_rows(call.pointwise, cut.kernels.pointwise, rows_of(cut, run));
     }},
#endif
};

}  // namespace

void run_cpu(const Call& call, FoveaKernel kernel, const CpuPlan& cut, const CpuRun& run) {
    if (run.slice_begin >= run.slice_end) return;
    const CpuLoops& loops = kLoops[size_t(call.operation)];
    if (kernel == FOVEA_KERNEL_DECODE) return run_decode_slices(call.problem, cut, run);
    if (kernel == FOVEA_KERNEL_REFERENCE) return loops.reference(call, rows_of(cut, run));
    if (kernel == FOVEA_KERNEL_PLAIN) return loops.plain(call, rows_of(cut, run));
    loops.kernels(call, cut, run);
}

}  // namespace fovea

#include "cpu/run.hpp"

#include "cpu/attention_call.hpp"
#include "cpu/block_rows.hpp"
#include "cpu/linear_layout.hpp"
#include "cpu/plain.hpp"
#include "problem/parallel.hpp"
#include "problem/parts.hpp"
#include "reference/reference.hpp"

#include <algorithm>
#include <cstring>

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

struct FewRowsJob {
    cpu::BlockRows call;
    const CpuPlan& cut;
    uint64_t first_task;
};

void run_few_rows_task(void* arg, uint32_t index, uint32_t) {
    const auto& job = *static_cast<const FewRowsJob*>(arg);
    const uint64_t first = (job.first_task + index) * job.cut.few_rows.step;
    job.cut.kernels.few_rows(job.call, first, std::min(job.call.part_rows, first + job.cut.few_rows.step));
}

void run_few_rows(const FoveaLinearDesc& d, const CpuPlan& cut, const CpuRun& run) {
    const cpu::LinearCall call{d, cut.linear, run.bindings};
    const cpu::FewRowsCut& few = cut.few_rows;
    FewRowsJob job{{}, cut, 0};
    cpu::BlockRows& rows = job.call;
    rows.format = d.w_type, rows.weights = call.at<const unsigned char>(FOVEA_BIND_WEIGHT, 0);
    rows.columns = d.n_in, rows.row_bytes = uint64_t(stored_bytes(d.w_type, d.w_row_stride));
    rows.rows = d.n_out, rows.part_rows = few.part_rows;
    if (d.has_bias) rows.bias = call.at<const float>(FOVEA_BIND_BIAS, 0);
    rows.byte_products = cut.kernels.byte_products;
    auto* const groups = reinterpret_cast<cpu::DigitGroup*>(run.workspace);
    auto* const odd = reinterpret_cast<uint32_t*>(groups + cpu::digit_groups(d.n_in));
    for (uint64_t slice = run.slice_begin; slice < run.slice_end; ++slice) {
        const auto row = int64_t(slice / few.slices_per_row);
        job.first_task = slice % few.slices_per_row * few.tasks_per_slice;
        if (slice == run.slice_begin || job.first_task == 0) {
            rows.x = call.at<const float>(FOVEA_BIND_X, row * d.x_row_stride);
            rows.y = call.at<float>(FOVEA_BIND_Y, row * d.y_row_stride);
            if (few.integers) {
                auto* const q = reinterpret_cast<int8_t*>(run.workspace);
                auto* const scales = reinterpret_cast<float*>(q + d.n_in);
                cut.kernels.round_row(rows.x, d.n_in, q, scales, scales + d.n_in / 32);
                rows.integers = q, rows.integer_scales = scales, rows.integer_sums = scales + d.n_in / 32;
            } else if (cut.scratch_bytes) {
                memset(run.workspace, 0, cut.scratch_bytes);
                cut.kernels.split_digits(rows, groups, odd);
            }
        }
        const uint64_t tasks = std::min(few.tasks_per_slice, few.tasks - job.first_task);
        for_each_task(cut.serial ? nullptr : run.parallel, uint32_t(tasks), run_few_rows_task, &job);
    }
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

// Returns the range of rows that slices of plain loops cover.
reference::RowRun rows_of(const CpuPlan& cut, const CpuRun& run) {
    return {run.bindings,
            run.workspace,
            cut.serial ? nullptr : run.parallel,
            run.slice_begin * cut.rows_per_slice,
            std::min(run.slice_end * cut.rows_per_slice, cut.rows),
            cut.rows_per_task};
}

using Loop = void (*)(const Call& call, const reference::RowRun& rows);

template <auto member, auto loop>
void loop_of(const Call& call, const reference::RowRun& rows) {
    loop(call.*member, rows);
}
template <auto member, auto loop>
void problem_loop_of(const Call& call, const reference::RowRun& rows) {
    loop(call.problem, call.*member, rows);
}

// By Operation, as the tables below. Append and gather move bits and have no arithmetic to be exact in.
constexpr Loop kReferenceLoops[] = {
    // float64
    loop_of<&Call::problem, reference::attention>,
    loop_of<&Call::rope, reference::rope>,
    loop_of<&Call::linear, reference::linear>,
    nullptr,
    problem_loop_of<&Call::tile, reference::map_tile>,
    problem_loop_of<&Call::backward, reference::backward>,
    loop_of<&Call::merge, reference::merge>,
    nullptr,
#ifndef FOVEA_NO_ROW_PARTS  // a page makes no plans of them
    loop_of<&Call::norm, reference::norm>,
    loop_of<&Call::pointwise, reference::pointwise>,
#endif
};

constexpr Loop kFloatLoops[] = {
    loop_of<&Call::problem, plain::attention>,
    loop_of<&Call::rope, plain::rope>,
    loop_of<&Call::linear, plain::linear>,
    nullptr,
    problem_loop_of<&Call::tile, plain::map_tile>,
    problem_loop_of<&Call::backward, plain::backward>,
    loop_of<&Call::merge, plain::merge>,
    nullptr,
#ifndef FOVEA_NO_ROW_PARTS
    loop_of<&Call::norm, plain::norm>,
    loop_of<&Call::pointwise, plain::pointwise>,
#endif
};

void run_attention_kernels(const Call& call, const CpuPlan& cut, const CpuRun& run) {
    const MapTile* tile = call.operation == Operation::map_tile ? &call.tile : nullptr;
    run_tasks(cut, run, run_attention_task,
              AttentionJob{{call.problem, cut, run.bindings}, tile, run.workspace, 0});
}

void run_linear_kernel(const Call& call, const CpuPlan& cut, const CpuRun& run) {
    if (has(kStoredRows) && cut.few_rows.tasks) return run_few_rows(call.linear, cut, run);
    run_tasks(cut, run, run_linear_task,
              LinearJob{{call.linear, cut.linear, run.bindings}, cut, run.workspace, 0});
}

void run_backward_kernel(const Call& call, const CpuPlan& cut, const CpuRun& run) {
    run_tasks(
        cut, run, run_backward_task,
        BackwardJob{{{call.problem, cut, run.bindings}, call.backward, cut.backward}, cut, run.workspace, 0});
}

template <auto member, auto kernel>
void run_kernel_rows(const Call& call, const CpuPlan& cut, const CpuRun& run) {
    run_rows(call.*member, cut.kernels.*kernel, rows_of(cut, run));
}

// Vector kernels: by tasks, or row by row.
constexpr void (*kKernelLoops[])(const Call& call, const CpuPlan& cut, const CpuRun& run) = {
    run_attention_kernels,
    run_kernel_rows<&Call::rope, &cpu::Kernels::rope>,
    run_linear_kernel,
    run_kernel_rows<&Call::append, &cpu::Kernels::append>,
    run_attention_kernels,
    run_backward_kernel,
    run_kernel_rows<&Call::merge, &cpu::Kernels::merge>,
    run_kernel_rows<&Call::gather, &cpu::Kernels::gather>,
#ifndef FOVEA_NO_ROW_PARTS
    run_kernel_rows<&Call::norm, &cpu::Kernels::norm>,
    run_kernel_rows<&Call::pointwise, &cpu::Kernels::pointwise>,
#endif
};

}  // namespace

void run_cpu(const Call& call, FoveaKernel kernel, const CpuPlan& cut, const CpuRun& run) {
    if (run.slice_begin >= run.slice_end) return;
    const size_t operation = size_t(call.operation);
    if (has(kDecoding) && kernel == FOVEA_KERNEL_DECODE && call.operation == Operation::attention)
        return run_decode_slices(call.problem, cut, run);
    if (has(kPlainLoops)) {
        if (kernel == FOVEA_KERNEL_REFERENCE) return kReferenceLoops[operation](call, rows_of(cut, run));
        if (kernel == FOVEA_KERNEL_PLAIN) return kFloatLoops[operation](call, rows_of(cut, run));
    }
    kKernelLoops[operation](call, cut, run);
}

}  // namespace fovea

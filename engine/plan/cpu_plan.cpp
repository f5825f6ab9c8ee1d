#include "plan/cpu_plan.hpp"

#include "cpu/plain.hpp"
#include "plan/plan.hpp"
#include "plan/text_sink.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"
#include "problem/visibility.hpp"
#include "reference/reference.hpp"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

// FLOPs of one slice where the caller sets none: some ten milliseconds of plain loops.
constexpr double kDefaultSliceCost = 2e7;

uint64_t rows_of(const FoveaPlan_T& plan) {
    switch (plan.operation) {
        case Operation::attention:
            return uint64_t{plan.problem.batch} * plan.problem.heads_q * uint64_t(plan.problem.len_q);
        case Operation::rope:
            return uint64_t{plan.rope.batch} * plan.rope.heads * plan.rope.len;
        case Operation::linear:
            return plan.linear.rows;
        case Operation::append:
            return uint64_t{plan.append.batch} * plan.append.heads * plan.append.len;
    }
    return 0;
}

double flops_of_row(const FoveaPlan_T& plan) {
    switch (plan.operation) {
        case Operation::attention:
            return 2.0 * (plan.problem.dim_qk + plan.problem.dim_v) * double(plan.problem.len_kv) + 1;
        case Operation::rope:
            return 3.0 * plan.rope.rotary_dim;
        case Operation::linear:
            return 2.0 * plan.linear.n_in * plan.linear.n_out;
        case Operation::append:
            return plan.append.dim;
    }
    return 1;
}

// One row of scratch for each worker that may run at once.
FoveaResult plan_workspace(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const uint64_t each = plan.info.kernel == FOVEA_KERNEL_REFERENCE ? reference::attention_scratch_bytes(p)
                                                                     : plain::attention_scratch_bytes(p);
    plan.info.workspace_bytes = each * std::max<uint64_t>(plan.facts.cpu_threads, 1);
    if (plan.info.workspace_bytes > p.workspace_limit)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "workspace_limit",
                    "workspace_limit is %llu; %u workers with a row of %llu bytes each need %llu",
                    static_cast<unsigned long long>(p.workspace_limit), std::max(plan.facts.cpu_threads, 1u),
                    static_cast<unsigned long long>(each),
                    static_cast<unsigned long long>(plan.info.workspace_bytes));
    return FOVEA_OK;
}

}  // namespace

FoveaResult plan_cpu(FoveaPlan_T& plan, FoveaDiag* diag) {
    const uint64_t rows = rows_of(plan);
    double cost = kDefaultSliceCost;
    FoveaKernel kernel = FOVEA_KERNEL_PLAIN;
    if (plan.operation == Operation::attention) {
        const Problem& p = plan.problem;
        if (p.kernel != FOVEA_KERNEL_AUTO && p.kernel != FOVEA_KERNEL_PLAIN &&
            p.kernel != FOVEA_KERNEL_REFERENCE)
            return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %d is not one of the CPU backend's",
                        int(p.kernel));
        if (p.kernel == FOVEA_KERNEL_REFERENCE) kernel = FOVEA_KERNEL_REFERENCE;
        if (p.max_slice_cost > 0) cost = p.max_slice_cost;
        plan.info.total_pairs = double(p.batch) * p.heads_q * double(p.len_q) * double(p.len_kv);
        plan.info.visited_pairs = visible_pairs(p, batch_view(p, nullptr, 0)) * p.batch * p.heads_q;
        plan.info.flops = 2.0 * (p.dim_qk + p.dim_v) * plan.info.visited_pairs;
    } else {
        plan.info.flops = flops_of_row(plan) * double(rows);
    }
    plan.info.kernel = kernel;
    plan.info.workspace_alignment = 64;
    if (plan.operation == Operation::attention)
        if (FoveaResult r = plan_workspace(plan, diag)) return r;
    const double rows_per_slice = std::max(1.0, cost / flops_of_row(plan));
    plan.cpu.rows_per_slice =
        rows_per_slice < double(rows) ? uint64_t(rows_per_slice) : std::max<uint64_t>(rows, 1);
    plan.cpu.rows_per_task = std::max<uint64_t>(1, plan.cpu.rows_per_slice / 16);
    plan.cpu.rows = rows;
    plan.info.slice_count = ceil_div(rows, plan.cpu.rows_per_slice);
    plan.info.max_slice_flops = flops_of_row(plan) * double(plan.cpu.rows_per_slice);
    snprintf(plan.info.reason, sizeof plan.info.reason, "%s",
             kernel == FOVEA_KERNEL_REFERENCE ? "reference: float64 plain loops, asked for by name"
                                              : "plain: float32 plain loops");
    return FOVEA_OK;
}

void explain_cpu(const FoveaPlan_T& plan, TextSink& text) {
    text.line("rows per slice: %llu, rows per task: %llu",
              static_cast<unsigned long long>(plan.cpu.rows_per_slice),
              static_cast<unsigned long long>(plan.cpu.rows_per_task));
}

}  // namespace fovea

#include "plan/cpu/plan.hpp"

#include "cpu/plain.hpp"
#include "cpu/target.hpp"
#include "plan/cpu/kernel_choice.hpp"
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
        case Operation::map_tile:
            return uint64_t{plan.tile.head_count} * uint64_t(plan.tile.rows.pixels);
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
        case Operation::map_tile:
            return 2.0 * plan.problem.dim_qk * plan.tile.cells_of_pixel_row() + 1;
        case Operation::rope:
            return 3.0 * plan.rope.rotary_dim;
        case Operation::linear:
            return 2.0 * plan.linear.n_in * plan.linear.n_out;
        case Operation::append:
            return plan.append.dim;
    }
    return 1;
}

uint64_t row_scratch_bytes(const FoveaPlan_T& plan) {
    const bool reference = plan.info.kernel == FOVEA_KERNEL_REFERENCE;
    const Problem& p = plan.problem;
    if (plan.operation == Operation::map_tile)
        return reference ? reference::map_tile_scratch_bytes(p, plan.tile)
                         : plain::map_tile_scratch_bytes(p, plan.tile);
    return reference ? reference::attention_scratch_bytes(p) : plain::attention_scratch_bytes(p);
}

// One row of scratch for each worker that may run at once.
FoveaResult plan_workspace(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const uint64_t each = row_scratch_bytes(plan);
    plan.info.workspace_bytes = each * std::max<uint64_t>(plan.facts.cpu_threads, 1);
    if (plan.info.workspace_bytes > p.workspace_limit)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "workspace_limit",
                    "workspace_limit is %llu; %u workers with a row of %llu bytes each need %llu",
                    static_cast<unsigned long long>(p.workspace_limit), std::max(plan.facts.cpu_threads, 1u),
                    static_cast<unsigned long long>(each),
                    static_cast<unsigned long long>(plan.info.workspace_bytes));
    return FOVEA_OK;
}

// Plain loops over rows, for the oracles and for what has no vector kernel.
FoveaResult cut_rows(FoveaPlan_T& plan, FoveaDiag* diag) {
    plan.cpu.by_rows = true;
    const uint64_t rows = rows_of(plan);
    const bool attention = plan.operation == Operation::attention || plan.operation == Operation::map_tile;
    double cost = kDefaultSliceCost;
    if (attention && plan.problem.max_slice_cost > 0) cost = plan.problem.max_slice_cost;
    if (attention)
        if (FoveaResult r = plan_workspace(plan, diag)) return r;
    const double rows_per_slice = std::max(1.0, cost / flops_of_row(plan));
    plan.cpu.rows_per_slice =
        rows_per_slice < double(rows) ? uint64_t(rows_per_slice) : std::max<uint64_t>(rows, 1);
    plan.cpu.rows_per_task = std::max<uint64_t>(1, plan.cpu.rows_per_slice / 16);
    plan.cpu.rows = rows;
    plan.info.slice_count = ceil_div(rows, plan.cpu.rows_per_slice);
    plan.info.max_slice_flops = flops_of_row(plan) * double(plan.cpu.rows_per_slice);
    return FOVEA_OK;
}

FoveaResult set_target(FoveaPlan_T& plan, FoveaDiag* diag) {
    const uint32_t asked = plan.facts.cpu_target;
    if (asked >= cpu::kTargetCount)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "facts.cpu_target",
                    "facts.cpu_target is %u; it must be below %u", asked, unsigned(cpu::kTargetCount));
    plan.cpu.target = asked == cpu::kTargetBest ? cpu::best_target() : asked;
    plan.cpu.kernels = cpu::kernels_of(plan.cpu.target);
    return FOVEA_OK;
}

FoveaKernel wanted_kernel(const FoveaPlan_T& plan) {
    switch (plan.operation) {
        case Operation::rope:
            return plan.rope.kernel;
        case Operation::linear:
            return plan.linear.kernel;
        default:
            return FOVEA_KERNEL_AUTO;
    }
}

// Rope, linear and append.
FoveaResult plan_operation(FoveaPlan_T& plan, FoveaDiag* diag) {
    plan.info.kernel = wanted_kernel(plan);
    if (plan.info.kernel == FOVEA_KERNEL_AUTO && plan.operation == Operation::linear) {
        cut_cpu_linear(plan);
        return FOVEA_OK;
    }
    const char* reason = plan.info.kernel == FOVEA_KERNEL_PLAIN       ? "plain: float32 plain loops"
                         : plan.info.kernel == FOVEA_KERNEL_REFERENCE ? "reference: float64 plain loops"
                                                                      : "row by row";
    snprintf(plan.info.reason, sizeof plan.info.reason, "%s", reason);
    plan.cpu.serial = plan.info.kernel == FOVEA_KERNEL_AUTO && plan.info.flops < kSerialFlops;
    return cut_rows(plan, diag);
}

void count_attention(FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    plan.info.total_pairs = double(p.batch) * p.heads_q * double(p.len_q) * double(p.len_kv);
    plan.info.visited_pairs = visible_pairs(p, batch_view(p, nullptr, 0)) * p.batch * p.heads_q;
    plan.info.flops = 2.0 * (p.dim_qk + p.dim_v) * plan.info.visited_pairs;
}

void count_tile(FoveaPlan_T& plan) {
    const MapTile& tile = plan.tile;
    plan.info.total_pairs = double(tile.head_count) * double(tile.rows.count) * double(tile.keys.count);
    plan.info.visited_pairs =
        visible_cells(plan.problem, tile, batch_view(plan.problem, nullptr, tile.batch));
    plan.info.flops = 2.0 * plan.problem.dim_qk * plan.info.visited_pairs;
}

// Plain loops by name alone.
FoveaResult plan_cpu_map_tile(FoveaPlan_T& plan, FoveaDiag* diag) {
    count_tile(plan);
    const FoveaKernel wanted = plan.problem.kernel;
    const bool plain = wanted == FOVEA_KERNEL_REFERENCE || wanted == FOVEA_KERNEL_PLAIN;
    plan.info.kernel = plain ? wanted : FOVEA_KERNEL_AUTO;
    snprintf(plan.info.reason, sizeof plan.info.reason, "map tile: %s",
             wanted == FOVEA_KERNEL_REFERENCE ? "float64 plain loops"
             : plain                          ? "float32 plain loops"
                                              : "panels of rows against blocks of keys in register tiles");
    return plain ? cut_rows(plan, diag) : cut_cpu_map_tile(plan, diag);
}

}  // namespace

FoveaResult plan_cpu(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (FoveaResult r = set_target(plan, diag)) return r;
    plan.info.workspace_alignment = 64;
    if (plan.operation == Operation::map_tile) return plan_cpu_map_tile(plan, diag);
    if (plan.operation != Operation::attention) {
        plan.info.flops = flops_of_row(plan) * double(rows_of(plan));
        return plan_operation(plan, diag);
    }
    count_attention(plan);
    if (FoveaResult r = choose_cpu_kernel(plan, diag)) return r;
    const bool by_row = plan.info.kernel == FOVEA_KERNEL_PLAIN || plan.info.kernel == FOVEA_KERNEL_REFERENCE;
    if (by_row) return cut_rows(plan, diag);
    return plan.info.kernel == FOVEA_KERNEL_DECODE ? cut_cpu_decode(plan, diag)
                                                   : cut_cpu_attention(plan, diag);
}

bool has_cpu_kernel(const FoveaPlan_T& plan) {
    const cpu::Kernels& kernels = plan.cpu.kernels;
    if (plan.info.kernel == FOVEA_KERNEL_PLAIN || plan.info.kernel == FOVEA_KERNEL_REFERENCE) return true;
    switch (plan.operation) {
        case Operation::attention:
            return kernels.flash;
        case Operation::rope:
            return kernels.rope;
        case Operation::linear:
            return kernels.linear;
        case Operation::append:
            return kernels.append;
        case Operation::map_tile:
            return kernels.map_tile;
    }
    return false;
}

void explain_cpu(const FoveaPlan_T& plan, TextSink& text) {
    const CpuPlan& cut = plan.cpu;
    if (cut.by_rows) {
        text.line("rows per slice: %llu, rows per task: %llu",
                  static_cast<unsigned long long>(cut.rows_per_slice),
                  static_cast<unsigned long long>(cut.rows_per_task));
        return;
    }
    const cpu::TargetShape shape = cpu::target_shape(cut.target);
    text.line("instruction set: %s, %u floats to a vector; register tile of %u x %u vectors%s",
              cpu::target_name(cut.target), shape.lanes, shape.rows, shape.vectors,
              has_cpu_kernel(plan) ? "" : "; not on this processor");
    if (plan.operation == Operation::linear)
        text.line("tasks: %llu of %u rows and %u panels of %u columns; %u of n_in at a time",
                  static_cast<unsigned long long>(cut.tasks), cut.linear.row_tile, cut.linear.panels,
                  shape.panel(), cut.linear.depth_block);
    else if (plan.operation == Operation::map_tile)
        text.line("tasks: %llu of %u x %u pixels; blocks of %u keys",
                  static_cast<unsigned long long>(cut.tasks), cut.pixel_columns, cut.pixel_rows,
                  cut.key_block);
    else if (plan.info.kernel == FOVEA_KERNEL_DECODE)
        text.line(
            "tasks: %llu, each all queries of a group against one of %llu splits of %llu keys, in blocks of "
            "%u",
            static_cast<unsigned long long>(cut.tasks), static_cast<unsigned long long>(cut.splits),
            static_cast<unsigned long long>(cut.split_keys), cut.key_block);
    else
        text.line(
            "tasks: %llu of %u queries for each head of a group, in %u panels of %u rows; blocks of %u keys",
            static_cast<unsigned long long>(cut.tasks), cut.query_tile, cut.panels, shape.panel(),
            cut.key_block);
    text.line("scratch of each worker: %llu bytes", static_cast<unsigned long long>(cut.scratch_bytes));
}

}  // namespace fovea

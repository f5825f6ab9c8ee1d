#include "plan/cpu/plan.hpp"

#include "cpu/block_rows.hpp"
#include "cpu/plain.hpp"
#include "cpu/target.hpp"
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
constexpr double kPlainSliceCost = 2e7;

// The functions by which the CPU's planner plans an operation.
struct CpuOperation {
    uint64_t (*rows)(const FoveaPlan_T& plan);     // rows that plain loops iterate over
    double (*row_flops)(const FoveaPlan_T& plan);  // at most, of one of them
    FoveaResult (*make)(FoveaPlan_T& plan, FoveaDiag* diag);
    bool (*has_kernel)(const cpu::Kernels& kernels);
    void (*explain)(const FoveaPlan_T& plan, TextSink& text);  // tasks of vector kernels; null: has none
};
const CpuOperation& operation_of(const FoveaPlan_T& plan);

bool is_plain_loop(FoveaKernel kernel) {
    return kernel == FOVEA_KERNEL_PLAIN || kernel == FOVEA_KERNEL_REFERENCE;
}

uint64_t row_scratch_bytes(const FoveaPlan_T& plan) {
    const bool reference = plan.info.kernel == FOVEA_KERNEL_REFERENCE;
    const Problem& p = plan.problem;
    if (plan.operation == Operation::backward)
        return reference ? reference::backward_scratch_bytes(p) : plain::backward_scratch_bytes(p);
    if (plan.operation == Operation::map_tile)
        return reference ? reference::map_tile_scratch_bytes(p, plan.tile)
                         : plain::map_tile_scratch_bytes(p, plan.tile);
    return reference ? reference::attention_scratch_bytes(p) : plain::attention_scratch_bytes(p);
}

// One row of scratch for each worker that may run at once.
FoveaResult plan_workspace(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const uint64_t each = row_scratch_bytes(plan);
    plan.info.workspace_bytes = each * std::max<uint64_t>(plan.properties.cpu_threads, 1);
    if (plan.info.workspace_bytes > p.workspace_limit)
        return fail(
            diag, FOVEA_LIMIT_EXCEEDED, "workspace_limit",
            "workspace_limit is %llu; it must be at least %llu bytes: a row of %llu for each CPU thread",
            static_cast<unsigned long long>(p.workspace_limit),
            static_cast<unsigned long long>(plan.info.workspace_bytes),
            static_cast<unsigned long long>(each));
    return FOVEA_OK;
}

}  // namespace

FoveaResult cut_cpu_rows(FoveaPlan_T& plan, FoveaDiag* diag) {
    plan.cpu.by_rows = true;
    const uint64_t rows = operation_of(plan).rows(plan);
    const double row_flops = operation_of(plan).row_flops(plan);
    const bool attention = plan.operation == Operation::attention || plan.operation == Operation::map_tile ||
                           plan.operation == Operation::backward;
    double cost = kPlainSliceCost;
    if (attention && plan.problem.max_slice_cost > 0) cost = plan.problem.max_slice_cost;
    if (attention)
        if (FoveaResult r = plan_workspace(plan, diag)) return r;
    const double rows_per_slice = std::max(1.0, cost / row_flops);
    plan.cpu.rows_per_slice =
        rows_per_slice < double(rows) ? uint64_t(rows_per_slice) : std::max<uint64_t>(rows, 1);
    plan.cpu.rows_per_task = std::max<uint64_t>(1, plan.cpu.rows_per_slice / 16);
    plan.cpu.rows = rows;
    plan.info.slice_count = ceil_div(rows, plan.cpu.rows_per_slice);
    plan.info.max_slice_flops = row_flops * double(plan.cpu.rows_per_slice);
    return FOVEA_OK;
}

namespace {

FoveaResult set_target(FoveaPlan_T& plan, FoveaDiag* diag) {
    const uint32_t asked = plan.properties.cpu_target;
    if (asked >= cpu::kTargetCount)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.cpu_target",
                    "properties.cpu_target is %u; it must be below %u", asked, unsigned(cpu::kTargetCount));
    plan.cpu.target = asked == cpu::kTargetBest ? cpu::best_target() : asked;
    plan.cpu.kernels = cpu::kernels_of(plan.cpu.target);
    return FOVEA_OK;
}

// ==== operations ====

void count_attention(FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    plan.info.total_pairs = double(p.batch) * p.heads_q * double(p.len_q) * double(p.len_kv);
    plan.info.visited_pairs = visible_pairs(p, batch_view(p, nullptr, 0)) * p.batch * p.heads_q;
    plan.info.flops = 2.0 * (p.dim_qk + p.dim_v) * plan.info.visited_pairs;
}

FoveaResult make_attention(FoveaPlan_T& plan, FoveaDiag* diag) {
    count_attention(plan);
    return plan_cpu_attention(plan, diag);
}

FoveaResult make_backward_plan(FoveaPlan_T& plan, FoveaDiag* diag) {
    count_attention(plan);
    plan.info.flops = backward_flops(plan.problem, plan.backward, plan.info.visited_pairs);
    return plan_cpu_backward(plan, diag);
}

void count_tile(FoveaPlan_T& plan) {
    const MapTile& tile = plan.tile;
    plan.info.total_pairs = double(tile.head_count) * double(tile.rows.count) * double(tile.keys.count);
    plan.info.visited_pairs =
        visible_cells(plan.problem, tile, batch_view(plan.problem, nullptr, tile.batch));
    plan.info.flops = 2.0 * plan.problem.dim_qk * plan.info.visited_pairs;
}

// Uses plain loops only if they are requested.
FoveaResult make_map_tile_plan(FoveaPlan_T& plan, FoveaDiag* diag) {
    count_tile(plan);
    const FoveaKernel wanted = plan.problem.kernel;
    const bool plain = is_plain_loop(wanted);
    plan.info.kernel = plain ? wanted : FOVEA_KERNEL_AUTO;
    snprintf(plan.info.reason, sizeof plan.info.reason, "map tile: %s",
             wanted == FOVEA_KERNEL_REFERENCE ? "float64 plain loops"
             : plain                          ? "float32 plain loops"
                                              : "panels of rows against blocks of keys in register tiles");
    return plain ? cut_cpu_rows(plan, diag) : cut_cpu_map_tile(plan, diag);
}

// Rope, linear, append, gather, merge, norm and pointwise, which have one kernel each besides the oracles.
FoveaResult make_by_rows(FoveaPlan_T& plan, FoveaKernel kernel, FoveaDiag* diag) {
    plan.info.kernel = kernel;
    plan.info.flops = operation_of(plan).row_flops(plan) * double(operation_of(plan).rows(plan));
    const char* reason = kernel == FOVEA_KERNEL_PLAIN       ? "plain: float32 plain loops"
                         : kernel == FOVEA_KERNEL_REFERENCE ? "reference: float64 plain loops"
                                                            : "row by row";
    snprintf(plan.info.reason, sizeof plan.info.reason, "%s", reason);
    plan.cpu.serial = kernel == FOVEA_KERNEL_AUTO && plan.info.flops < kSerialFlops;
    return cut_cpu_rows(plan, diag);
}
// An operation whose caller may choose the reference kernels, and one that moves bits.
template <auto member>
FoveaResult make_rows(FoveaPlan_T& plan, FoveaDiag* diag) {
    return make_by_rows(plan, (plan.*member).kernel, diag);
}
FoveaResult make_moved_rows(FoveaPlan_T& plan, FoveaDiag* diag) {
    return make_by_rows(plan, FOVEA_KERNEL_AUTO, diag);
}
FoveaResult make_linear_plan(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (is_plain_loop(plan.linear.kernel)) {
        // The loops of a build that leaves out blocks would read them as float32.
        if (storage_block(plan.linear.w_type).numbers > 1 && !is_compressed(FOVEA_Q8_0))
            return fail(diag, FOVEA_UNSUPPORTED, "w_type",
                        "w_type is %s; this build has no plain loops for it", dtype_name(plan.linear.w_type));
        return make_by_rows(plan, plan.linear.kernel, diag);
    }
    plan.info.flops = operation_of(plan).row_flops(plan) * double(plan.linear.rows);
    return plan_cpu_linear(plan, diag);
}

uint32_t panel_of(const FoveaPlan_T& plan) { return cpu::target_shape(plan.cpu.target).panel(); }

void explain_attention(const FoveaPlan_T& plan, TextSink& text) {
    const CpuPlan& cut = plan.cpu;
    if (plan.info.kernel == FOVEA_KERNEL_DECODE)
        text.line(
            "tasks: %llu, each all queries of a group against one of %llu splits of %llu keys, in blocks of "
            "%u%s",
            static_cast<unsigned long long>(cut.tasks), static_cast<unsigned long long>(cut.splits),
            static_cast<unsigned long long>(cut.split_keys), cut.key_block,
            cut.fetch_to_second ? ", fetched ahead into the second cache, as the first is small" : "");
    else
        text.line(
            "tasks: %llu of %u queries for each head of a group, in %u panels of %u rows; blocks of %u keys",
            static_cast<unsigned long long>(cut.tasks), cut.query_tile, cut.panels, panel_of(plan),
            cut.key_block);
    if (cut.pairs)
        text.line("products: pairs of bfloat16 (AVX512-BF16), sums in float32");
    else if (plan.problem.precision == FOVEA_PRECISION_BF16_INPUTS)
        text.line("products: float32; those of bfloat16 are flash's, with AVX-512 and AVX512-BF16 (%s)",
                  plan.properties.features & FOVEA_FEATURE_BF16_INPUTS ? "which the device has"
                                                                       : "which is not here");
}

void explain_linear(const FoveaPlan_T& plan, TextSink& text) {
    const cpu::LinearCut& cut = plan.cpu.linear;
    const cpu::FewRowsCut& few = plan.cpu.few_rows;
    const bool integers = takes_integers(plan.linear);
    if (integers) text.line("products: int8, exact in int32 for each group of W; sums in float32");
    if (plan.info.kernel == FOVEA_KERNEL_DECODE)
        return text.line("tasks: %llu for each row of X, each of %llu rows of W in each of %u parts of it",
                         static_cast<unsigned long long>(few.tasks),
                         static_cast<unsigned long long>(few.step), cpu::kRowParts);
    text.line("tasks: %llu of %u rows and %u panels of %u columns; %u of n_in at a time",
              static_cast<unsigned long long>(plan.cpu.tasks), cut.row_tile, cut.panels,
              integers ? cpu::target_shape(plan.cpu.target).lanes : panel_of(plan), cut.depth_block);
}

void explain_map_tile(const FoveaPlan_T& plan, TextSink& text) {
    const CpuPlan& cut = plan.cpu;
    text.line("tasks: %llu of %u x %u pixels; blocks of %u keys", static_cast<unsigned long long>(cut.tasks),
              cut.pixel_columns, cut.pixel_rows, cut.key_block);
}

void explain_backward(const FoveaPlan_T& plan, TextSink& text) {
    const cpu::BackwardCut& cut = plan.cpu.backward;
    text.line(
        "tasks: %llu for dq of %u queries, %llu for dk and dv of %u keys, %llu for dbias, %llu for dalibi "
        "and dsinks; blocks of %u rows",
        static_cast<unsigned long long>(cut.query_tasks), cut.query_tile,
        static_cast<unsigned long long>(cut.key_tasks), panel_of(plan),
        static_cast<unsigned long long>(cut.bias_tasks),
        static_cast<unsigned long long>(cut.slope_tasks + cut.sink_tasks), cut.block);
}

// By Operation.
constexpr CpuOperation kOperations[] = {
    // attention
    {[](const FoveaPlan_T& plan) -> uint64_t {
         return uint64_t{plan.problem.batch} * plan.problem.heads_q * uint64_t(plan.problem.len_q);
     },
     [](const FoveaPlan_T& plan) -> double {
         return 2.0 * (plan.problem.dim_qk + plan.problem.dim_v) * double(plan.problem.len_kv) + 1;
     },
     make_attention, [](const cpu::Kernels& kernels) -> bool { return kernels.flash; }, explain_attention},
    // rope
    {[](const FoveaPlan_T& plan) -> uint64_t {
         return uint64_t{plan.rope.batch} * plan.rope.heads * plan.rope.len;
     },
     [](const FoveaPlan_T& plan) -> double { return 3.0 * plan.rope.rotary_dim; }, make_rows<&Call::rope>,
     [](const cpu::Kernels& kernels) -> bool { return kernels.rope; }, nullptr},
    // linear
    {[](const FoveaPlan_T& plan) -> uint64_t { return plan.linear.rows; },
     [](const FoveaPlan_T& plan) -> double { return 2.0 * plan.linear.n_in * plan.linear.n_out; },
     make_linear_plan, [](const cpu::Kernels& kernels) -> bool { return kernels.linear; }, explain_linear},
    // append
    {[](const FoveaPlan_T& plan) -> uint64_t {
         return uint64_t{plan.append.batch} * plan.append.heads * plan.append.len;
     },
     [](const FoveaPlan_T& plan) -> double { return plan.append.dim; }, make_moved_rows,
     [](const cpu::Kernels& kernels) -> bool { return kernels.append; }, nullptr},
    // map_tile
    {[](const FoveaPlan_T& plan) -> uint64_t {
         return uint64_t{plan.tile.head_count} * uint64_t(plan.tile.rows.pixels);
     },
     [](const FoveaPlan_T& plan) -> double {
         return 2.0 * plan.problem.dim_qk * plan.tile.cells_of_pixel_row() + 1;
     },
     make_map_tile_plan, [](const cpu::Kernels& kernels) -> bool { return kernels.map_tile; },
     explain_map_tile},
    // backward
    {[](const FoveaPlan_T& plan) -> uint64_t { return parts_of(plan.problem, plan.backward).count(); },
     [](const FoveaPlan_T& plan) -> double { return flops_of_largest_part(plan.problem, plan.backward) + 1; },
     make_backward_plan, [](const cpu::Kernels& kernels) -> bool { return kernels.backward; },
     explain_backward},
    // merge
    {[](const FoveaPlan_T& plan) -> uint64_t {
         return uint64_t{plan.merge.batch} * plan.merge.heads * plan.merge.len;
     },
     [](const FoveaPlan_T& plan) -> double { return 3.0 * plan.merge.parts * plan.merge.dim; },
     make_rows<&Call::merge>, [](const cpu::Kernels& kernels) -> bool { return kernels.merge; }, nullptr},
    // gather
    {[](const FoveaPlan_T& plan) -> uint64_t {
         return uint64_t{plan.gather.batch} * plan.gather.heads * plan.gather.len;
     },
     [](const FoveaPlan_T& plan) -> double { return plan.gather.dim; }, make_moved_rows,
     [](const cpu::Kernels& kernels) -> bool { return kernels.gather; }, nullptr},
#ifndef FOVEA_NO_ROW_PARTS  // a page makes no plans of them
    // norm
    {[](const FoveaPlan_T& plan) -> uint64_t { return plan.norm.rows; },
     [](const FoveaPlan_T& plan) -> double { return norm_flops(plan.norm); }, make_rows<&Call::norm>,
     [](const cpu::Kernels& kernels) -> bool { return kernels.norm; }, nullptr},
    // pointwise
    {[](const FoveaPlan_T& plan) -> uint64_t { return ceil_div(plan.pointwise.count, kPointwiseStretch); },
     [](const FoveaPlan_T& plan) -> double {
         return double(kPointwiseStretch) * pointwise_flops(plan.pointwise);
     },
     make_rows<&Call::pointwise>, [](const cpu::Kernels& kernels) -> bool { return kernels.pointwise; },
     nullptr},
#endif
};

const CpuOperation& operation_of(const FoveaPlan_T& plan) { return kOperations[size_t(plan.operation)]; }

}  // namespace

FoveaResult plan_cpu(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (FoveaResult r = set_target(plan, diag)) return r;
    plan.info.workspace_alignment = 64;
    return operation_of(plan).make(plan, diag);
}

bool has_cpu_kernel(const FoveaPlan_T& plan) {
    return is_plain_loop(plan.info.kernel) || operation_of(plan).has_kernel(plan.cpu.kernels);
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
              has_cpu_kernel(plan) ? "" : "; not on this CPU");
    operation_of(plan).explain(plan, text);
    text.line("scratch of each worker: %llu bytes", static_cast<unsigned long long>(cut.scratch_bytes));
}

}  // namespace fovea

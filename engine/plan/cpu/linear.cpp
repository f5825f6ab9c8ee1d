// Which kernel computes a linear layer on the CPU, and how it is cut into tasks.
#include "plan/kernel_choice.hpp"

#include "cpu/block_rows.hpp"
#include "plan/cpu/plan.hpp"
#include "problem/checked.hpp"

#include <algorithm>

namespace fovea {
namespace {

// Packing a panel of weights costs as much as some ten rows of products with it.
constexpr uint64_t kMaxLinearRows = 512, kMinLinearRows = 64;
// The weights of a panel for this part of n_in stay in or near L1; with a larger part the sums are read and
// written less.
constexpr uint64_t kDepthBlock = 256;
// Panels that share a copy of rows of X; copy and sums stay in L2.
constexpr uint64_t kMaxPanels = 8;

// About equal parts of `whole`, none larger than `most`.
uint64_t equal_part(uint64_t whole, uint64_t most) {
    return whole == 0 ? 1 : ceil_div(whole, ceil_div(whole, most));
}

cpu::LinearCut cut_linear(const FoveaLinearDesc& d, const cpu::TargetShape& shape, uint64_t rows,
                          uint64_t panels) {
    cpu::LinearCut cut{};
    cut.row_tile = uint32_t(equal_part(d.rows, rows));
    cut.row_tiles = uint32_t(ceil_div(d.rows, uint64_t{cut.row_tile}));
    const uint64_t all_panels = ceil_div(uint64_t{d.n_out}, uint64_t{shape.panel()});
    cut.panels = uint32_t(equal_part(all_panels, panels));
    cut.panel_tiles = uint32_t(ceil_div(all_panels, uint64_t{cut.panels}));
    const uint32_t block = storage_block(d.w_type).numbers;
    cut.blocks = block > 1;
    cut.depth_block = uint32_t(align_up(equal_part(d.n_in, kDepthBlock), block));
    return cut;
}

// Tasks of plan.cpu.linear, `task_flops` each, to slices.
FoveaResult cut_slices(FoveaPlan_T& plan, double task_flops) {
    CpuPlan& cpu = plan.cpu;
    const uint64_t threads = std::max<uint64_t>(plan.properties.cpu_threads, 1);
    cpu.tasks = uint64_t{cpu.linear.row_tiles} * cpu.linear.panel_tiles;
    cpu.tasks_per_slice =
        uint64_t(std::clamp(kWorkerSliceCost / task_flops, 1.0, double(std::max<uint64_t>(cpu.tasks, 1))));
    if (cpu.tasks_per_slice > threads) cpu.tasks_per_slice -= cpu.tasks_per_slice % threads;
    cpu.serial = plan.info.flops < kSerialFlops;
    plan.info.workspace_bytes = cpu.scratch_bytes * threads;
    plan.info.slice_count = ceil_div(cpu.tasks, cpu.tasks_per_slice);
    plan.info.max_slice_flops = task_flops * double(cpu.tasks_per_slice);
    return FOVEA_OK;
}

FoveaResult cut_tiles(FoveaPlan_T& plan, FoveaDiag*) {
    const FoveaLinearDesc& d = plan.linear;
    CpuPlan& cpu = plan.cpu;
    const cpu::TargetShape shape = cpu::target_shape(cpu.target);
    const uint64_t threads = std::max<uint64_t>(plan.properties.cpu_threads, 1);
    uint64_t rows = kMaxLinearRows, panels = kMaxPanels;
    const auto cut = [&] {
        cpu.linear = cut_linear(d, shape, rows, panels);
        cpu.tasks = uint64_t{cpu.linear.row_tiles} * cpu.linear.panel_tiles;
    };
    const auto too_few = [&] { return threads > 1 && cpu.tasks < threads * kTasksPerThread; };
    cut();
    while (too_few() && panels > 1) panels /= 2, cut();
    while (too_few() && rows > kMinLinearRows) rows /= 2, cut();

    cpu.scratch_bytes = cpu::linear_layout(shape, cpu.linear).size_bytes;
    return cut_slices(plan, 2.0 * cpu.linear.row_tile * d.n_in * cpu.linear.panels * shape.panel());
}

const char* tiles_obstacle(const FoveaPlan_T& plan) {
    const bool blocks = storage_block(plan.linear.w_type).numbers > 1;
    return blocks && !is_compressed(FOVEA_Q8_0) ? "this build leaves out blocks in register tiles" : nullptr;
}

// Bytes of weights that a task of few rows reads at most. It reads each of its stretches of memory from end
// to end, so that larger ones are read faster.
constexpr uint64_t kTaskBytes = uint64_t{512} << 10;
// With more rows a packed panel is used often enough to be worth its writing.
constexpr uint64_t kMaxFewRows = 4;

FoveaResult cut_few_rows(FoveaPlan_T& plan, FoveaDiag*) {
    const FoveaLinearDesc& d = plan.linear;
    CpuPlan& cpu = plan.cpu;
    cpu::FewRowsCut& few = cpu.few_rows;
    const uint64_t threads = std::max<uint64_t>(plan.properties.cpu_threads, 1);
    const uint64_t bytes = uint64_t(stored_bytes(d.w_type, d.w_row_stride)) * d.n_out;
    // As many tasks of about one size for each thread.
    const uint64_t most =
        bytes / (threads * std::max<uint64_t>(1, ceil_div(bytes, threads * kTaskBytes))) + 1;
    few.part_rows = ceil_div(uint64_t{d.n_out}, uint64_t{cpu::kRowParts});
    few.step = ceil_div(few.part_rows, std::max<uint64_t>(1, (bytes + most / 2) / most));
    few.tasks = ceil_div(few.part_rows, few.step);
    const double task_flops = 2.0 * d.n_in * double(few.step) * cpu::kRowParts;
    few.tasks_per_slice = uint64_t(std::clamp(kWorkerSliceCost / task_flops, 1.0, double(few.tasks)));
    few.slices_per_row = ceil_div(few.tasks, few.tasks_per_slice);
    few.integers = takes_integers(d);
    if (few.integers) {
        // One row of X in 8 bits, and two floats for each 32 values.
        cpu.kernels.few_rows = cpu.kernels.integer_rows;
        cpu.scratch_bytes = align_up(d.n_in + d.n_in / 32 * 2 * sizeof(float), 64);
    } else if (d.w_type == FOVEA_Q4_0 && cpu.target == cpu::kTargetAvx512) {
        // One row of X as digits, and the blocks of it that are none.
        cpu.scratch_bytes = cpu::digit_groups(d.n_in) * sizeof(cpu::DigitGroup) +
                            align_up(d.n_in / storage_block(d.w_type).numbers * sizeof(uint32_t), 64);
    }
    cpu.serial = plan.info.flops < kSerialFlops;
    plan.info.workspace_bytes = cpu.scratch_bytes;
    plan.info.slice_count = d.rows * few.slices_per_row;
    plan.info.max_slice_flops = task_flops * double(few.tasks_per_slice);
    return FOVEA_OK;
}

const char* few_rows_obstacle(const FoveaPlan_T& plan) {
    const FoveaLinearDesc& d = plan.linear;
    // A target that this CPU cannot run has no kernels here, and its plan is the same everywhere.
    if (plan.cpu.kernels.linear && !plan.cpu.kernels.few_rows) return "this build leaves it out";
    if (d.x_type != FOVEA_F32 || d.y_type != FOVEA_F32) return "X and Y are not both float32";
    return d.weight_is_in_out ? "the weight is [n_in, n_out]" : nullptr;
}

const char* few_rows_drawback(const FoveaPlan_T& plan) {
    if (plan.linear.rows > kMaxFewRows) return "made for at most 4 rows";
    // By name only: a float32 layer has the same bits for any number of rows.
    return plan.linear.w_type == FOVEA_F32 ? "its sums have another order than those of many rows" : nullptr;
}

// Part of n_in that products of integers pack at a time: a panel's codes stay in L1.
constexpr uint64_t kIntegerDepth = 1024;
// Bytes of X as integers that a task keeps in L2.
constexpr uint64_t kIntegerRowBytes = uint64_t{192} << 10;

FoveaResult cut_integers(FoveaPlan_T& plan, FoveaDiag*) {
    const FoveaLinearDesc& d = plan.linear;
    CpuPlan& cpu = plan.cpu;
    const uint64_t lanes = cpu::target_shape(cpu.target).lanes;
    const uint64_t threads = std::max<uint64_t>(plan.properties.cpu_threads, 1);
    cpu::LinearCut& cut = cpu.linear;
    cut.blocks = true;
    cut.depth_block = uint32_t(std::min<uint64_t>(kIntegerDepth, d.n_in));
    const uint64_t most_rows = std::clamp<uint64_t>(kIntegerRowBytes / d.n_in, 8, kMinLinearRows);
    cut.row_tile = uint32_t(equal_part(d.rows, most_rows));
    cut.row_tiles = uint32_t(ceil_div(d.rows, uint64_t{cut.row_tile}));
    const uint64_t panels = ceil_div(uint64_t{d.n_out}, lanes);
    const uint64_t panel_bytes = uint64_t(stored_bytes(d.w_type, d.w_row_stride)) * lanes;
    // Each task rounds its rows of X, so that it has columns enough for that to be little work.
    const uint64_t most = std::max<uint64_t>(1, 2 * kTaskBytes / panel_bytes);
    const uint64_t tasks = std::max(
        ceil_div(panels, most), ceil_div(threads * kTasksPerThread, std::max<uint64_t>(1, cut.row_tiles)));
    cut.panels = uint32_t(std::max(ceil_div(panels, tasks), std::min<uint64_t>(panels, 64 / lanes)));
    cut.panel_tiles = uint32_t(ceil_div(panels, uint64_t{cut.panels}));
    cpu.kernels.linear = cpu.kernels.integer_linear;
    cpu.scratch_bytes = cpu::integer_layout(lanes, d.n_in, cut).size_bytes;
    return cut_slices(plan, 2.0 * cut.row_tile * d.n_in * double(cut.panels * lanes));
}

const char* integers_obstacle(const FoveaPlan_T& plan) {
    return plan.cpu.kernels.linear && !plan.cpu.kernels.integer_linear ? "this build leaves it out" : nullptr;
}
const char* integer_rows_obstacle(const FoveaPlan_T& plan) {
    const char* const obstacle = integers_obstacle(plan);
    return obstacle ? obstacle : few_rows_obstacle(plan);
}

// The best first.
constexpr Candidate kLinearCandidates[] = {
    {FOVEA_KERNEL_DECODE, few_rows_obstacle, few_rows_drawback, cut_few_rows,
     "few rows: each weight is read once, as it is stored"},
    {FOVEA_KERNEL_AUTO, tiles_obstacle, no_reason, cut_tiles,
     "register tiles on packed weights, sums in ascending order"},
};

// The same with products of integers.
constexpr Candidate kIntegerCandidates[] = {
    {FOVEA_KERNEL_DECODE, integer_rows_obstacle, few_rows_drawback, cut_few_rows,
     "few rows: each weight is read once, as it is stored, and multiplied by X in 8 bits"},
    {FOVEA_KERNEL_AUTO, integers_obstacle, no_reason, cut_integers,
     "packed codes of weights times X in 8 bits, sums in ascending order"},
};

}  // namespace

FoveaResult plan_cpu_linear(FoveaPlan_T& plan, FoveaDiag* diag) {
    const FoveaKernel wanted = plan.linear.kernel;
    return takes_integers(plan.linear) ? choose(kIntegerCandidates, wanted, "the CPU", plan, diag)
                                       : choose(kLinearCandidates, wanted, "the CPU", plan, diag);
}

}  // namespace fovea

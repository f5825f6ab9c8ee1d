// How a linear layer is cut into tasks for the vector kernel.
#include "plan/cpu/plan.hpp"
#include "problem/checked.hpp"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

// FLOPs of one slice: some twenty milliseconds of one core.
constexpr double kSliceCost = 2e9;
// Packing a panel of weights costs as much as some ten rows of products with it.
constexpr uint64_t kMostRows = 512, kLeastRows = 64;
// Weights of a panel for so much of n_in stay in the first cache or near it; with more at a time the sums are
// read and written less.
constexpr uint64_t kDepthBlock = 256;
// Panels that share a copy of rows of X; copy and sums stay in the second cache.
constexpr uint64_t kMostPanels = 8;
constexpr uint64_t kTasksPerThread = 6;

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

}  // namespace

FoveaResult cut_cpu_linear(FoveaPlan_T& plan, FoveaDiag*) {
    const FoveaLinearDesc& d = plan.linear;
    CpuPlan& cpu = plan.cpu;
    const cpu::TargetShape shape = cpu::target_shape(cpu.target);
    const uint64_t threads = std::max<uint64_t>(plan.facts.cpu_threads, 1);
    uint64_t rows = kMostRows, panels = kMostPanels;
    const auto cut = [&] {
        cpu.linear = cut_linear(d, shape, rows, panels);
        cpu.tasks = uint64_t{cpu.linear.row_tiles} * cpu.linear.panel_tiles;
    };
    const auto too_few = [&] { return threads > 1 && cpu.tasks < threads * kTasksPerThread; };
    cut();
    while (too_few() && panels > 1) panels /= 2, cut();
    while (too_few() && rows > kLeastRows) rows /= 2, cut();

    const double task_flops = 2.0 * cpu.linear.row_tile * d.n_in * cpu.linear.panels * shape.panel();
    cpu.scratch_bytes = cpu::linear_layout(shape, cpu.linear).size_bytes;
    cpu.tasks_per_slice =
        uint64_t(std::clamp(kSliceCost / task_flops, 1.0, double(std::max<uint64_t>(cpu.tasks, 1))));
    if (cpu.tasks_per_slice > threads) cpu.tasks_per_slice -= cpu.tasks_per_slice % threads;
    cpu.serial = plan.info.flops < kSerialFlops;
    plan.info.workspace_bytes = cpu.scratch_bytes * threads;
    plan.info.slice_count = ceil_div(cpu.tasks, cpu.tasks_per_slice);
    plan.info.max_slice_flops = task_flops * double(cpu.tasks_per_slice);
    snprintf(plan.info.reason, sizeof plan.info.reason,
             "linear: register tiles on packed weights, sums in ascending order");
    return FOVEA_OK;
}

}  // namespace fovea

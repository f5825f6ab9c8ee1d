// Divides a map tile into tasks for the vector kernel. No division changes a bit: units are integers.
#include "cpu/map_tile_layout.hpp"
#include "plan/cpu/plan.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"

#include <algorithm>

namespace fovea {
namespace {

constexpr uint64_t kKeyBlock = 128;
// The pixels of a task stay in L2 together with the keys.
constexpr uint64_t kMaxPixels = 8192;

struct PixelBlock {
    uint64_t rows, columns;
};

double block_flops(const Problem& p, const MapTile& tile, const PixelBlock& block) {
    return 2.0 * p.dim_qk * tile.cells_of_pixel() * double(block.rows) * double(block.columns);
}

PixelBlock cut_pixels(const Problem& p, const MapTile& tile, const cpu::TargetShape& shape, double most) {
    const uint64_t rows_of_pixel = tile.sampled ? 1 : uint64_t(tile.rows.largest());
    const uint64_t keys_of_pixel = tile.sampled ? 1 : uint64_t(tile.keys.largest());
    // Two panels' rows: fewer leave lanes empty at the edges of bands.
    PixelBlock block{std::clamp<uint64_t>(2 * shape.panel() / rows_of_pixel, 1, uint64_t(tile.rows.pixels)),
                     uint64_t(tile.keys.pixels)};
    const auto too_large = [&] {
        return block.rows * block.columns > kMaxPixels || block_flops(p, tile, block) > most;
    };
    // Keys first, as long as what is left fills blocks of them; then rows; then down to a pixel.
    while (too_large() && block.columns > 1 && block.columns * keys_of_pixel > 2 * kKeyBlock)
        block.columns = ceil_div(block.columns, 2);
    while (too_large() && block.rows > 1) block.rows = ceil_div(block.rows, 2);
    while (too_large() && block.columns > 1) block.columns = ceil_div(block.columns, 2);
    return block;
}

}  // namespace

FoveaResult cut_cpu_map_tile(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const MapTile& tile = plan.tile;
    CpuPlan& cpu = plan.cpu;
    const cpu::TargetShape shape = cpu::target_shape(cpu.target);
    const uint64_t threads = std::max<uint64_t>(plan.properties.cpu_threads, 1);
    const double cost = p.max_slice_cost > 0 ? p.max_slice_cost : kWorkerSliceCost * double(threads);
    const double all = 2.0 * p.dim_qk * tile.cells();
    cpu.serial = plan.info.flops < kSerialFlops;
    const double share = threads > 1 && !cpu.serial ? all / (double(threads) * kTasksPerThread) : all;
    const PixelBlock block = cut_pixels(p, tile, shape, std::min(cost / double(threads), share));
    cpu.pixel_rows = uint32_t(block.rows);
    cpu.pixel_columns = uint32_t(block.columns);
    cpu.key_block = kKeyBlock;
    cpu.tasks = tile.head_count * ceil_div(uint64_t(tile.rows.pixels), block.rows) *
                ceil_div(uint64_t(tile.keys.pixels), block.columns);
    const double flops = block_flops(p, tile, block);
    cpu.tasks_per_slice = uint64_t(std::clamp(cost / flops, 1.0, double(cpu.tasks)));
    if (cpu.tasks_per_slice > threads) cpu.tasks_per_slice -= cpu.tasks_per_slice % threads;
    cpu.scratch_bytes =
        cpu::map_tile_layout(shape, p.dim_qk, kKeyBlock, block.rows * block.columns).size_bytes;
    plan.info.workspace_bytes = cpu.scratch_bytes * threads;
    if (plan.info.workspace_bytes > p.workspace_limit)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "workspace_limit",
                    "workspace_limit is %llu; it must be at least %llu bytes: %llu for each CPU thread",
                    static_cast<unsigned long long>(p.workspace_limit),
                    static_cast<unsigned long long>(cpu.scratch_bytes * threads),
                    static_cast<unsigned long long>(cpu.scratch_bytes));
    plan.info.slice_count = ceil_div(cpu.tasks, cpu.tasks_per_slice);
    plan.info.max_slice_flops = flops * double(cpu.tasks_per_slice);
    return FOVEA_OK;
}

}  // namespace fovea

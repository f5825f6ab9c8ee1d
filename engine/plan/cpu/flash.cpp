// Divides attention into tasks for the vector kernels. The grid of key blocks, which decides a row's bits,
// depends only on the problem and the target; the number of threads only decides how many rows share a task.
#include "cpu/flash_layout.hpp"
#include "plan/cpu/plan.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"

#include <algorithm>

namespace fovea {
namespace {

// A block's logits stay in L1 together with a panel of queries.
constexpr uint64_t kLogitBytes = 30 * 1024;
// The part of L2 that a task's queries and outputs may fill; keys and values use the rest in turn, and are
// half as long as pairs.
constexpr uint64_t kAssumedL2Bytes = 512 * 1024, kL2Share = 3, kL2ShareOfPairs = 2;
// A thousand queries that share keys are one task, so that their keys and values are copied once.
constexpr uint64_t kMaxFlashRows = 1088;

struct Cut {
    uint32_t query_tile, query_tiles, panels;
    uint64_t tasks;
    cpu::FlashLayout layout;
};

uint32_t key_block_of(const Problem& p, const cpu::TargetShape& shape) {
    const uint64_t by_cache = kLogitBytes / (shape.panel() * 4) / 16 * 16;
    const uint64_t by_length = align_up(uint64_t(std::max<int64_t>(p.len_kv, 1)), 16);
    return uint32_t(std::min({std::max<uint64_t>(by_cache, 64), uint64_t{256}, by_length}));
}

// True if the call allows products of pairs of bfloat16 and the CPU has them. Calls with matrices go over the
// scores twice, and rotations are sums in float32: both stay with it.
bool takes_pairs(const FoveaPlan_T& plan) {
    return plan.problem.precision == FOVEA_PRECISION_BF16_INPUTS && plan.info.kernel == FOVEA_KERNEL_FLASH &&
           !plan.problem.rotated_k && !plan.problem.rotated_v && plan.cpu.target == cpu::kTargetAvx512 &&
           (plan.properties.features & FOVEA_FEATURE_BF16_INPUTS);
}

Cut cut_queries(const Problem& p, const CpuPlan& cpu, uint64_t queries) {
    const cpu::TargetShape shape = cpu::target_shape(cpu.target);
    Cut cut{};
    const uint64_t len = uint64_t(std::max<int64_t>(p.len_q, 1));
    cut.query_tiles = uint32_t(ceil_div(len, std::min(queries, len)));
    // The tiles are of about equal size, and consist of whole panels where there are several.
    uint64_t tile = ceil_div(len, cut.query_tiles);
    if (cut.query_tiles > 1) {
        uint64_t unit = shape.panel();
        while (unit % 2 == 0 && p.group * (unit / 2) % shape.panel() == 0) unit /= 2;
        while (unit % 3 == 0 && p.group * (unit / 3) % shape.panel() == 0) unit /= 3;
        tile = std::min(ceil_div(tile, unit) * unit, len);
    }
    cut.query_tile = uint32_t(tile);
    cut.query_tiles = uint32_t(ceil_div(len, tile));
    cut.panels = uint32_t(ceil_div(tile * p.group, shape.panel()));
    cut.tasks = uint64_t{cut.query_tiles} * p.batch * p.heads_kv;
    cut.layout = cpu::flash_layout(shape, cut.panels, p.dim_qk, p.dim_v, cpu.key_block, cpu.pairs);
    return cut;
}

// The most that one task of this cut computes.
double task_flops(const Problem& p, const Cut& cut) {
    return 2.0 * (p.dim_qk + p.dim_v) * cut.query_tile * p.group * double(std::max<int64_t>(p.len_kv, 1));
}

uint64_t rows_that_fit(const FoveaPlan_T& plan) {
    const uint64_t l2 = plan.properties.l2_bytes ? plan.properties.l2_bytes : kAssumedL2Bytes;
    const bool pairs = plan.cpu.pairs;
    const uint64_t depth = pairs ? cpu::words_of(plan.problem.dim_qk) : plan.problem.dim_qk;
    return std::min(kMaxFlashRows,
                    l2 / (pairs ? kL2ShareOfPairs : kL2Share) / ((depth + plan.problem.dim_v) * 4));
}

}  // namespace

FoveaResult cut_cpu_flash(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    CpuPlan& cpu = plan.cpu;
    const cpu::TargetShape shape = cpu::target_shape(cpu.target);
    const uint64_t threads = std::max<uint64_t>(plan.properties.cpu_threads, 1);
    const double cost = p.max_slice_cost > 0 ? p.max_slice_cost : kWorkerSliceCost * double(threads);
    const double task_cost = cost / double(threads);  // or a slice would leave workers idle
    cpu.key_block = key_block_of(p, shape);
    cpu.pairs = takes_pairs(plan);
    if (cpu.pairs) cpu.kernels.flash = cpu.kernels.flash_pairs;

    const uint64_t one_panel = std::max<uint64_t>(1, shape.panel() / p.group);
    uint64_t queries = std::max(one_panel, rows_that_fit(plan) / p.group);
    Cut cut = cut_queries(p, cpu, queries);
    const auto too_coarse = [&] {
        const bool few = threads > 1 && cut.tasks < threads * kTasksPerThread && cut.panels > 2;
        return few || task_flops(p, cut) > task_cost || cut.layout.size_bytes * threads > p.workspace_limit;
    };
    while (queries > one_panel && too_coarse()) {
        queries = std::max(one_panel, queries / 2);
        cut = cut_queries(p, cpu, queries);
    }
    if (cut.layout.size_bytes * threads > p.workspace_limit)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "workspace_limit",
                    "workspace_limit is %llu; it must be at least %llu bytes: %llu for each CPU thread",
                    static_cast<unsigned long long>(p.workspace_limit),
                    static_cast<unsigned long long>(cut.layout.size_bytes * threads),
                    static_cast<unsigned long long>(cut.layout.size_bytes));
    cpu.query_tile = cut.query_tile;
    cpu.query_tiles = cut.query_tiles;
    cpu.panels = cut.panels;
    cpu.tasks = p.len_q > 0 ? cut.tasks : 0;
    cpu.scratch_bytes = cut.layout.size_bytes;
    cpu.tasks_per_slice =
        uint64_t(std::clamp(cost / task_flops(p, cut), 1.0, double(std::max<uint64_t>(cpu.tasks, 1))));
    if (cpu.tasks_per_slice > threads) cpu.tasks_per_slice -= cpu.tasks_per_slice % threads;
    cpu.serial = plan.info.flops < kSerialFlops;
    plan.info.workspace_bytes = cpu.scratch_bytes * threads;
    plan.info.slice_count = ceil_div(cpu.tasks, cpu.tasks_per_slice);
    plan.info.max_slice_flops = task_flops(p, cut) * double(cpu.tasks_per_slice);
    return FOVEA_OK;
}

}  // namespace fovea

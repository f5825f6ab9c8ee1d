// Divides calls of few queries and many keys into splits of the keys. The splits depend only on the length
// and the heads, so that neither threads nor batch entries change a row's bits.
#include "cpu/decode_layout.hpp"
#include "plan/cpu/plan.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"

#include <algorithm>

namespace fovea {
namespace {

// FLOPs of one slice where the caller sets none: some twenty milliseconds of one core.
constexpr double kDecodeSliceCost = 5e8;
// Fewer keys than this are not worth a task; more splits than this only cost the merge.
constexpr uint64_t kMinSplit = 512, kMaxSplits = 64;
// The first rows of a split are not prefetched. Splits are not shorter than this if the heads already make
// enough tasks for the threads.
constexpr uint64_t kGoodSplit = 2048, kEnoughTasks = 32;
// Limit for the partial results of a slice.
constexpr uint64_t kPartialBytes = 1 << 20;

}  // namespace

FoveaResult cut_cpu_decode(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    CpuPlan& cpu = plan.cpu;
    const cpu::TargetShape shape = cpu::target_shape(cpu.target);
    const uint64_t threads = std::max<uint64_t>(plan.properties.cpu_threads, 1);
    const double cost = p.max_slice_cost > 0 ? p.max_slice_cost : kDecodeSliceCost;
    const uint64_t rows = uint64_t(p.len_q) * p.group, keys = uint64_t(std::max<int64_t>(p.len_kv, 1));
    const uint64_t groups = uint64_t{p.batch} * p.heads_kv;
    cpu.query_tile = uint32_t(p.len_q);
    cpu.query_tiles = 1;
    cpu.panels = 1;
    cpu.key_block = uint32_t(cpu::kDecodeBlock);
    const uint64_t shared = ceil_div(keys * p.heads_kv, kEnoughTasks);
    const uint64_t least = std::clamp(shared, kMinSplit, kGoodSplit);
    cpu.split_keys = align_up(std::max(least, ceil_div(keys, kMaxSplits)), cpu::kDecodeBlock);
    cpu.splits = ceil_div(keys, cpu.split_keys);
    cpu.partial_bytes = cpu::partial_layout(shape, rows, p.dim_v).size_bytes;
    const bool widens = cpu::widens_rows(shape, p.k_type) || cpu::widens_rows(shape, p.v_type);
    cpu.scratch_bytes = cpu::decode_layout(shape, rows, p.dim_qk, p.dim_v, widens).size_bytes;
    const auto fetches_to_second = [&](FoveaDtype type, const FoveaStrides& s) {
        return cpu::fetches_to_second_cache(plan.properties.l1_bytes, uint64_t(stored_bytes(type, s.row)));
    };
    cpu.fetch_to_second = fetches_to_second(p.k_type, p.k) || fetches_to_second(p.v_type, p.v);
    cpu.tasks = groups * cpu.splits;
    const double group_flops = 2.0 * (p.dim_qk + p.dim_v) * double(rows) * double(keys);
    const uint64_t group_bytes = cpu.splits * cpu.partial_bytes, scratch = cpu.scratch_bytes * threads;
    const uint64_t room = p.workspace_limit > scratch ? p.workspace_limit - scratch : 0;
    const double most = std::min({cost / group_flops, double(std::min(kPartialBytes, room) / group_bytes),
                                  double(std::max<uint64_t>(groups, 1))});
    cpu.groups_per_slice = uint64_t(std::max(most, 1.0));
    plan.info.workspace_bytes = cpu.groups_per_slice * group_bytes + scratch;
    if (plan.info.workspace_bytes > p.workspace_limit)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "workspace_limit",
                    "workspace_limit is %llu; it must be at least %llu bytes: %llu for each CPU thread and "
                    "%llu for the "
                    "splits of a head",
                    static_cast<unsigned long long>(p.workspace_limit),
                    static_cast<unsigned long long>(plan.info.workspace_bytes),
                    static_cast<unsigned long long>(cpu.scratch_bytes),
                    static_cast<unsigned long long>(group_bytes));
    cpu.serial = plan.info.flops < kSerialFlops;
    plan.info.slice_count = ceil_div(groups, cpu.groups_per_slice);
    plan.info.max_slice_flops = group_flops * double(cpu.groups_per_slice);
    return FOVEA_OK;
}

}  // namespace fovea

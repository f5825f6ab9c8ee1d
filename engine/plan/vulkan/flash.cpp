#include "plan/vulkan/flash.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan/attention.hpp"
#include "plan/vulkan/checked.hpp"
#include "plan/vulkan/costs.hpp"
#include "plan/vulkan/device_traits.hpp"
#include "plan/vulkan/rotation.hpp"
#include "plan/vulkan/rows.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <cmath>

namespace fovea {
namespace {

constexpr uint32_t kMatrixOutputs =
    FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS;

constexpr uint32_t kMaxSplits = 128;
constexpr uint32_t kFewFlashRows = 2;  // rows of a tile whose sums fill few registers
// The least lanes of a subgroup that is a workgroup: SwiftShader with its 4 takes 1.3 times as long that way.
constexpr uint32_t kMinLanes = 4, kMinSoftwareLanes = 8;

// From this number of pairs of rows and keys of a key/value head on a software driver uses tiles of 32 rows:
// they are a tenth faster, and their pipeline takes two seconds longer to compile.
constexpr double kMuchWork = 512.0 * 512;

// Uses few shapes, because each is its own pipeline to compile.
uint32_t rows_for(const FoveaPlan_T& plan) {
    const uint64_t packed_rows = uint64_t(plan.problem.len_q) * plan.problem.group;
    if (packed_rows == 1) return 1;
    return packed_rows <= 4 || has_few_registers(plan.properties) ? 4 : shader::kFlashMaxRows;
}
uint32_t column_quads_for(uint64_t threads, uint32_t dim_v) {
    return dim_v <= 4 * threads ? 1 : shader::kFlashMaxColumnQuads;
}

// Parts of a workgroup, each of which holds all value columns of a share of the rows.
uint32_t parts_for(const FlashPlan& f, uint32_t dim_v) {
    uint32_t parts = 1;
    while (2 * parts <= f.rows && f.rows % (2 * parts) == 0 && 4 * (f.threads / (2 * parts)) >= dim_v &&
           f.threads % (8 * parts) == 0)
        parts *= 2;
    return parts;
}

uint32_t shared_bytes(const Problem& p, uint32_t rows, uint32_t threads) {
    return FOVEA_FLASH_SHARED_BYTES(rows, threads) +
           (wants(p, FOVEA_OUTPUT_ROW_STATS) ? FOVEA_STATS_SHARED_BYTES(rows, threads) : 0);
}

// A block of keys should span no more than half of a window, so that its ragged ends cost no more than half
// again; as long as the threads still hold all columns, or every score would be computed twice.
uint32_t threads_for(const FoveaPlan_T& plan, bool software) {
    constexpr uint32_t most = shader::kFlashMaxThreads, wide = shader::kFlashWideThreads;
    // Fewer threads than the narrowest subgroup has would leave the rest of its lanes idle.
    const bool is_wide = !software && !plan.problem.fixed_splits && plan.properties.min_subgroup_size >= wide;
    if (is_wide &&
        shared_bytes(plan.problem, shader::kFlashMaxRows, wide) <= plan.properties.max_shared_bytes)
        return wide;
    // With wide values fewer threads would need a second workgroup, which computes the scores again.
    if (software)
        return plan.problem.dim_v <= 4 * kSoftwareThreads * shader::kFlashMaxColumnQuads ? kSoftwareThreads
                                                                                         : most;
    const uint64_t keys = keys_of_rows(plan.problem, plan.vulkan.visible, 1);
    const bool narrow = keys < plan.vulkan.visible.key_limit && keys < uint64_t{2} * 4 * most;
    return narrow && plan.problem.dim_v <= 4 * (most / 2) * shader::kFlashMaxColumnQuads ? most / 2 : most;
}

// See FOVEA_TILE_CLASS_COUNT.
uint32_t tile_class(const Problem& p) {
    const uint64_t rows = uint64_t(p.len_q) * p.group;
    return 3 * (rows <= 1 ? 0 : rows <= 4 ? 1 : 2) + (p.dim_v <= 64 ? 0 : p.dim_v <= 128 ? 1 : 2);
}

// Decides if the workgroup becomes one whole subgroup; with `exact`, only one of as many threads. Results of
// fixed splits are the same on any device, so the order of their sums must be too, and it depends only on the
// threads.
SubgroupChoice subgroup_for(const FoveaPlan_T& plan, uint32_t threads, bool exact) {
    if (has_compressed(plan.problem))
        return {0, "the KV cache is quantized, which the form with subgroups does not support"};
    if (has_failed(plan, Shader::flash_subgroup)) return {0, kFailedCheck};
    const uint32_t least = exact ? threads : is_software(plan) ? kMinSoftwareLanes : kMinLanes;
    const SubgroupChoice choice = choose_subgroup(plan.properties, threads, least);
    const auto column_blocks = [&](uint64_t lanes) {
        return ceil_div(plan.problem.dim_v, 4 * lanes * shader::kFlashMaxColumnQuads);
    };
    if (choice.size && column_blocks(choice.size) > column_blocks(threads))
        return {0, "a subgroup holds too few value columns: every score would be computed twice"};
    return choice;
}

// Loads are dear on a software driver: its tiles have more rows, which share what they load by shuffles.
// Mesa's older ones, known by their lack of matrices, take 10 to 30 seconds for such a pipeline.
bool choose_shuffles(const FoveaPlan_T& plan, FlashPlan& f) {
    const Problem& p = plan.problem;
    if (!shares_pipelines(plan) || f.measured || has_compressed(p)) return false;
    if (has_failed(plan, Shader::flash_shuffle)) return false;
    constexpr uint32_t kNeeded = FOVEA_FEATURE_SUBGROUP_SHUFFLE | FOVEA_FEATURE_COOPMAT;
    if ((plan.properties.features & kNeeded) != kNeeded) return false;
    const uint32_t lanes = choose_subgroup(plan.properties, kSoftwareThreads, kMinSoftwareLanes).size;
    if (!lanes || uint64_t(p.len_q) * p.group <= shader::kFlashMaxRows) return false;
    if (lanes > shader::kFlashShuffleLanes || p.dim_v > 4 * lanes * shader::kFlashShuffleColumnQuads)
        return false;
    f.form = FlashForm::shuffle;
    f.subgroup_size = f.threads = lanes;
    const bool much = double(p.len_q) * p.group * double(p.len_kv) >= kMuchWork;
    f.rows = much && lanes == kMinSoftwareLanes ? shader::kFlashShuffleMoreRows : shader::kFlashShuffleRows;
    f.column_quads = p.dim_v <= 4 * lanes * shader::kFlashMaxColumnQuads ? column_quads_for(lanes, p.dim_v)
                                                                         : shader::kFlashShuffleColumnQuads;
    return true;
}

void choose_loads(const FoveaPlan_T& plan, FlashPlan& f, const FoveaFlashTile& tile, bool software) {
    const Problem& p = plan.problem;
    f.threads = f.measured ? tile.threads : threads_for(plan, software);
    const SubgroupChoice subgroup = subgroup_for(plan, f.threads, f.measured || p.fixed_splits);
    f.form = subgroup.size ? FlashForm::subgroup : FlashForm::loads;
    f.subgroup_size = subgroup.size;
    f.no_subgroup = subgroup.why;
    if (subgroup.size) f.threads = subgroup.size;
    f.rows = std::min(rows_for(plan), f.threads);
    f.column_quads = column_quads_for(f.threads, p.dim_v);
    if (has_few_registers(plan.properties) && f.column_quads > 1) f.rows = std::min(f.rows, kFewFlashRows);
    if (f.measured) f.rows = tile.rows, f.column_quads = tile.column_quads;
    // On a software driver each number of parts would be one more pipeline, which takes it a second.
    if (!is_software(plan) || f.measured) f.parts = parts_for(f, p.dim_v);
}

void choose_shape(const FoveaPlan_T& plan, FlashPlan& f) {
    const Problem& p = plan.problem;
    const bool software = shares_pipelines(plan);
    const FoveaFlashTile& tile = plan.properties.flash_tiles[tile_class(p)];
    f.measured = tile.rows != 0 && !p.fixed_splits;
    f.parts = 1;
    if (!choose_shuffles(plan, f)) choose_loads(plan, f, tile, software);
    f.block_keys = 4 * f.threads;
    f.columns = 4 * f.threads / f.parts * f.column_quads;
    f.subgroups = f.depth = 0;
    f.general = flash_is_general(plan);
}

// Share of the device that is busy when `tiles` workgroups of equal cost run on `cores`.
double wave_efficiency(double tiles, double cores) { return tiles / (std::ceil(tiles / cores) * cores); }

// Chooses the splits as FlashAttention-3 does: none if the rows already fill most of the device or the keys
// are few, else the smallest number within 85% of the best use of the last wave.
uint32_t choose_splits(const FoveaPlan_T& plan, const FlashPlan& f, uint64_t rows, uint64_t heads) {
    const Problem& p = plan.problem;
    const uint64_t keys = keys_of_rows(p, plan.vulkan.visible, rows), block = f.block_keys;
    if (keys < plan.vulkan.visible.key_limit) return 1;  // a window: other rows see other keys
    if (p.fixed_splits)
        return uint32_t(std::clamp<uint64_t>(ceil_div(keys, shader::kFixedSplitKeys), 1, kHalfWord));
    // The device has work to do everywhere from this many workgroups on.
    const double cores = core_count_of(plan.properties);
    const double tiles = double(ceil_div(rows * p.group, f.rows)) * double(heads) * flash_column_blocks(plan);
    const uint64_t blocks = ceil_div(keys, block);
    if (tiles >= 0.8 * cores || blocks <= 4) return 1;
    const uint32_t most = uint32_t(std::min<uint64_t>({kMaxSplits, blocks / 2, uint64_t(cores)}));
    double best = 0;
    for (uint32_t n = 1; n <= most; ++n) best = std::max(best, wave_efficiency(tiles * n, cores));
    uint32_t splits = 1;
    while (splits < most && wave_efficiency(tiles * splits, cores) < 0.85 * best) ++splits;
    return splits;
}

void set_splits(const FoveaPlan_T& plan, FlashPlan& f, uint32_t splits) {
    const uint64_t keys = plan.vulkan.visible.key_limit;
    const uint64_t each = align_up(ceil_div(std::max<uint64_t>(keys, 1), splits), f.block_keys);
    f.split_keys = uint32_t(each);
    f.splits = uint32_t(std::max<uint64_t>(ceil_div(keys, each), 1));
}

struct FlashNeeds {
    uint64_t rows;  // rows of all query heads of a block
    uint64_t map_bytes, extra_end, partial_offset, partial_end, workspace;
    double cost;
};

FlashNeeds needs_of(const FoveaPlan_T& plan, const FlashPlan& f, const BlockGrid& g) {
    const Problem& p = plan.problem;
    FlashNeeds needs{};
    needs.rows = uint64_t{g.block_batches} * g.block_heads * p.group * g.block_rows;
    needs.map_bytes = mask_map_bytes(plan, f, g.block_heads, g.block_rows);
    needs.extra_end = flash_gathering(plan, f, g).end();
    needs.partial_offset = align_up(needs.extra_end, kWorkspaceAlignment);
    needs.partial_end = needs.partial_offset;
    if (f.splits > 1) needs.partial_end += needs.rows * f.splits * partial_row_bytes(p);
    needs.workspace = needs.partial_end;
    if (rotation_count(plan.vulkan))
        needs.workspace = align_up(needs.partial_end, kWorkspaceAlignment) + rotated_bytes(plan.vulkan);
    const double keys = double(std::max<uint64_t>(keys_of_rows(p, plan.vulkan.visible, g.block_rows), 1));
    needs.cost = 2.0 * (double(p.dim_qk) * flash_column_blocks(plan) + p.dim_v) * double(needs.rows) * keys;
    return needs;
}

// True if the heads of an entry follow those of the entry before it, or if the sequence table or pages place
// each entry. The push constants have no room for strides between batch entries.
bool heads_go_on(const FoveaStrides& strides, uint32_t heads, bool is_placed_by_table) {
    return is_placed_by_table || heads == 1 || strides.batch == int64_t{heads} * strides.head;
}

// True if a slice may hold several batch entries. A mask's map, partial results of splits and the views of
// matrices belong to a single entry; tables, slopes and sinks are gathered as a whole.
bool entries_may_share(const FoveaPlan_T& plan, const FlashPlan& f) {
    const Problem& p = plan.problem;
    if (f.splits > 1 || !f.mask_map.obstacle) return false;
    if (p.mask.present || p.bias.present || p.dropout_mask.present || p.heads_kv > kHalfWord) return false;
    const bool keys_by_table = p.packed_rows_kv || p.page_size;
    return heads_go_on(p.q, p.heads_q, p.packed_rows_q) && heads_go_on(p.o, p.heads_q, p.packed_rows_q) &&
           heads_go_on(p.k, p.heads_kv, keys_by_table) && heads_go_on(p.v, p.heads_kv, keys_by_table);
}

FoveaResult check_block(const FoveaPlan_T& plan, const FlashPlan& f, const BlockGrid& g, double max_cost,
                        FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const VulkanLimits limits(plan.properties, diag);
    if (g.block_batches > 1 && !entries_may_share(plan, f)) return FOVEA_LIMIT_EXCEEDED;
    const uint64_t heads_q = uint64_t{g.block_heads} * p.group, rows = g.block_rows * p.group;
    const FlashNeeds needs = needs_of(plan, f, g);
    FoveaResult r;
    if ((r = check_windows(p, {g.block_batches, heads_q, g.block_heads, g.block_rows}, limits))) return r;
    if ((r = check_rotations(plan, {0, g.block_batches, 0, uint32_t(heads_q), 0, g.block_rows}, limits)))
        return r;
    if ((r = limits.groups(ceil_div(rows, f.rows), flash_column_blocks(plan),
                           uint64_t{g.block_batches} * g.block_heads * f.splits)))
        return r;
    if (f.splits > 1) {
        if ((r = limits.groups(rows, ceil_div(p.dim_v, shader::kElementThreads), g.block_heads))) return r;
        if ((r = limits.window(FOVEA_BIND_WORKSPACE, needs.partial_end - needs.partial_offset))) return r;
    }
    if (!f.mask_map.obstacle && (r = limits.groups(ceil_div(rows, f.rows), f.mask_map.words, g.block_heads)))
        return r;
    if ((r = limits.window(FOVEA_BIND_WORKSPACE, needs.extra_end - f.extra_offset))) return r;
    if ((r = limits.workspace(needs.workspace, p.workspace_limit))) return r;
    return limits.cost(needs.cost, max_cost);
}

// True if no descriptor shows what another slice writes too: only then can slices go without a barrier.
bool results_are_apart(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    if (p.packed_rows_q) return false;
    BlockGrid grid = plan.vulkan.grid;
    grid.heads *= p.group, grid.block_heads *= p.group;
    const uint64_t alignment = window_alignment(plan.properties), rows = uint64_t(p.len_q);
    const FoveaStrides lse{int64_t(p.heads_q * rows), int64_t(rows), 1};
    return (!wants(p, FOVEA_OUTPUT_O) ||
            windows_are_apart(p.o, grid, p.dim_v, dtype_bytes(p.o_type), alignment)) &&
           (!wants(p, FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_ROW_STATS) ||
            windows_are_apart(lse, grid, 1, 4, alignment));
}

void fill_flash_costs(FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const FlashPlan& f = plan.vulkan.flash;
    const FlashNeeds needs = needs_of(plan, f, plan.vulkan.grid);
    FoveaPlanInfo& info = plan.info;
    info.dispatches_per_slice = 1 + gathered_count(plan) + (f.has_extra ? 1 : 0) +
                                (f.mask_map.obstacle ? 0 : 1) + (f.splits > 1 ? 1 : 0) +
                                rotation_count(plan.vulkan);
    info.workspace_bytes = needs.workspace;
    info.workspace_alignment = kWorkspaceAlignment;
    info.slice_count = plan.vulkan.grid.count();
    info.slices_share_workspace =
        info.slice_count > 1 &&
        (f.has_extra || f.splits > 1 || rotation_count(plan.vulkan) || !results_are_apart(plan));
    info.total_pairs = double(p.batch) * p.heads_q * double(p.len_q) * double(p.len_kv);
    const uint32_t queries = std::max(1u, f.rows / p.group);
    info.visited_pairs = pairs_of_tiles(p, queries, f.block_keys, plan.vulkan.visible.key_limit);
    info.flops = 2.0 * (p.dim_qk + p.dim_v) * info.visited_pairs;
    info.max_slice_flops = needs.cost;
}

// Plans splits, slices and costs for the chosen workgroup shape.
FoveaResult plan_one_pass(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    FlashPlan& f = plan.vulkan.flash;
    BlockGrid& grid = plan.vulkan.grid;
    FoveaResult r;
    for (const Shader shader : {Shader::flash_extra, Shader::gather, Shader::flash_combine})
        if ((r = require_shader(shader, diag))) return r;
    f.quads = score_rows_are_quads(p) && value_rows_are_quads(p);
    f.has_extra = gathered_count(plan) || needs_extra(p);
    f.extra_offset = workspace_head_bytes(plan.properties);
    f.mask_map.offset = f.extra_offset + (f.has_extra ? 4 * shader::kMaskMapWord : 0);
    grid = BlockGrid{p.batch, p.heads_kv, uint64_t(p.len_q), p.batch, p.heads_kv, uint64_t(p.len_q)};
    if (p.len_q == 0) return FOVEA_OK;
    const uint64_t heads = uint64_t{p.batch} * p.heads_kv;
    set_splits(plan, f, choose_splits(plan, f, uint64_t(p.len_q), heads));
    const double max_cost = slice_cost(plan);
    const auto fits = [&](const BlockGrid& g) {
        return check_block(plan, f, g, max_cost, nullptr) == FOVEA_OK;
    };
    const uint64_t step = std::max(1u, f.rows / p.group);
    if (!shrink_to_fit(grid, step, fits))
        if ((r = check_block(plan, f, grid, refusing_slice_cost(plan), diag))) return r;
    const FlashNeeds needs = needs_of(plan, f, grid);
    f.partial_offset = needs.partial_offset;
    place_rotated(plan.vulkan, needs.workspace - rotated_bytes(plan.vulkan));
    fill_flash_costs(plan);
    return FOVEA_OK;
}

}  // namespace

Gathering flash_gathering(const FoveaPlan_T& plan, const FlashPlan& f, const BlockGrid& grid) {
    const BlockShape shape{1, uint64_t{grid.block_heads} * plan.problem.group, grid.block_heads,
                           grid.block_rows};
    const uint64_t map_bytes = mask_map_bytes(plan, f, grid.block_heads, grid.block_rows);
    return {plan, shape, f.extra_offset, f.mask_map.offset + map_bytes};
}

bool flash_is_general(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    return shares_pipelines(plan) || has_logit_steps(p) || (plan.vulkan.visible.flags & shader::kFlagSparse);
}

Shader flash_shader(const FlashPlan& f) {
    switch (f.form) {
        case FlashForm::loads:
            return Shader::flash;
        case FlashForm::subgroup:
            return Shader::flash_subgroup;
        case FlashForm::shuffle:
            return Shader::flash_shuffle;
        case FlashForm::coopmat:
            return Shader::flash_coopmat;
        case FlashForm::coopmat2:
            break;
    }
    return Shader::flash_coopmat2;
}

uint64_t partial_row_bytes(const Problem& p) {
    const uint32_t stats = wants(p, FOVEA_OUTPUT_ROW_STATS) ? shader::kPartialStatsWords : 0;
    return 4 * (uint64_t{shader::kPartialWords} + p.dim_v + stats);
}

uint32_t flash_column_blocks(const FoveaPlan_T& plan) {
    return uint32_t(ceil_div(plan.problem.dim_v, plan.vulkan.flash.columns));
}

const char* flash_obstacle(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    if (p.outputs & kMatrixOutputs) return "it does not support matrix outputs, and one is requested";
    if (p.group > kHalfWord) return "more than 65535 query heads share a key/value head";
    if (p.dim_qk > kHalfWord || p.dim_v > kHalfWord) return "dim_qk or dim_v is above 65535";
    if (!wants(p, FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_ROW_STATS))
        return "none of o, lse and row statistics is requested";
    return nullptr;
}

FoveaResult plan_flash(FoveaPlan_T& plan, FoveaDiag* diag) {
    FlashPlan& f = plan.vulkan.flash;
    choose_shape(plan, f);
    if (FoveaResult r = require_shader(flash_shader(f), diag)) return r;
    choose_mask_map(plan, f);
    return plan_one_pass(plan, diag);
}

FoveaResult plan_flash_coopmat(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (FoveaResult r = require_shader(Shader::flash_coopmat, diag)) return r;
    if (!choose_matrix_shape(plan, plan.vulkan.flash))
        return fail(
            diag, FOVEA_LIMIT_EXCEEDED, "properties.max_shared_bytes",
            "properties.max_shared_bytes is %u; flash_coopmat needs more for dim_qk %u, or its workgroups "
            "do not fit",
            plan.properties.max_shared_bytes, plan.problem.dim_qk);
    plan.vulkan.flash.mask_map = {"flash_coopmat has no use for one", false, 0, 0};
    return plan_one_pass(plan, diag);
}

FoveaResult plan_flash_coopmat2(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (FoveaResult r = require_shader(Shader::flash_coopmat2, diag)) return r;
    if (!choose_flexible_shape(plan, plan.vulkan.flash))
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "properties.max_shared_bytes",
                    "properties.max_shared_bytes is %u and properties.coopmat2_max_side %u; flash_coopmat2 "
                    "needs more for "
                    "dim_qk %u, or its workgroups do not fit",
                    plan.properties.max_shared_bytes, plan.properties.coopmat2_max_side, plan.problem.dim_qk);
    plan.vulkan.flash.mask_map = {"flash_coopmat2 has no use for one", false, 0, 0};
    return plan_one_pass(plan, diag);
}

void explain_flash(const FoveaPlan_T& plan, TextSink& text) {
    const FlashPlan& f = plan.vulkan.flash;
    const BlockGrid& g = plan.vulkan.grid;
    if (f.form == FlashForm::coopmat)
        text.line("matrices of %u x %u x %u in %s, %u subgroups of %u, depth %u", plan.properties.coopmat_m,
                  plan.properties.coopmat_n, plan.properties.coopmat_k,
                  plan.problem.precision == FOVEA_PRECISION_BF16_INPUTS ? "bfloat16" : "float16", f.subgroups,
                  f.threads / f.subgroups, f.depth);
    text.line(
        "tiles of %u rows x %u keys, %u value columns, %u threads%s, %s", f.rows, f.block_keys, f.columns,
        f.threads, f.measured ? " (measured on this device)" : "",
        f.quads ? "four elements at a time" : "single elements (a dim or a stride is not a multiple of 4)");
    if (f.form == FlashForm::coopmat2)
        text.line("each tile's matrices belong to its %s, float16 inputs, depth %u",
                  f.subgroup_size ? "subgroup" : "workgroup", f.depth);
    if (f.form == FlashForm::shuffle)
        text.line(
            "a workgroup is a subgroup of %u, which exchanges values by shuffles: loads are slow on a "
            "software driver",
            f.subgroup_size);
    if (f.form == FlashForm::subgroup)
        text.line("a workgroup is a subgroup of %u, row maxima by subgroup operations", f.subgroup_size);
    if (f.form == FlashForm::loads) text.line("row maxima through shared memory: %s", f.no_subgroup);
    if (plan.problem.group > 1)
        text.line("the %u query heads of a key/value head share its loads", plan.problem.group);
    if (f.splits > 1) text.line("keys in %u splits of %u, merged by lse", f.splits, f.split_keys);
    if (plan.problem.mask.present || plan.problem.bias.present) explain_mask_map(f.mask_map, text);
    if (f.has_extra) text.line("parameters of masks, pages and dropout go through the workspace");
    text.line("a slice: %u batch %s x %u key/value heads x %llu queries", g.block_batches,
              g.block_batches == 1 ? "entry" : "entries", g.block_heads,
              static_cast<unsigned long long>(g.block_rows));
}

}  // namespace fovea

#include "plan/vulkan/kernels.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan/attention.hpp"
#include "plan/vulkan/costs.hpp"
#include "plan/vulkan/dispatch.hpp"
#include "plan/vulkan/limits.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"
#include "problem/visibility.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

using shader::kKeyBlock;

void choose_tiles(const FoveaPlan_T& plan, StagedPlan& s) {
    const Problem& p = plan.problem;
    // No tile spans more than half of a window, so that the window's ragged ends cost no more than half
    // again.
    const uint64_t keys = keys_of_rows(p, plan.vulkan.visible, 1);
    const bool windowed = keys < uint64_t(p.len_kv);
    s.score_tile =
        choose_tile({uint64_t(p.len_q), windowed ? (keys + 1) / 2 : keys, plan.properties.device_class});
    s.sum_tile = choose_tile({uint64_t(p.len_q), p.dim_v, plan.properties.device_class});
    s.score_quads = score_rows_are_quads(p);
    s.sum_quads = value_rows_are_quads(p);
    s.has_softmax = (p.outputs & ~uint32_t{FOVEA_OUTPUT_SCORES}) != 0;
    const bool software = plan.properties.device_class == FOVEA_CLASS_CPU;
    s.softmax_threads = software ? 8 : shader::kSoftmaxMaxThreads;
    s.row_threads = software ? 8 : p.len_kv > 1024 ? shader::kSoftmaxMaxThreads : 32;
}

// A block of heads_q heads touches this many key/value heads at most.
uint64_t kv_heads_of(const Problem& p, uint64_t heads) {
    if (heads % p.group == 0) return heads / p.group;
    if (p.group % heads == 0) return 1;
    return std::min<uint64_t>(p.heads_kv, (heads - 1) / p.group + 2);
}

uint64_t score_stride_of(const Problem& p, const VulkanVisibility& visible, uint64_t rows) {
    const uint64_t keys =
        std::min<uint64_t>(keys_of_rows(p, visible, rows) + kKeyBlock - 1, uint64_t(p.len_kv));
    return align_up(keys, 4);
}

// ==== limits ====

// Computes the needs of a block of one shape and checks them against the device and the caller's budgets.
class BlockNeeds {
  public:
    BlockNeeds(const FoveaPlan_T& plan, const BlockGrid& grid, FoveaDiag* diag)
        : plan_(plan), p(plan.problem), s(plan.vulkan.staged), g(grid), limits_(plan.properties, diag) {
        rows_ = uint64_t{g.block_batches} * g.block_heads * g.block_rows;
        const VulkanVisibility& visible = plan.vulkan.visible;
        stride_ = score_stride_of(p, visible, g.block_rows);
        const uint64_t keys = std::max<uint64_t>(keys_of_rows(p, visible, g.block_rows), 1);
        cost_ = 2.0 * (p.dim_qk + p.dim_v) * double(rows_) * double(keys);
    }

    FoveaResult check(double max_cost) const {
        const BlockShape shape{g.block_batches, g.block_heads, kv_heads_of(p, g.block_heads), g.block_rows};
        if (FoveaResult r = check_windows(p, shape, limits_)) return r;
        if (FoveaResult r = check_outputs()) return r;
        if (FoveaResult r = check_groups()) return r;
        if (FoveaResult r = limits_.workspace(workspace_bytes(), p.workspace_limit)) return r;
        return limits_.cost(cost_, max_cost);
    }

    uint64_t rows() const { return rows_; }
    double cost() const { return cost_; }
    uint64_t scores_offset() const {
        return align_up(workspace_head_bytes(plan_.properties) + rows_ * 4, kWorkspaceAlignment);
    }
    uint64_t workspace_bytes() const { return staged_gathering(plan_, g, extra_offset()).end(); }
    // Offset after the scores, if there is anything to gather.
    uint64_t extra_offset() const {
        const uint64_t end = scores_offset() + rows_ * stride_ * 4;
        return gathered_count(plan_) ? align_up(end, kWorkspaceAlignment) : end;
    }

  private:
    // Returns the extent of a block's rows in results that are packed by (b, h, i).
    uint64_t result_rows() const {
        return (uint64_t{g.block_batches - 1} * p.heads_q + g.block_heads - 1) * uint64_t(p.len_q) +
               g.block_rows;
    }

    FoveaResult check_outputs() const {
        FoveaResult r;
        const std::pair<uint32_t, FoveaBinding> matrices[] = {{FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES},
                                                              {FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED},
                                                              {FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED},
                                                              {FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS}};
        const uint64_t row_bytes = uint64_t(p.len_kv) * 4;
        for (const auto& [output, binding] : matrices)
            if (wants(p, output) &&
                (r = limits_.window(binding, result_rows() * row_bytes + limits_.alignment())))
                return r;
        if ((r = limits_.window(FOVEA_BIND_WORKSPACE, workspace_bytes() - extra_offset()))) return r;
        return limits_.window(FOVEA_BIND_WORKSPACE, std::max(rows_ * stride_ * 4, rows_ * 4));
    }

    FoveaResult check_groups() const {
        const uint64_t entries = uint64_t{g.block_batches} * g.block_heads;
        const uint64_t softmax_rows = s.softmax_threads / s.row_threads;
        FoveaResult r;
        if ((r = limits_.groups(ceil_div(stride_, s.score_tile.columns),
                                ceil_div(g.block_rows, s.score_tile.rows), entries)))
            return r;
        if ((r = limits_.groups(ceil_div(g.block_rows, softmax_rows), entries, 1))) return r;
        return limits_.groups(ceil_div(p.dim_v, s.sum_tile.columns), ceil_div(g.block_rows, s.sum_tile.rows),
                              entries);
    }

    const FoveaPlan_T& plan_;
    const Problem& p;
    const StagedPlan& s;
    const BlockGrid& g;
    VulkanLimits limits_;
    uint64_t rows_, stride_;
    double cost_;
};

FoveaResult check_shaders(const FoveaPlan_T& plan, FoveaDiag* diag) {
    const bool shared = plan.vulkan.staged.score_tile.shared;
    FoveaResult r;
    if ((r = require_shader(shared ? Shader::scores_shared : Shader::scores_direct, diag))) return r;
    for (const Shader shader : {Shader::softmax, Shader::flash_extra, Shader::gather})
        if ((r = require_shader(shader, diag))) return r;
    return require_shader(staged_sum_shader(plan), diag);
}

void fill_staged_costs(FoveaPlan_T& plan, const BlockNeeds& needs) {
    const Problem& p = plan.problem;
    const StagedPlan& s = plan.vulkan.staged;
    FoveaPlanInfo& info = plan.info;
    info.dispatches_per_slice = gathered_count(plan) + (gathered_count(plan) ? 1 : 0) +
                                (p.len_kv > 0 ? 1 : 0) + (s.has_softmax ? 1 : 0) +
                                (wants(p, FOVEA_OUTPUT_O) ? 1 : 0);
    info.workspace_bytes = needs.workspace_bytes();
    info.workspace_alignment = kWorkspaceAlignment;
    info.slice_count = plan.vulkan.grid.count();
    info.slices_share_workspace = info.slice_count > 1;
    info.total_pairs = double(p.batch) * p.heads_q * double(p.len_q) * double(p.len_kv);
    info.visited_pairs =
        (plan.vulkan.visible.flags & shader::kFlagAllKeys)
            ? info.total_pairs
            : pairs_of_tiles(p, s.score_tile.rows, s.score_tile.columns, plan.vulkan.visible.key_limit);
    info.flops = 2.0 * (p.dim_qk + p.dim_v) * info.visited_pairs;
    info.max_slice_flops = needs.cost();
}

}  // namespace

Gathering staged_gathering(const FoveaPlan_T& plan, const BlockGrid& g, uint64_t extra_offset) {
    const uint64_t extra_bytes = gathered_count(plan) ? sizeof(shader::FlashExtra) : 0;
    return {plan,
            {g.block_batches, g.block_heads, kv_heads_of(plan.problem, g.block_heads), g.block_rows},
            extra_offset,
            extra_offset + extra_bytes};
}

Shader staged_sum_shader(const FoveaPlan_T& plan) {
    return plan.vulkan.staged.sum_tile.shared ? Shader::weighted_sum_shared : Shader::weighted_sum_direct;
}

FoveaResult plan_staged(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    StagedPlan& s = plan.vulkan.staged;
    choose_tiles(plan, s);
    if (FoveaResult r = check_shaders(plan, diag)) return r;
    BlockGrid& grid = plan.vulkan.grid;
    grid = BlockGrid{p.batch, p.heads_q, uint64_t(p.len_q), p.batch, p.heads_q, uint64_t(p.len_q)};
    if (p.len_q == 0) return FOVEA_OK;
    const double max_cost = slice_cost(plan);
    const auto fits = [&](const BlockGrid& g) {
        return BlockNeeds(plan, g, nullptr).check(max_cost) == FOVEA_OK;
    };
    const uint64_t row_step = std::max(s.score_tile.rows, s.sum_tile.rows);
    if (!shrink_to_fit(grid, row_step, fits))
        if (FoveaResult r = BlockNeeds(plan, grid, diag).check(refusing_slice_cost(plan))) return r;
    const BlockNeeds needs(plan, grid, nullptr);
    s.score_stride = uint32_t(score_stride_of(p, plan.vulkan.visible, grid.block_rows));
    s.row_scale_offset = workspace_head_bytes(plan.properties);
    s.scores_offset = needs.scores_offset();
    s.extra_offset = needs.extra_offset();
    fill_staged_costs(plan, needs);
    return FOVEA_OK;
}

void explain_staged(const FoveaPlan_T& plan, TextSink& text) {
    const StagedPlan& s = plan.vulkan.staged;
    const BlockGrid& g = plan.vulkan.grid;
    const auto tile = [&](const char* name, const TileChoice& t, bool quads) {
        text.line(
            "%s: tiles of %u x %u, %u threads, %s, %s", name, t.rows, t.columns, t.threads,
            t.shared ? "in shared memory" : "straight from the buffers",
            quads ? "four elements at a time" : "single elements (dim or a stride is not a multiple of 4)");
    };
    tile("scores", s.score_tile, s.score_quads);
    text.line("softmax: %u threads for each row", s.row_threads);
    tile("weighted sum", s.sum_tile, s.sum_quads);
    text.line("a slice: %u batch entries x %u heads x %llu rows, score rows of %u keys", g.block_batches,
              g.block_heads, static_cast<unsigned long long>(g.block_rows), s.score_stride);
}

}  // namespace fovea

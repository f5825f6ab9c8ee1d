#include "plan/vulkan_staged.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan_costs.hpp"
#include "plan/vulkan_dispatch.hpp"
#include "plan/vulkan_limits.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"
#include "problem/visibility.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

using shader::kKeyBlock;

constexpr uint32_t kMatrixOutputs =
    FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS;

// ==== choices ====

uint32_t flags_of(const Problem& p) {
    uint32_t flags = 0;
    const auto set = [&](bool on, uint32_t flag) { flags |= on ? flag : 0u; };
    set(p.batch_table, shader::kFlagBatchTable);
    set(p.align == FOVEA_ALIGN_BOTTOM_RIGHT, shader::kFlagBottomRight);
    set(p.packed_rows_q != 0, shader::kFlagPackedQ);
    set(p.packed_rows_kv != 0, shader::kFlagPackedKv);
    set(wants(p, FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED), shader::kFlagAllKeys);
    set(p.page_size != 0, shader::kFlagPaged);
    set(p.mask.present, shader::kFlagMask);
    set(p.bias.present, shader::kFlagBias);
    set(p.bias.present && p.bias.type == FOVEA_F16, shader::kFlagBiasF16);
    set(p.alibi, shader::kFlagAlibi);
    set(p.sinks, shader::kFlagSinks);
    set(p.keep.present, shader::kFlagKeepMatrix);
    set(p.dropout && !p.keep.present, shader::kFlagPhilox);
    set(wants(p, FOVEA_OUTPUT_SCORES), shader::kFlagScores);
    set(wants(p, FOVEA_OUTPUT_CAPPED), shader::kFlagCapped);
    set(wants(p, FOVEA_OUTPUT_MASKED), shader::kFlagMasked);
    set(wants(p, FOVEA_OUTPUT_WEIGHTS), shader::kFlagWeights);
    set(wants(p, FOVEA_OUTPUT_LSE), shader::kFlagLse);
    set(wants(p, FOVEA_OUTPUT_ROW_STATS), shader::kFlagRowStats);
    set(p.mask.present || p.bias.present || p.dropout || p.page_size, shader::kFlagSparse);
    return flags;
}

uint32_t window_of(int64_t window) { return uint32_t(std::min<int64_t>(window, shader::kUnboundedWindow)); }

void choose_visibility(const Problem& p, StagedPlan& s) {
    s.flags = flags_of(p);
    s.offset = int32_t(p.q_offset);
    s.window_left = window_of(p.window_left);
    s.window_right = p.causal ? 0 : window_of(p.window_right);
    int64_t limit = p.len_kv;
    if (p.mask.present) limit = std::min(limit, p.mask.keys);
    if (p.bias.present) limit = std::min(limit, p.bias.keys);
    s.key_limit = uint32_t(limit);
}

void choose_tiles(const FoveaPlan_T& plan, StagedPlan& s) {
    const Problem& p = plan.problem;
    const TileWish wish{uint64_t(p.len_q), uint64_t(p.len_kv), plan.facts.device_class};
    s.score_tile = choose_tile(wish);
    s.sum_tile = choose_tile({uint64_t(p.len_q), p.dim_v, plan.facts.device_class});
    const uint64_t rows_q = uint64_t(p.packed_rows_q ? p.packed_rows_q : p.len_q);
    const uint64_t rows_kv =
        p.page_size ? p.page_size : uint64_t(p.packed_rows_kv ? p.packed_rows_kv : p.len_kv);
    const uint64_t entries_kv = p.page_size ? p.page_count : p.batch;
    s.score_quads = rows_are_quads(p.q, p.batch, p.heads_q, rows_q, p.dim_qk) &&
                    rows_are_quads(p.k, entries_kv, p.heads_kv, rows_kv, p.dim_qk);
    s.sum_quads = rows_are_quads(p.v, entries_kv, p.heads_kv, rows_kv, p.dim_v);
    s.has_softmax = (p.outputs & ~uint32_t{FOVEA_OUTPUT_SCORES}) != 0;
    const bool software = plan.facts.device_class == FOVEA_CLASS_CPU;
    s.softmax_threads = software ? 8 : shader::kSoftmaxMaxThreads;
    s.row_threads = software ? 8 : p.len_kv > 1024 ? shader::kSoftmaxMaxThreads : 32;
}

// Keys that a block of `rows` query rows may see, at most.
uint64_t keys_of_rows(const Problem& p, const StagedPlan& s, uint64_t rows) {
    if (s.flags & shader::kFlagAllKeys) return uint64_t(p.len_kv);
    if (s.window_left == shader::kUnboundedWindow || s.window_right == shader::kUnboundedWindow)
        return s.key_limit;
    return std::min<uint64_t>(s.key_limit, uint64_t{s.window_left} + s.window_right + rows);
}

// A block of heads_q heads touches this many key/value heads at most.
uint64_t kv_heads_of(const Problem& p, uint64_t heads) {
    if (heads % p.group == 0) return heads / p.group;
    if (p.group % heads == 0) return 1;
    return std::min<uint64_t>(p.heads_kv, (heads - 1) / p.group + 2);
}

uint64_t score_stride_of(const Problem& p, const StagedPlan& s, uint64_t rows) {
    const uint64_t keys = std::min<uint64_t>(keys_of_rows(p, s, rows) + kKeyBlock - 1, uint64_t(p.len_kv));
    return align_up(keys, 4);
}

// ==== limits ====

// What a block of one shape needs of the device and of the caller's budgets.
class BlockNeeds {
  public:
    BlockNeeds(const FoveaPlan_T& plan, const StagedPlan& staged, const BlockGrid& grid, FoveaDiag* diag)
        : p(plan.problem), s(staged), g(grid), limits_(plan.facts, diag) {
        rows_ = uint64_t{g.block_batches} * g.block_heads * g.block_rows;
        stride_ = score_stride_of(p, s, g.block_rows);
        cost_ = 2.0 * (p.dim_qk + p.dim_v) * double(rows_) *
                double(std::max<uint64_t>(keys_of_rows(p, s, g.block_rows), 1));
    }

    FoveaResult check(double max_cost) const {
        if (FoveaResult r = check_inputs()) return r;
        if (FoveaResult r = check_outputs()) return r;
        if (FoveaResult r = check_groups()) return r;
        if (FoveaResult r = limits_.workspace(workspace_bytes(), p.workspace_limit)) return r;
        return limits_.cost(cost_, max_cost);
    }

    uint64_t rows() const { return rows_; }
    double cost() const { return cost_; }
    uint64_t scores_offset() const { return align_up(kWorkspaceHeadBytes + rows_ * 4, kWorkspaceAlignment); }
    uint64_t workspace_bytes() const { return scores_offset() + rows_ * stride_ * 4; }

  private:
    FoveaResult check_tensor(uint32_t binding, const FoveaStrides& strides, uint64_t batches, uint64_t heads,
                             uint64_t rows, uint64_t dim, FoveaDtype type) const {
        if (batches == 0 || heads == 0 || rows == 0 || dim == 0) return FOVEA_OK;
        const uint64_t bytes =
            largest_window(strides, batches, heads, rows, dim, dtype_bytes(type), limits_.alignment());
        return limits_.window(binding, bytes);
    }

    FoveaResult check_query(uint32_t binding, const FoveaStrides& strides, uint64_t dim,
                            FoveaDtype type) const {
        if (p.packed_rows_q)
            return check_tensor(binding, strides, 1, g.block_heads, uint64_t(p.packed_rows_q), dim, type);
        return check_tensor(binding, strides, g.block_batches, g.block_heads, g.block_rows, dim, type);
    }

    FoveaResult check_keys(uint32_t binding, const FoveaStrides& strides, uint64_t dim,
                           FoveaDtype type) const {
        const uint64_t heads = kv_heads_of(p, g.block_heads);
        if (p.page_size) return check_tensor(binding, strides, p.page_count, heads, p.page_size, dim, type);
        if (p.packed_rows_kv)
            return check_tensor(binding, strides, 1, heads, uint64_t(p.packed_rows_kv), dim, type);
        return check_tensor(binding, strides, g.block_batches, heads, uint64_t(p.len_kv), dim, type);
    }

    FoveaResult check_matrix(uint32_t binding, const MatrixView& m) const {
        if (!m.present) return FOVEA_OK;
        return check_tensor(binding, m.strides, g.block_batches, g.block_heads, g.block_rows,
                            uint64_t(m.keys), m.type);
    }

    FoveaResult check_inputs() const {
        FoveaResult r;
        if ((r = check_query(FOVEA_BIND_Q, p.q, p.dim_qk, p.q_type))) return r;
        if ((r = check_keys(FOVEA_BIND_K, p.k, p.dim_qk, p.k_type))) return r;
        if ((r = check_keys(FOVEA_BIND_V, p.v, p.dim_v, p.v_type))) return r;
        if ((r = check_matrix(FOVEA_BIND_MASK, p.mask))) return r;
        if ((r = check_matrix(FOVEA_BIND_BIAS, p.bias))) return r;
        if ((r = check_matrix(FOVEA_BIND_KEEP, p.keep))) return r;
        for (const FoveaBinding whole :
             {FOVEA_BIND_ALIBI, FOVEA_BIND_SINKS, FOVEA_BIND_BATCH_TABLE, FOVEA_BIND_BLOCK_TABLE})
            if ((r = limits_.window(whole, p.binding_bytes[whole]))) return r;
        return FOVEA_OK;
    }

    // Results that are packed by (b, h, i) rows: a block's rows lie next to each other.
    uint64_t result_rows() const {
        return (uint64_t{g.block_batches - 1} * p.heads_q + g.block_heads - 1) * uint64_t(p.len_q) +
               g.block_rows;
    }

    FoveaResult check_outputs() const {
        FoveaResult r;
        if (wants(p, FOVEA_OUTPUT_O) && (r = check_query(FOVEA_BIND_O, p.o, p.dim_v, p.o_type))) return r;
        const std::pair<uint32_t, FoveaBinding> matrices[] = {{FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES},
                                                              {FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED},
                                                              {FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED},
                                                              {FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS}};
        const uint64_t row_bytes = uint64_t(p.len_kv) * 4;
        for (const auto& [output, binding] : matrices)
            if (wants(p, output) &&
                (r = limits_.window(binding, result_rows() * row_bytes + limits_.alignment())))
                return r;
        const uint64_t slack = limits_.alignment() / 4;
        if (wants(p, FOVEA_OUTPUT_LSE) && (r = limits_.window(FOVEA_BIND_LSE, (result_rows() + slack) * 4)))
            return r;
        if (wants(p, FOVEA_OUTPUT_ROW_STATS) &&
            (r = limits_.window(FOVEA_BIND_ROW_STATS, (result_rows() + slack) * sizeof(FoveaRowStats))))
            return r;
        return limits_.window(FOVEA_BIND_COUNT, std::max(rows_ * stride_ * 4, rows_ * 4));
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

    const Problem& p;
    const StagedPlan& s;
    const BlockGrid& g;
    VulkanLimits limits_;
    uint64_t rows_, stride_;
    double cost_;
};

FoveaResult check_features(const FoveaPlan_T& plan, const StagedPlan& s, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    FoveaResult r;
    if (wants(p, FOVEA_OUTPUT_O) && (r = check_stored_type("o_type", p.o_type, plan.facts, diag))) return r;
    const std::pair<const char*, int64_t> lengths[] = {{"len_q", p.len_q},
                                                       {"len_kv", p.len_kv},
                                                       {"packed_rows_q", p.packed_rows_q},
                                                       {"packed_rows_kv", p.packed_rows_kv}};
    for (const auto& [name, length] : lengths)
        if (length >= int64_t{shader::kMaxKernelLength})
            return fail(diag, FOVEA_SIZE_OVERFLOW, name, "%s is %lld; the Vulkan kernels' limit is 2^29",
                        name, static_cast<long long>(length));
    if ((r = require_shader(s.score_tile.shared ? Shader::scores_shared : Shader::scores_direct, diag)))
        return r;
    return require_shader(Shader::softmax, diag);
}

void fill_costs(FoveaPlan_T& plan, const BlockNeeds& needs) {
    const Problem& p = plan.problem;
    const StagedPlan& s = plan.vulkan.staged;
    FoveaPlanInfo& info = plan.info;
    info.kernel = FOVEA_KERNEL_STAGED;
    info.dispatches_per_slice = 3;
    info.workspace_bytes = needs.workspace_bytes();
    info.workspace_alignment = kWorkspaceAlignment;
    info.slice_count = plan.vulkan.grid.count();
    info.slices_share_workspace = info.slice_count > 1;
    info.total_pairs = double(p.batch) * p.heads_q * double(p.len_q) * double(p.len_kv);
    info.visited_pairs = (s.flags & shader::kFlagAllKeys)
                             ? info.total_pairs
                             : pairs_of_tiles(p, s.score_tile.rows, s.score_tile.columns, s.key_limit);
    info.flops = 2.0 * (p.dim_qk + p.dim_v) * info.visited_pairs;
    info.max_slice_flops = needs.cost();
}

}  // namespace

Shader staged_sum_shader(const FoveaPlan_T& plan) {
    const Shader form =
        plan.vulkan.staged.sum_tile.shared ? Shader::weighted_sum_shared : Shader::weighted_sum_direct;
    return storing(form, plan.problem.o_type, plan.facts);
}

FoveaResult plan_staged(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    StagedPlan& s = plan.vulkan.staged;
    choose_visibility(p, s);
    choose_tiles(plan, s);
    if (FoveaResult r = check_features(plan, s, diag)) return r;
    if (FoveaResult r = require_shader(staged_sum_shader(plan), diag)) return r;
    BlockGrid& grid = plan.vulkan.grid;
    grid = BlockGrid{p.batch, p.heads_q, uint64_t(p.len_q), p.batch, p.heads_q, uint64_t(p.len_q)};
    if (p.len_q == 0) {
        plan.info.kernel = FOVEA_KERNEL_STAGED;
        return FOVEA_OK;
    }
    const double max_cost = slice_cost(plan);
    const auto fits = [&](const BlockGrid& g) {
        return BlockNeeds(plan, s, g, nullptr).check(max_cost) == FOVEA_OK;
    };
    const uint64_t row_step = std::max(s.score_tile.rows, s.sum_tile.rows);
    if (!shrink_to_fit(grid, row_step, fits))
        if (FoveaResult r = BlockNeeds(plan, s, grid, diag).check(refusing_slice_cost(plan))) return r;
    const BlockNeeds needs(plan, s, grid, nullptr);
    s.score_stride = uint32_t(score_stride_of(p, s, grid.block_rows));
    s.row_scale_offset = kWorkspaceHeadBytes;
    s.scores_offset = needs.scores_offset();
    fill_costs(plan, needs);
    return FOVEA_OK;
}

void explain_staged(const FoveaPlan_T& plan, TextSink& text) {
    const StagedPlan& s = plan.vulkan.staged;
    const BlockGrid& g = plan.vulkan.grid;
    const auto tile = [&](const char* name, const TileChoice& t, bool quads) {
        text.line(
            "%s: tiles of %u x %u, %u threads, %s, %s", name, t.rows, t.columns, t.threads,
            t.shared ? "in shared memory" : "straight from the buffers",
            quads ? "four elements at a time" : "single elements (dim or a stride is no multiple of 4)");
    };
    tile("scores", s.score_tile, s.score_quads);
    text.line("softmax: %u threads for each row", s.row_threads);
    tile("weighted sum", s.sum_tile, s.sum_quads);
    text.line("a slice: %u batch entries x %u heads x %llu rows, score rows of %u keys", g.block_batches,
              g.block_heads, static_cast<unsigned long long>(g.block_rows), s.score_stride);
}

}  // namespace fovea

#include "plan/vulkan/attention.hpp"

#include "plan/vulkan/shaders.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <utility>

namespace fovea {
namespace {

static_assert(shader::FOVEA_F32 == FOVEA_F32 && shader::FOVEA_F16 == FOVEA_F16 &&
              shader::FOVEA_BF16 == FOVEA_BF16 && shader::FOVEA_F8_E4M3 == FOVEA_F8_E4M3 &&
              shader::FOVEA_F8_E5M2 == FOVEA_F8_E5M2 && shader::FOVEA_Q8_0 == FOVEA_Q8_0 &&
              shader::FOVEA_Q4_0 == FOVEA_Q4_0 && shader::FOVEA_Q4_K == FOVEA_Q4_K &&
              shader::FOVEA_Q5_K == FOVEA_Q5_K && shader::FOVEA_Q6_K == FOVEA_Q6_K &&
              shader::FOVEA_Q4_1 == FOVEA_Q4_1 && shader::FOVEA_Q5_0 == FOVEA_Q5_0 &&
              shader::FOVEA_Q5_1 == FOVEA_Q5_1);

uint32_t flags_of(const Problem& p) {
    uint32_t flags = 0;
    const auto set = [&](bool on, uint32_t flag) { flags |= on ? flag : 0u; };
    set(p.sequences, shader::kFlagVarlen);
    set(p.align == FOVEA_ALIGN_BOTTOM_RIGHT, shader::kFlagBottomRight);
    set(p.packed_rows_q != 0, shader::kFlagPackedQ);
    set(p.packed_rows_kv != 0, shader::kFlagPackedKv);
    set(wants(p, FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED), shader::kFlagAllKeys);
    set(p.page_size != 0, shader::kFlagPaged);
    set(p.mask.present, shader::kFlagMask);
    set(p.bias.present, p.bias.type == FOVEA_F16    ? shader::kBiasF16
                        : p.bias.type == FOVEA_BF16 ? shader::kBiasBf16
                                                    : shader::kBiasF32);
    set(p.alibi, shader::kFlagAlibi);
    set(p.sinks, shader::kFlagSinks);
    set(p.dropout_mask.present, shader::kFlagDropoutMask);
    set(p.dropout && !p.dropout_mask.present, shader::kFlagPhilox);
    set(wants(p, FOVEA_OUTPUT_SCORES), shader::kFlagScores);
    set(wants(p, FOVEA_OUTPUT_CAPPED), shader::kFlagCapped);
    set(wants(p, FOVEA_OUTPUT_MASKED), shader::kFlagMasked);
    set(wants(p, FOVEA_OUTPUT_WEIGHTS), shader::kFlagWeights);
    set(wants(p, FOVEA_OUTPUT_O), shader::kFlagOutput);
    set(wants(p, FOVEA_OUTPUT_LSE), shader::kFlagLse);
    set(wants(p, FOVEA_OUTPUT_ROW_STATS), shader::kFlagRowStats);
    set(p.mask.present || p.bias.present || p.dropout || p.page_size, shader::kFlagSparse);
    return flags;
}

uint32_t window_of(int64_t window) { return uint32_t(std::min<int64_t>(window, shader::kUnboundedWindow)); }

// Extents of k and v: entries (or pages) and rows of each.
std::pair<uint64_t, uint64_t> key_extents(const Problem& p, uint64_t batches) {
    if (p.page_size) return {p.page_count, p.page_size};
    if (p.packed_rows_kv) return {1, uint64_t(p.packed_rows_kv)};
    return {batches, uint64_t(p.len_kv)};
}

std::pair<uint64_t, uint64_t> query_extents(const Problem& p, uint64_t batches, uint64_t rows) {
    if (p.packed_rows_q) return {1, uint64_t(p.packed_rows_q)};
    return {batches, rows};
}

struct Tensor {
    uint32_t binding;
    const FoveaStrides& strides;
    std::pair<uint64_t, uint64_t> extents;
    uint64_t heads, dim;
    FoveaDtype type;
};

FoveaResult check_tensor(const Tensor& t, const VulkanLimits& limits) {
    const auto [batches, rows] = t.extents;
    if (batches == 0 || t.heads == 0 || rows == 0 || t.dim == 0) return FOVEA_OK;
    return limits.window(t.binding, largest_window(t.strides, batches, t.heads, rows, t.dim,
                                                   storage_block(t.type), limits.alignment()));
}

}  // namespace

VulkanVisibility visibility_of(const Problem& p) {
    VulkanVisibility v{};
    v.flags = flags_of(p);
    v.offset = int32_t(p.q_offset);
    v.window_left = window_of(p.window_left);
    v.window_right = p.causal ? 0 : window_of(p.window_right);
    int64_t limit = p.len_kv;
    if (p.mask.present) limit = std::min(limit, p.mask.keys);
    if (p.bias.present) limit = std::min(limit, p.bias.keys);
    v.key_limit = uint32_t(limit);
    return v;
}

uint64_t keys_of_rows(const Problem& p, const VulkanVisibility& v, uint64_t rows) {
    if (v.flags & shader::kFlagAllKeys) return uint64_t(p.len_kv);
    if (v.window_left == shader::kUnboundedWindow || v.window_right == shader::kUnboundedWindow)
        return v.key_limit;
    return std::min<uint64_t>(v.key_limit, uint64_t{v.window_left} + v.window_right + rows);
}

bool score_rows_are_quads(const Problem& p) {
    const auto [batches_q, rows_q] = query_extents(p, p.batch, uint64_t(p.len_q));
    const auto [batches_kv, rows_kv] = key_extents(p, p.batch);
    return rows_are_quads(p.q, batches_q, p.heads_q, rows_q, p.dim_qk) &&
           rows_are_quads(p.k, batches_kv, p.heads_kv, rows_kv, p.dim_qk);
}

bool value_rows_are_quads(const Problem& p) {
    const auto [batches, rows] = key_extents(p, p.batch);
    return rows_are_quads(p.v, batches, p.heads_kv, rows, p.dim_v);
}

FoveaResult check_attention(const FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const std::pair<const char*, int64_t> lengths[] = {{"len_q", p.len_q},
                                                       {"len_kv", p.len_kv},
                                                       {"packed_rows_q", p.packed_rows_q},
                                                       {"packed_rows_kv", p.packed_rows_kv}};
    for (const auto& [name, length] : lengths)
        if (length >= int64_t{shader::kMaxKernelLength})
            return fail(diag, FOVEA_SIZE_OVERFLOW, name, "%s is %lld; the Vulkan kernels' limit is 2^29",
                        name, static_cast<long long>(length));
    if (!wants(p, FOVEA_OUTPUT_O)) return FOVEA_OK;
    return check_stored_type("o_type", p.o_type, plan.properties, diag);
}

FoveaResult check_windows(const Problem& p, const BlockShape& shape, const VulkanLimits& limits) {
    const auto queries = query_extents(p, shape.batches, shape.rows);
    const auto keys = key_extents(p, shape.batches);
    const Tensor tensors[] = {
        {FOVEA_BIND_Q, p.q, queries, shape.heads_q, p.dim_qk, p.q_type},
        {FOVEA_BIND_K, p.k, keys, shape.heads_kv, p.dim_qk, p.k_type},
        {FOVEA_BIND_V, p.v, keys, shape.heads_kv, p.dim_v, p.v_type},
        {FOVEA_BIND_O, p.o, queries, wants(p, FOVEA_OUTPUT_O) ? shape.heads_q : 0, p.dim_v, p.o_type},
    };
    FoveaResult r;
    for (const Tensor& tensor : tensors)
        if ((r = check_tensor(tensor, limits))) return r;
    const std::pair<uint32_t, const MatrixView&> matrices[] = {
        {FOVEA_BIND_MASK, p.mask}, {FOVEA_BIND_BIAS, p.bias}, {FOVEA_BIND_DROPOUT_MASK, p.dropout_mask}};
    for (const auto& [binding, m] : matrices) {
        const Tensor part{binding,       m.strides,        {shape.batches, shape.rows},
                          shape.heads_q, uint64_t(m.keys), m.type};
        if (m.present && (r = check_tensor(part, limits))) return r;
    }
    for (const FoveaBinding whole :
         {FOVEA_BIND_ALIBI, FOVEA_BIND_SINKS, FOVEA_BIND_SEQUENCES, FOVEA_BIND_BLOCK_TABLE})
        if ((r = limits.window(whole, p.binding_bytes[whole]))) return r;
    const uint64_t rows = ((shape.batches - 1) * p.heads_q + shape.heads_q - 1) * uint64_t(p.len_q) +
                          shape.rows + limits.alignment() / 4;
    if (wants(p, FOVEA_OUTPUT_LSE) && (r = limits.window(FOVEA_BIND_LSE, rows * 4))) return r;
    if (!wants(p, FOVEA_OUTPUT_ROW_STATS)) return FOVEA_OK;
    return limits.window(FOVEA_BIND_ROW_STATS, rows * sizeof(FoveaRowStats));
}

BlockWindows::BlockWindows(const FoveaPlan_T& plan, const RowBlock& block)
    : p(plan.problem), block_(block), alignment_(window_alignment(plan.properties)) {
    const uint64_t head = uint64_t{block.first_batch} * p.heads_q + block.first_head;
    const uint64_t last_head = head + uint64_t{block.batches - 1} * p.heads_q + block.heads - 1;
    const uint64_t first = head * uint64_t(p.len_q) + block.first_row;
    const uint64_t end = last_head * uint64_t(p.len_q) + block.first_row + block.rows;
    row_base = uint32_t(first % (alignment_ / 4));
    const uint64_t aligned = first - row_base;
    lse = {aligned * 4, (end - aligned) * 4, 0};
    stats = {aligned * sizeof(FoveaRowStats), (end - aligned) * sizeof(FoveaRowStats), 0};
    matrices = element_window(first * uint64_t(p.len_kv), end * uint64_t(p.len_kv), 4, alignment_);
}

Window BlockWindows::query(const FoveaStrides& strides, uint64_t dim, FoveaDtype type) const {
    RowBlock block = block_;
    if (p.packed_rows_q) {
        block.first_batch = 0, block.batches = 1;
        block.first_row = 0, block.rows = uint64_t(p.packed_rows_q);
    }
    return block_window(strides, block, dim, dtype_bytes(type), alignment_);
}

Window BlockWindows::keys(const FoveaStrides& strides, uint64_t dim, FoveaDtype type) const {
    RowBlock block = block_;
    block.first_head = block_.first_head / p.group;
    block.heads = (block_.first_head + block_.heads - 1) / p.group - block.first_head + 1;
    const auto [batches, rows] = key_extents(p, block_.batches);
    if (p.page_size || p.packed_rows_kv) block.first_batch = 0;
    block.batches = uint32_t(batches);
    block.first_row = 0;
    block.rows = rows;
    return block_window(strides, block, dim, storage_block(type), alignment_);
}

Window BlockWindows::matrix(const MatrixView& m) const {
    return block_window(m.strides, block_, uint64_t(m.keys), dtype_bytes(m.type), alignment_);
}

}  // namespace fovea

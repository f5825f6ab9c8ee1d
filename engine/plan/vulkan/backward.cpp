#include "plan/vulkan/backward.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan/costs.hpp"
#include "plan/vulkan/kernels.hpp"
#include "problem/status.hpp"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

constexpr uint32_t kBackwardThreads = 32;
static_assert(kBackwardThreads <= shader::kFlashMaxThreads);

// Return the cost of a pair in each pass: scores are computed again for each block of columns.
double query_pair(const Problem& p, uint32_t threads) {
    return double(column_blocks(p.dim_qk, threads)) * 2.0 * (p.dim_qk + p.dim_v) + 2.0 * p.dim_qk;
}
double key_pair(const Problem& p, uint32_t threads) {
    const uint64_t blocks = column_blocks(std::max(p.dim_qk, p.dim_v), threads);
    return double(blocks) * 2.0 * (p.dim_qk + 2.0 * p.dim_v) + 2.0 * (p.dim_qk + p.dim_v);
}

// One thread works out a row's delta for each four keys of a bias.
double bias_pair(const Problem& p) { return 2.0 * p.dim_qk + 2.5 * p.dim_v; }
double slope_pair(const Problem& p) { return 2.0 * (p.dim_qk + p.dim_v); }

double bias_slice_cost(const FoveaPlan_T& plan, uint64_t size) {
    const Problem& p = plan.problem;
    const OwnBias own(p, plan.backward);
    const uint64_t rows = own.each_row ? size : uint64_t(p.len_q);
    const uint64_t keys = own.each_row ? uint64_t(p.len_kv) : size;
    const uint64_t seen = std::min(keys, keys_of_rows(p, plan.vulkan.visible, rows));
    return bias_pair(p) * double(rows) * p.group * double(seen) * double(own.sharing());
}
double head_slice_cost(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const uint64_t rows = uint64_t(p.len_q);
    const double keys = double(keys_of_rows(p, plan.vulkan.visible, rows));
    const double row = plan.backward.wants(FOVEA_GRAD_ALIBI) ? slope_pair(p) * keys : 2.0 * p.dim_v;
    return row * double(rows) * p.batch;
}

uint64_t packed_or(int64_t packed, uint64_t rows) { return packed ? uint64_t(packed) : rows; }

FoveaResult check_rows(const Problem& p, const Backward& w, uint64_t rows, const VulkanLimits& limits) {
    const uint64_t query_rows = packed_or(p.packed_rows_q, rows),
                   key_rows = packed_or(p.packed_rows_kv, uint64_t(p.len_kv));
    const struct {
        bool used;
        FoveaBinding binding;
        const FoveaStrides& strides;
        uint64_t heads, rows, dim;
        FoveaDtype type;
    } tensors[] = {
        {true, FOVEA_BIND_O, p.o, p.group, query_rows, p.dim_v, p.o_type},
        {true, FOVEA_BIND_DO, w.d_o, p.group, query_rows, p.dim_v, w.do_type},
        {w.wants(FOVEA_GRAD_Q), FOVEA_BIND_DQ, w.dq, p.group, query_rows, p.dim_qk, w.dq_type},
        {w.wants(FOVEA_GRAD_K), FOVEA_BIND_DK, w.dk, 1, key_rows, p.dim_qk, w.dk_type},
        {w.wants(FOVEA_GRAD_V), FOVEA_BIND_DV, w.dv, 1, key_rows, p.dim_v, w.dv_type},
    };
    for (const auto& t : tensors) {
        if (!t.used || t.rows == 0) continue;
        const uint64_t bytes =
            largest_window(t.strides, 1, t.heads, t.rows, t.dim, dtype_bytes(t.type), limits.alignment());
        if (FoveaResult r = limits.window(t.binding, bytes)) return r;
    }
    const uint64_t lse = (uint64_t{p.group - 1} * uint64_t(p.len_q) + rows) * 4 + limits.alignment();
    if (FoveaResult r = limits.window(FOVEA_BIND_LSE, lse)) return r;
    return check_windows(p, {1, p.group, 1, rows}, limits);
}

FoveaResult check_query_slice(const FoveaPlan_T& plan, uint64_t rows, double cost, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const BackwardPlan& m = plan.vulkan.backward;
    const VulkanLimits limits(plan.properties, diag);
    FoveaResult r;
    if ((r = check_rows(p, plan.backward, rows, limits))) return r;
    if ((r = limits.groups(ceil_div(rows, uint64_t{shader::kBackwardRows}), p.group,
                           column_blocks(p.dim_qk, m.threads))))
        return r;
    const double keys = double(keys_of_rows(p, plan.vulkan.visible, rows));
    return limits.cost(query_pair(p, m.threads) * double(rows) * p.group * keys, cost);
}

FoveaResult check_key_slice(const FoveaPlan_T& plan, uint64_t keys, double cost, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const BackwardPlan& m = plan.vulkan.backward;
    const VulkanLimits limits(plan.properties, diag);
    FoveaResult r;
    if ((r = check_rows(p, plan.backward, uint64_t(p.len_q), limits))) return r;
    if ((r = limits.groups(ceil_div(keys, uint64_t{shader::kBackwardKeys}), 1,
                           column_blocks(std::max(p.dim_qk, p.dim_v), m.threads))))
        return r;
    return limits.cost(key_pair(p, m.threads) * double(p.len_q) * p.group * double(keys), cost);
}

// `size`: rows of the bias, or keys where all queries share one row.
FoveaResult check_bias_slice(const FoveaPlan_T& plan, uint64_t size, double cost, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const OwnBias own(p, plan.backward);
    const VulkanLimits limits(plan.properties, diag);
    const uint64_t rows = own.each_row ? size : 1, keys = own.each_row ? uint64_t(own.matrix.keys) : size;
    FoveaResult r;
    if ((r = check_rows(p, plan.backward, own.each_row ? size : uint64_t(p.len_q), limits))) return r;
    const uint64_t bytes = largest_window(own.matrix.strides, 1, p.group, rows, uint64_t(own.matrix.keys), 4,
                                          limits.alignment());
    if ((r = limits.window(FOVEA_BIND_DBIAS, bytes))) return r;
    if ((r = limits.groups(ceil_div(keys, uint64_t{4} * plan.vulkan.backward.threads), rows,
                           own.each_head ? p.group : 1)))
        return r;
    return limits.cost(bias_slice_cost(plan, size), cost);
}

FoveaResult check_head_slice(const FoveaPlan_T& plan, FoveaDiag* diag) {
    const VulkanLimits limits(plan.properties, diag);
    const uint64_t rows = uint64_t(plan.problem.len_q);
    FoveaResult r;
    if ((r = check_rows(plan.problem, plan.backward, rows, limits))) return r;
    if ((r = limits.groups(ceil_div(rows, uint64_t{shader::kBackwardRows}), 1, 1))) return r;
    return limits.cost(head_slice_cost(plan), refusing_slice_cost(plan));
}

// From the whole down to one tile, by halves.
template <class Check>
FoveaResult choose_slice(const FoveaPlan_T& plan, uint64_t all, uint64_t step, uint64_t& size,
                         FoveaDiag* diag, const Check& check) {
    size = std::max<uint64_t>(all, 1);
    while (check(plan, size, slice_cost(plan), nullptr) != FOVEA_OK) {
        if (size > step) {
            size = ceil_div(size / 2, step) * step;
            continue;
        }
        return check(plan, size, refusing_slice_cost(plan), diag);
    }
    return FOVEA_OK;
}
uint64_t groups_of(const Problem& p) { return uint64_t{p.batch} * p.heads_kv; }

uint64_t most_dispatches(const FoveaPlan_T& plan) {
    const Backward& w = plan.backward;
    const uint64_t each = kBackwardDispatches + gathered_count(plan);
    uint64_t most = each;
    if (wants_bias(w)) most = std::max(most, each * OwnBias(plan.problem, w).sharing());
    if (wants_heads(w)) most = std::max(most, (each + 1) * plan.problem.batch);
    return most;
}

}  // namespace

uint64_t query_slices(const FoveaPlan_T& plan) {
    if (!plan.backward.wants(FOVEA_GRAD_Q)) return 0;
    return groups_of(plan.problem) * ceil_div(uint64_t(plan.problem.len_q), plan.vulkan.backward.slice_rows);
}
uint64_t key_slices(const FoveaPlan_T& plan) {
    if (!wants_keys(plan.backward)) return 0;
    return groups_of(plan.problem) * ceil_div(uint64_t(plan.problem.len_kv), plan.vulkan.backward.slice_keys);
}

uint64_t bias_slices(const FoveaPlan_T& plan) {
    if (!wants_bias(plan.backward)) return 0;
    const OwnBias own(plan.problem, plan.backward);
    return own.batches * own.groups * ceil_div(own.length, plan.vulkan.backward.slice_bias);
}
uint64_t head_slices(const FoveaPlan_T& plan) {
    return wants_heads(plan.backward) ? plan.problem.heads_q : 0;
}

Gathering gathering_of_gradients(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const BackwardPlan& m = plan.vulkan.backward;
    const bool some = plan.backward.gradients == FOVEA_GRAD_Q;
    const uint64_t rows = some ? m.slice_rows : uint64_t(p.len_q);
    return {plan,
            {1, p.group, 1, rows},
            m.extra_offset,
            m.extra_offset + kViewsOffset + sizeof(shader::FlashExtra)};
}
FoveaResult plan_vulkan_backward(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const Backward& w = plan.backward;
    BackwardPlan& m = plan.vulkan.backward;
    FoveaPlanInfo& info = plan.info;
    FoveaResult r;
    if (p.kernel != FOVEA_KERNEL_AUTO && p.kernel != FOVEA_KERNEL_FLASH)
        return fail(diag, FOVEA_UNSUPPORTED, "kernel",
                    "kernel %s has no gradients on Vulkan; auto and flash have", foveaKernelName(p.kernel));
    if ((r = check_attention(plan, diag))) return r;
    for (const Shader shader :
         {Shader::backward_query, Shader::backward_key, Shader::backward_bias, Shader::backward_row,
          Shader::backward_sum, Shader::flash_extra, Shader::gather})
        if ((r = require_shader(shader, diag))) return r;
    for (const auto& [name, dim] : {std::pair{"dim_qk", p.dim_qk}, std::pair{"dim_v", p.dim_v}})
        if (dim > kHalfWord)
            return fail(diag, FOVEA_UNSUPPORTED, name, "%s is %u; the limit of gradients on Vulkan is %u",
                        name, dim, kHalfWord);
    plan.vulkan.visible = visibility_of(p);
    const bool software = plan.properties.device_class == FOVEA_CLASS_CPU;
    m.threads = software ? kSoftwareThreads : kBackwardThreads;
    // A software driver takes a second or more to compile a pipeline: one serves all problems there.
    m.general = software || needs_extra(p) || has_logit_steps(p);
    m.extra_offset = workspace_head_bytes(plan.properties);
    m.slice_rows = m.slice_keys = m.slice_bias = 1;
    if (const uint64_t most = most_dispatches(plan); most > kMaxDispatchesOfSlice)
        return fail(
            diag, FOVEA_UNSUPPORTED, "gradients",
            "gradients is 0x%x: so many entries and heads share a bias, slope or sink that a slice needs "
            "%llu dispatches; the limit on Vulkan is %llu",
            w.gradients, static_cast<unsigned long long>(most),
            static_cast<unsigned long long>(kMaxDispatchesOfSlice));
    if (w.wants(FOVEA_GRAD_Q) && (r = choose_slice(plan, uint64_t(p.len_q), shader::kBackwardRows,
                                                   m.slice_rows, diag, check_query_slice)))
        return r;
    if (wants_keys(w) && (r = choose_slice(plan, uint64_t(p.len_kv), shader::kBackwardKeys, m.slice_keys,
                                           diag, check_key_slice)))
        return r;
    if (wants_bias(w)) {
        const OwnBias own(p, w);
        if ((r = choose_slice(plan, own.length, own.each_row ? 1 : uint64_t{4} * m.threads, m.slice_bias,
                              diag, check_bias_slice)))
            return r;
    }
    if (wants_heads(w) && (r = check_head_slice(plan, diag))) return r;
    m.row_sums_offset = align_up(gathering_of_gradients(plan).end(), kWorkspaceAlignment);
    const uint64_t row_sum_bytes = wants_heads(w) ? std::max<uint64_t>(uint64_t(p.len_q), 1) * 8 : 0;
    info.workspace_bytes = align_up(m.row_sums_offset + row_sum_bytes, kWorkspaceAlignment);
    info.workspace_alignment = kWorkspaceAlignment;
    const VulkanLimits limits(plan.properties, diag);
    if ((r = limits.workspace(info.workspace_bytes, p.workspace_limit))) return r;
    if ((r = limits.window(FOVEA_BIND_WORKSPACE, info.workspace_bytes))) return r;
    info.kernel = FOVEA_KERNEL_FLASH;
    info.dispatches_per_slice = uint32_t(most_dispatches(plan));
    info.slice_count = query_slices(plan) + key_slices(plan) + bias_slices(plan) + head_slices(plan);
    // The views, and descriptors of neighbouring slices that show some of the same words.
    info.slices_share_workspace = info.slice_count > 1;
    info.total_pairs = double(p.batch) * p.heads_q * double(p.len_q) * double(p.len_kv);
    info.visited_pairs = visible_pairs(p, batch_view(p, nullptr, 0)) * p.batch * p.heads_q;
    info.flops = backward_flops(p, w, info.visited_pairs);
    const double keys = double(keys_of_rows(p, plan.vulkan.visible, m.slice_rows));
    const double query = w.wants(FOVEA_GRAD_Q) ? query_pair(p, m.threads) * double(m.slice_rows) * keys : 0;
    const double key = wants_keys(w) ? key_pair(p, m.threads) * double(p.len_q) * double(m.slice_keys) : 0;
    info.max_slice_flops =
        std::max({query * p.group, key * p.group, wants_bias(w) ? bias_slice_cost(plan, m.slice_bias) : 0,
                  wants_heads(w) ? head_slice_cost(plan) : 0});
    snprintf(info.reason, sizeof info.reason,
             "%s%s: gradients in two passes, %u rows against %u keys at a time, no subgroup operations",
             foveaKernelName(info.kernel), p.kernel == FOVEA_KERNEL_FLASH ? " (asked for by name)" : "",
             shader::kBackwardRows, 4 * m.threads);
    return FOVEA_OK;
}

void first_slices_of_backward(const FoveaPlan_T& plan, uint64_t* first) {
    const uint64_t counts[] = {query_slices(plan), key_slices(plan), bias_slices(plan), head_slices(plan)};
    uint64_t slice = 0;
    for (uint32_t n = 0; n < kBackwardParts; ++n) first[n] = slice, slice += counts[n];
}

void explain_vulkan_backward(const FoveaPlan_T& plan, TextSink& text) {
    const BackwardPlan& m = plan.vulkan.backward;
    text.line(
        "workgroups of %u threads for %u queries or %u keys; a slice: %llu queries or %llu keys of one "
        "key/value head",
        m.threads, shader::kBackwardRows, shader::kBackwardKeys,
        static_cast<unsigned long long>(m.slice_rows), static_cast<unsigned long long>(m.slice_keys));
    const Problem& p = plan.problem;
    if (wants_bias(plan.backward)) {
        const OwnBias own(p, plan.backward);
        text.line(
            "a slice of dbias: %llu %s, summed over %llu entries and %llu key/value heads, one after another",
            static_cast<unsigned long long>(m.slice_bias), own.each_row ? "rows" : "keys",
            static_cast<unsigned long long>(own.sharing_batches),
            static_cast<unsigned long long>(own.sharing_groups));
    }
    if (wants_heads(plan.backward))
        text.line(
            "a slice of dalibi and dsinks: one head, a sum for each of %lld rows, added over %u entries",
            static_cast<long long>(p.len_q), p.batch);
}

}  // namespace fovea

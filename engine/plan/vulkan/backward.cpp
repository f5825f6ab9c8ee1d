#include "plan/vulkan/backward.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan/costs.hpp"
#include "plan/vulkan/rows.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

constexpr uint32_t kSoftwareThreads = 16, kThreads = 32;
static_assert(kThreads <= shader::kFlashMaxThreads);
constexpr uint32_t kHalfWord = 0xffff;  // what fits the packed words of BackwardPush
// In the workspace, behind FlashExtra: the views that do not fit the push constants.
constexpr uint64_t kViewsOffset = 4 * shader::kMaskMapWord, kViewWords = 12;
static_assert(kViewWords <= shader::kExtraWords);
constexpr uint32_t kDispatches = 3;  // beside those that gather

bool wants_keys(const Backward& w) { return w.wants(FOVEA_GRAD_K | FOVEA_GRAD_V); }

uint64_t column_blocks(uint64_t columns, uint32_t threads) {
    return ceil_div(columns, uint64_t{4} * threads);
}

// What a pair costs in either pass: scores are computed again for each block of columns.
double query_pair(const Problem& p, uint32_t threads) {
    return double(column_blocks(p.dim_qk, threads)) * 2.0 * (p.dim_qk + p.dim_v) + 2.0 * p.dim_qk;
}
double key_pair(const Problem& p, uint32_t threads) {
    const uint64_t blocks = column_blocks(std::max(p.dim_qk, p.dim_v), threads);
    return double(blocks) * 2.0 * (p.dim_qk + 2.0 * p.dim_v) + 2.0 * (p.dim_qk + p.dim_v);
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
    const VulkanLimits limits(plan.facts, diag);
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
    const VulkanLimits limits(plan.facts, diag);
    FoveaResult r;
    if ((r = check_rows(p, plan.backward, uint64_t(p.len_q), limits))) return r;
    if ((r = limits.groups(ceil_div(keys, uint64_t{shader::kBackwardKeys}), 1,
                           column_blocks(std::max(p.dim_qk, p.dim_v), m.threads))))
        return r;
    return limits.cost(key_pair(p, m.threads) * double(p.len_q) * p.group * double(keys), cost);
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
uint64_t query_slices(const FoveaPlan_T& plan) {
    if (!plan.backward.wants(FOVEA_GRAD_Q)) return 0;
    return groups_of(plan.problem) * ceil_div(uint64_t(plan.problem.len_q), plan.vulkan.backward.slice_rows);
}
uint64_t key_slices(const FoveaPlan_T& plan) {
    if (!wants_keys(plan.backward)) return 0;
    return groups_of(plan.problem) * ceil_div(uint64_t(plan.problem.len_kv), plan.vulkan.backward.slice_keys);
}

// Slices of keys take all rows, those of queries some.
Gathering gathering_of(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const BackwardPlan& m = plan.vulkan.backward;
    const uint64_t rows = wants_keys(plan.backward) ? uint64_t(p.len_q) : m.slice_rows;
    return {plan,
            {1, p.group, 1, rows},
            m.extra_offset,
            m.extra_offset + kViewsOffset + sizeof(shader::FlashExtra)};
}

// The dispatches of one slice: parameters, views, gradients.
class SliceMaker {
  public:
    SliceMaker(const FoveaPlan_T& plan, uint64_t slice)
        : plan_(plan),
          p(plan.problem),
          w(plan.backward),
          m(plan.vulkan.backward),
          gathering_(gathering_of(plan)) {
        of_keys_ = slice >= query_slices(plan);
        if (of_keys_) slice -= query_slices(plan);
        const uint64_t length = uint64_t(of_keys_ ? p.len_kv : p.len_q),
                       size = of_keys_ ? m.slice_keys : m.slice_rows;
        const uint64_t parts = ceil_div(length, size), group = slice / parts;
        first_ = slice % parts * size;
        count_ = std::min(size, length - first_);
        block_ = {uint32_t(group / p.heads_kv),
                  1,
                  uint32_t(group % p.heads_kv) * p.group,
                  p.group,
                  of_keys_ ? 0 : first_,
                  of_keys_ ? uint64_t(p.len_q) : count_};
    }

    void extra(FoveaDispatch& out) const {
        fill_extra(plan_, BlockWindows(plan_, block_), m.extra_offset, gathering_, out);
    }
    void gather(FoveaDispatch* out, uint32_t& count) const {
        gathering_.fill(BlockWindows(plan_, block_), out, count);
    }

    void views(FoveaDispatch& out) const {
        const BlockWindows windows(plan_, block_);
        struct {
            shader::HeadView view[kViewWords / 3];
            uint32_t unused[shader::kExtraWords - kViewWords];
        } push{};
        push.view[shader::kViewO] = head_view(p.o, o(windows));
        push.view[shader::kViewDo] = head_view(w.d_o, d_o(windows));
        if (of_keys_) {
            if (w.wants(FOVEA_GRAD_K)) push.view[shader::kViewFirst] = head_view(w.dk, dk(windows));
            if (w.wants(FOVEA_GRAD_V)) push.view[shader::kViewSecond] = head_view(w.dv, dv(windows));
        } else {
            push.view[shader::kViewFirst] = head_view(w.dq, dq(windows));
        }
        DispatchBuilder d(out, Shader::flash_extra);
        d.output(FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE,
                 {m.extra_offset + kViewsOffset, sizeof(shader::FlashExtra), 0});
        d.spec(FOVEA_SPEC_THREADS, shader::kFlashMaxThreads);
        d.push(push);
        d.groups(1, 1, 1);
    }

    void gradients(FoveaDispatch& out) const {
        DispatchBuilder d(out, of_keys_ ? Shader::backward_key : Shader::backward_query,
                          plan_.vulkan.gathered);
        const BlockWindows windows(plan_, block_);
        const Window q = windows.query(p.q, p.dim_qk, p.q_type), k = windows.keys(p.k, p.dim_qk, p.k_type),
                     v = windows.keys(p.v, p.dim_v, p.v_type);
        d.push(push_of(windows, q, k, v));
        // Without queries or keys there are only zeros to write, and nothing of the other side to bind.
        const bool pairs = p.len_q > 0 && p.len_kv > 0;
        d.input_if(p.len_q > 0, FOVEA_SLOT_Q, FOVEA_BIND_Q, q);
        d.input_if(p.len_kv > 0, FOVEA_SLOT_K, FOVEA_BIND_K, k);
        d.input_if(p.len_kv > 0, FOVEA_SLOT_V, FOVEA_BIND_V, v);
        d.input_if(p.len_q > 0, FOVEA_SLOT_O, FOVEA_BIND_O, o(windows));
        d.input_if(p.len_q > 0, FOVEA_SLOT_DO, FOVEA_BIND_DO, d_o(windows));
        d.input_if(p.len_q > 0, FOVEA_SLOT_LSE, FOVEA_BIND_LSE, windows.lse);
        d.input_if(p.len_q > 0 && w.lse_gradient, FOVEA_SLOT_DLSE, FOVEA_BIND_DLSE, windows.lse);
        if (pairs)
            bind_visibility(d, p, windows);
        else
            bind_whole(d, p, p.batch_table, FOVEA_SLOT_BATCH_TABLE, FOVEA_BIND_BATCH_TABLE);
        d.input(FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE,
                {m.extra_offset, gathering_.end() - m.extra_offset, 0});
        if (of_keys_) {
            result(d, w.wants(FOVEA_GRAD_K), FOVEA_SLOT_DK, FOVEA_BIND_DK, dk(windows));
            result(d, w.wants(FOVEA_GRAD_V), FOVEA_SLOT_DV, FOVEA_BIND_DV, dv(windows));
        } else {
            result(d, true, FOVEA_SLOT_DQ, FOVEA_BIND_DQ, dq(windows));
        }
        if (is_software(plan_.facts) && of_keys_)
            d.stand_in(storage_buffer_limit(plan_.facts), {}, {FOVEA_SLOT_DK, FOVEA_SLOT_DV});
        d.spec(FOVEA_SPEC_THREADS, m.threads);
        d.spec(FOVEA_SPEC_A_TYPE, p.q_type);
        d.spec(FOVEA_SPEC_B_TYPE, p.k_type);
        d.spec(FOVEA_SPEC_ALIGNED, 0);
        d.spec(FOVEA_SPEC_V_TYPE, p.v_type);
        d.call(m.general);
        d.spec(FOVEA_SPEC_O_TYPE, p.o_type);
        d.spec(FOVEA_SPEC_DO_TYPE, w.do_type);
        const uint64_t tile = of_keys_ ? shader::kBackwardKeys : shader::kBackwardRows;
        d.groups(ceil_div(count_, tile), of_keys_ ? 1 : p.group,
                 column_blocks(of_keys_ ? std::max(p.dim_qk, p.dim_v) : p.dim_qk, m.threads));
        d.after_earlier_ones();
    }

  private:
    Window o(const BlockWindows& windows) const { return windows.query(p.o, p.dim_v, p.o_type); }
    Window d_o(const BlockWindows& windows) const { return windows.query(w.d_o, p.dim_v, w.do_type); }
    Window dq(const BlockWindows& windows) const { return windows.query(w.dq, p.dim_qk, w.dq_type); }
    Window dk(const BlockWindows& windows) const { return windows.keys(w.dk, p.dim_qk, w.dk_type); }
    Window dv(const BlockWindows& windows) const { return windows.keys(w.dv, p.dim_v, w.dv_type); }

    // Written in words, types of 16 bits too.
    static void result(DispatchBuilder& d, bool used, uint32_t slot, uint32_t source, Window window) {
        round_for_words(window);
        d.output_if(used, slot, source, window);
    }

    uint32_t store_bits() const {
        uint32_t bits = w.lse_gradient ? shader::kStoreHasDLse : 0;
        const auto set = [&](uint32_t gradient, FoveaDtype type, uint32_t place, uint32_t present) {
            if (!w.wants(gradient)) return;
            bits |= present;
            if (type == FOVEA_F16) bits |= shader::kStoreF16 << place;
            if (type == FOVEA_BF16) bits |= shader::kStoreBf16 << place;
            if (w.adds(gradient)) bits |= shader::kStoreAdds << place;
        };
        if (of_keys_) {
            set(FOVEA_GRAD_K, w.dk_type, 0, shader::kStoreDk);
            set(FOVEA_GRAD_V, w.dv_type, 1, shader::kStoreDv);
        } else {
            set(FOVEA_GRAD_Q, w.dq_type, 0, 0);
        }
        return bits;
    }

    shader::BackwardPush push_of(const BlockWindows& windows, const Window& q, const Window& k,
                                 const Window& v) const {
        shader::BackwardPush push{};
        push.slice = rows_view(plan_, block_);
        push.q = head_view(p.q, q), push.k = head_view(p.k, k), push.v = head_view(p.v, v);
        push.group_splits = 1;
        push.dims = p.dim_qk | p.dim_v << 16;
        push.lse_base = windows.row_base;
        push.scale = p.scale;
        push.logit = logit_view(p);
        push.store = store_bits();
        push.heads = p.group;
        push.first_key = of_keys_ ? uint32_t(first_) : 0;
        push.key_count = of_keys_ ? uint32_t(count_) : 0;
        return push;
    }

    const FoveaPlan_T& plan_;
    const Problem& p;
    const Backward& w;
    const BackwardPlan& m;
    const Gathering gathering_;
    bool of_keys_;
    uint64_t first_, count_;  // rows or keys
    Block block_;
};

}  // namespace

FoveaResult plan_vulkan_backward(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const Backward& w = plan.backward;
    BackwardPlan& m = plan.vulkan.backward;
    FoveaPlanInfo& info = plan.info;
    FoveaResult r;
    constexpr uint32_t kServed = FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;
    if (w.gradients & ~kServed)
        return fail(diag, FOVEA_UNSUPPORTED, "gradients",
                    "gradients is 0x%x: those of bias, slopes and sinks are computed on the CPU",
                    w.gradients);
    if (p.kernel != FOVEA_KERNEL_AUTO && p.kernel != FOVEA_KERNEL_FLASH)
        return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %s has no gradients on Vulkan",
                    foveaKernelName(p.kernel));
    if ((r = check_attention(plan, diag))) return r;
    for (const Shader shader :
         {Shader::backward_query, Shader::backward_key, Shader::flash_extra, Shader::gather})
        if ((r = require_shader(shader, diag))) return r;
    for (const auto& [name, dim] : {std::pair{"dim_qk", p.dim_qk}, std::pair{"dim_v", p.dim_v}})
        if (dim > kHalfWord)
            return fail(diag, FOVEA_UNSUPPORTED, name, "%s is %u; the limit of gradients on Vulkan is %u",
                        name, dim, kHalfWord);
    plan.vulkan.visible = visibility_of(p);
    const bool software = plan.facts.device_class == FOVEA_CLASS_CPU;
    m.threads = software ? kSoftwareThreads : kThreads;
    // Drivers of software take a second or more for a pipeline: one serves all problems there.
    m.general = software || needs_extra(p) || has_logit_steps(p);
    m.extra_offset = workspace_head_bytes(plan.facts);
    m.slice_rows = m.slice_keys = 1;
    if (w.wants(FOVEA_GRAD_Q) && (r = choose_slice(plan, uint64_t(p.len_q), shader::kBackwardRows,
                                                   m.slice_rows, diag, check_query_slice)))
        return r;
    if (wants_keys(w) && (r = choose_slice(plan, uint64_t(p.len_kv), shader::kBackwardKeys, m.slice_keys,
                                           diag, check_key_slice)))
        return r;
    info.workspace_bytes = align_up(gathering_of(plan).end(), kWorkspaceAlignment);
    info.workspace_alignment = kWorkspaceAlignment;
    const VulkanLimits limits(plan.facts, diag);
    if ((r = limits.workspace(info.workspace_bytes, p.workspace_limit))) return r;
    if ((r = limits.window(FOVEA_BIND_WORKSPACE, info.workspace_bytes))) return r;
    info.kernel = FOVEA_KERNEL_FLASH;
    info.dispatches_per_slice = kDispatches + gathered_count(plan);
    info.slice_count = query_slices(plan) + key_slices(plan);
    // The views, and descriptors of neighbouring slices that show some of the same words.
    info.slices_share_workspace = info.slice_count > 1;
    info.total_pairs = double(p.batch) * p.heads_q * double(p.len_q) * double(p.len_kv);
    info.visited_pairs = visible_pairs(p, batch_view(p, nullptr, 0)) * p.batch * p.heads_q;
    info.flops = backward_flops(p, w, info.visited_pairs);
    const double keys = double(keys_of_rows(p, plan.vulkan.visible, m.slice_rows));
    const double query = w.wants(FOVEA_GRAD_Q) ? query_pair(p, m.threads) * double(m.slice_rows) * keys : 0;
    const double key = wants_keys(w) ? key_pair(p, m.threads) * double(p.len_q) * double(m.slice_keys) : 0;
    info.max_slice_flops = std::max(query, key) * p.group;
    snprintf(info.reason, sizeof info.reason,
             "%s%s: gradients in two passes, %u rows against %u keys at a time, no subgroup operations",
             foveaKernelName(info.kernel), p.kernel == FOVEA_KERNEL_FLASH ? " (asked for by name)" : "",
             shader::kBackwardRows, 4 * m.threads);
    return FOVEA_OK;
}

FoveaResult backward_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                           FoveaDiag*) {
    const SliceMaker make(plan, slice);
    count = 0;
    make.extra(out[count++]);
    make.views(out[count++]);
    make.gather(out, count);
    make.gradients(out[count++]);
    return FOVEA_OK;
}

void explain_vulkan_backward(const FoveaPlan_T& plan, TextSink& text) {
    const BackwardPlan& m = plan.vulkan.backward;
    text.line(
        "workgroups of %u threads for %u queries or %u keys; a slice: %llu queries or %llu keys of one "
        "key/value head",
        m.threads, shader::kBackwardRows, shader::kBackwardKeys,
        static_cast<unsigned long long>(m.slice_rows), static_cast<unsigned long long>(m.slice_keys));
}

}  // namespace fovea

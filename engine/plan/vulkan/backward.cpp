#include "plan/vulkan/kernels.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan/costs.hpp"
#include "plan/vulkan/rows.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

constexpr uint32_t kBackwardThreads = 32;
static_assert(kBackwardThreads <= shader::kFlashMaxThreads);
// Offset in the workspace, after FlashExtra, of the views that do not fit the push constants.
constexpr uint64_t kViewsOffset = 4 * shader::kMaskMapWord, kViewWords = 12;
static_assert(kViewWords <= shader::kExtraWords);
constexpr uint32_t kDispatches = 3;  // in addition to the gathering ones

bool wants_keys(const Backward& w) { return w.wants(FOVEA_GRAD_K | FOVEA_GRAD_V); }
bool wants_bias(const Backward& w) { return w.wants(FOVEA_GRAD_BIAS) && w.bias_rows > 0 && w.bias_keys > 0; }
bool wants_heads(const Backward& w) { return w.wants(FOVEA_GRAD_ALIBI | FOVEA_GRAD_SINKS); }

// Describes how the rows of the bias tensor map to entries, heads and queries: slices divide its rows or, if
// all queries share one, its keys.
struct OwnBias {
    OwnBias(const Problem& p, const Backward& w)
        : each_row(w.bias_rows > 1),
          each_head(w.bias_heads > 1),
          batches(w.bias_batch),
          groups(each_head ? p.heads_kv : 1),
          length(uint64_t(each_row ? w.bias_rows : w.bias_keys)),
          sharing_batches(w.bias_batch > 1 ? 1 : p.batch),
          sharing_groups(each_head ? 1 : p.heads_kv) {
        const int64_t row = each_row ? w.bias_keys : 0, head = each_head ? w.bias_rows * w.bias_keys : 0;
        matrix.present = true;
        matrix.type = FOVEA_F32;
        matrix.batch = w.bias_batch, matrix.heads = w.bias_heads;
        matrix.rows = w.bias_rows, matrix.keys = w.bias_keys;
        matrix.strides = {w.bias_batch > 1 ? int64_t(w.bias_heads) * w.bias_rows * w.bias_keys : 0, head,
                          row};
    }
    uint64_t sharing() const { return sharing_batches * sharing_groups; }

    bool each_row, each_head;
    uint64_t batches, groups;                  // slices of each: entries, and groups of heads
    uint64_t length;                           // the divided length: rows or keys
    uint64_t sharing_batches, sharing_groups;  // entries and groups that add to the same elements
    MatrixView matrix{};
};

uint64_t column_blocks(uint64_t columns, uint32_t threads) {
    return ceil_div(columns, uint64_t{4} * threads);
}

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

uint64_t most_dispatches(const FoveaPlan_T& plan) {
    const Backward& w = plan.backward;
    const uint64_t each = kDispatches + gathered_count(plan);
    uint64_t most = each;
    if (wants_bias(w)) most = std::max(most, each * OwnBias(plan.problem, w).sharing());
    if (wants_heads(w)) most = std::max(most, (each + 1) * plan.problem.batch);
    return most;
}

// Slices of queries take some rows, the others all of them.
Gathering gathering_of(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const BackwardPlan& m = plan.vulkan.backward;
    const bool some = plan.backward.gradients == FOVEA_GRAD_Q;
    const uint64_t rows = some ? m.slice_rows : uint64_t(p.len_q);
    return {plan,
            {1, p.group, 1, rows},
            m.extra_offset,
            m.extra_offset + kViewsOffset + sizeof(shader::FlashExtra)};
}

enum class Part { queries, keys, bias, head };

// The dispatches of one slice: parameters, views, gradients; as often as entries or heads share its results.
// A share is filled as a whole.
class BackwardSlice {
  public:
    BackwardSlice(const FoveaPlan_T& plan, uint64_t slice)
        : plan_(plan),
          p(plan.problem),
          w(plan.backward),
          m(plan.vulkan.backward),
          gathering_(gathering_of(plan)) {
        const struct {
            Part part;
            uint64_t slices, length, size;
        } parts[] = {{Part::queries, query_slices(plan), uint64_t(p.len_q), m.slice_rows},
                     {Part::keys, key_slices(plan), uint64_t(p.len_kv), m.slice_keys},
                     {Part::bias, bias_slices(plan), OwnBias(p, w).length, m.slice_bias},
                     {Part::head, head_slices(plan), 1, 1}};
        for (const auto& part : parts) {
            if (slice < part.slices) {
                const uint64_t cuts = ceil_div(part.length, part.size);
                part_ = part.part;
                index_ = slice / cuts;
                first_ = slice % cuts * part.size;
                count_ = std::min(part.size, part.length - first_);
                break;
            }
            slice -= part.slices;
        }
    }

    // From dispatch `first` on, as many whole shares as fit; `first` begins one.
    void fill(uint64_t first, FoveaDispatch* out, uint32_t& count) {
        const uint32_t room = count,
                       each = kDispatches + gathered_count(plan_) + (part_ == Part::head ? 1 : 0);
        const uint64_t sharing = part_ == Part::bias   ? OwnBias(p, w).sharing()
                                 : part_ == Part::head ? p.batch
                                                       : 1;
        count = 0;
        for (share_ = first / each; share_ < sharing && count + each <= room; ++share_) {
            set_block();
            FoveaDispatch& start = out[count++];
            extra(start);
            // The dispatches before it read what it writes anew.
            if (share_ > 0) start.barrier_before = 1;
            views(out[count++]);
            gather(out, count);
            gradients(out[count++]);
            if (part_ == Part::head) sum_of_rows(out[count++]);
        }
    }

  private:
    // Entry, heads and rows of queries of the dispatches to come.
    void set_block() {
        const uint64_t all = uint64_t(p.len_q);
        uint64_t entry = index_ / p.heads_kv, group = index_ % p.heads_kv;
        if (part_ == Part::head) {
            block_ = {uint32_t(share_), 1, uint32_t(index_), 1, 0, all};
            return;
        }
        bool some = part_ == Part::queries;
        if (part_ == Part::bias) {
            const OwnBias own(p, w);
            entry = own.sharing_batches > 1 ? share_ / own.sharing_groups : index_ / own.groups;
            group = own.each_head ? index_ % own.groups : share_ % own.sharing_groups;
            some = own.each_row;
        }
        block_ = {uint32_t(entry),    1, uint32_t(group) * p.group, p.group, some ? first_ : 0,
                  some ? count_ : all};
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
        if (part_ == Part::keys) {
            if (w.wants(FOVEA_GRAD_K)) push.view[shader::kViewFirst] = head_view(w.dk, dk(windows));
            if (w.wants(FOVEA_GRAD_V)) push.view[shader::kViewSecond] = head_view(w.dv, dv(windows));
        } else if (part_ == Part::queries) {
            push.view[shader::kViewFirst] = head_view(w.dq, dq(windows));
        } else if (part_ == Part::bias) {
            push.view[shader::kViewFirst] = matrix_view(OwnBias(p, w).matrix, windows);
        }
        DispatchBuilder d(out, Shader::flash_extra);
        d.output(FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE,
                 {m.extra_offset + kViewsOffset, sizeof(shader::FlashExtra), 0});
        d.spec(FOVEA_SPEC_THREADS, shader::kFlashMaxThreads);
        d.push(push);
        d.groups(1, 1, 1);
    }

    void gradients(FoveaDispatch& out) const {
        DispatchBuilder d(out, shader_of_part(), plan_.vulkan.gathered);
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
            bind_whole(d, p, p.sequences, FOVEA_SLOT_SEQUENCES, FOVEA_BIND_SEQUENCES);
        d.input(FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE,
                {m.extra_offset, gathering_.end() - m.extra_offset, 0});
        bind_results(d, windows);
        d.spec(FOVEA_SPEC_THREADS, m.threads);
        d.spec(FOVEA_SPEC_A_TYPE, p.q_type);
        d.spec(FOVEA_SPEC_B_TYPE, p.k_type);
        d.spec(FOVEA_SPEC_ALIGNED, 0);
        d.spec(FOVEA_SPEC_V_TYPE, p.v_type);
        d.call(m.general);
        d.spec(FOVEA_SPEC_O_TYPE, p.o_type);
        d.spec(FOVEA_SPEC_DO_TYPE, w.do_type);
        set_groups(d);
        d.after_earlier_ones();
    }

    Shader shader_of_part() const {
        switch (part_) {
            case Part::queries:
                return Shader::backward_query;
            case Part::keys:
                return Shader::backward_key;
            case Part::bias:
                return Shader::backward_bias;
            case Part::head:
                break;
        }
        return Shader::backward_row;
    }

    void bind_results(DispatchBuilder& d, const BlockWindows& windows) const {
        switch (part_) {
            case Part::queries:
                return result(d, true, FOVEA_SLOT_DQ, FOVEA_BIND_DQ, dq(windows));
            case Part::keys:
                result(d, w.wants(FOVEA_GRAD_K), FOVEA_SLOT_DK, FOVEA_BIND_DK, dk(windows));
                result(d, w.wants(FOVEA_GRAD_V), FOVEA_SLOT_DV, FOVEA_BIND_DV, dv(windows));
                if (is_software(plan_.properties))
                    d.stand_in(storage_buffer_limit(plan_.properties), {}, {FOVEA_SLOT_DK, FOVEA_SLOT_DV});
                return;
            case Part::bias:
                return d.output(FOVEA_SLOT_DBIAS, FOVEA_BIND_DBIAS, windows.matrix(OwnBias(p, w).matrix));
            case Part::head:
                bind_whole(d, p, w.wants(FOVEA_GRAD_SINKS), FOVEA_SLOT_SINKS, FOVEA_BIND_SINKS);
                return d.output(FOVEA_SLOT_PARTIAL, FOVEA_BIND_WORKSPACE, row_sums());
        }
    }

    void set_groups(DispatchBuilder& d) const {
        switch (part_) {
            case Part::queries:
                return d.groups(ceil_div(count_, uint64_t{shader::kBackwardRows}), p.group,
                                column_blocks(p.dim_qk, m.threads));
            case Part::keys:
                return d.groups(ceil_div(count_, uint64_t{shader::kBackwardKeys}), 1,
                                column_blocks(std::max(p.dim_qk, p.dim_v), m.threads));
            case Part::bias: {
                const OwnBias own(p, w);
                return d.groups(
                    ceil_div(own.each_row ? uint64_t(w.bias_keys) : count_, uint64_t{4} * m.threads),
                    own.each_row ? count_ : 1, own.each_head ? p.group : 1);
            }
            case Part::head:
                return d.groups(ceil_div(row_sum_count(), uint64_t{shader::kBackwardRows}), 1, 1);
        }
    }

    // Runs after the rows of a head. Each batch entry adds to the sums of the entries before it.
    void sum_of_rows(FoveaDispatch& out) const {
        DispatchBuilder d(out, Shader::backward_sum);
        shader::RowSumPush push{uint32_t(p.len_q), uint32_t(index_), 0};
        const bool slope = w.wants(FOVEA_GRAD_ALIBI), sink = w.wants(FOVEA_GRAD_SINKS);
        if (slope) push.store |= shader::kStoreSlope;
        if (sink) push.store |= shader::kStoreSink;
        if (share_ > 0 || w.adds(FOVEA_GRAD_ALIBI)) push.store |= shader::kStoreAdds;
        if (share_ > 0 || w.adds(FOVEA_GRAD_SINKS)) push.store |= shader::kStoreAdds << 1;
        d.input(FOVEA_SLOT_PARTIAL, FOVEA_BIND_WORKSPACE, row_sums());
        bind_result(d, slope, FOVEA_SLOT_DALIBI, FOVEA_BIND_DALIBI);
        bind_result(d, sink, FOVEA_SLOT_DSINKS, FOVEA_BIND_DSINKS);
        if (is_software(plan_.properties))
            d.stand_in(storage_buffer_limit(plan_.properties), {}, {FOVEA_SLOT_DALIBI, FOVEA_SLOT_DSINKS});
        d.spec(FOVEA_SPEC_THREADS, shader::kFlashMaxThreads);
        d.push(push);
        d.groups(1, 1, 1);
        d.after_earlier_ones();
    }
    void bind_result(DispatchBuilder& d, bool used, uint32_t slot, FoveaBinding binding) const {
        d.output_if(used, slot, binding, {0, p.binding_bytes[binding], 0});
    }

    // Two values for each row of one head; at least one row's room.
    uint64_t row_sum_count() const { return std::max<uint64_t>(uint64_t(p.len_q), 1); }
    Window row_sums() const { return {m.row_sums_offset, row_sum_count() * 8, 0}; }

    Window o(const BlockWindows& windows) const { return windows.query(p.o, p.dim_v, p.o_type); }
    Window d_o(const BlockWindows& windows) const { return windows.query(w.d_o, p.dim_v, w.do_type); }
    Window dq(const BlockWindows& windows) const { return windows.query(w.dq, p.dim_qk, w.dq_type); }
    Window dk(const BlockWindows& windows) const { return windows.keys(w.dk, p.dim_qk, w.dk_type); }
    Window dv(const BlockWindows& windows) const { return windows.keys(w.dv, p.dim_v, w.dv_type); }

    // Binds a result that is written in 32-bit words, even if its type has 16 bits.
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
        switch (part_) {
            case Part::queries:
                set(FOVEA_GRAD_Q, w.dq_type, 0, 0);
                break;
            case Part::keys:
                set(FOVEA_GRAD_K, w.dk_type, 0, shader::kStoreDk);
                set(FOVEA_GRAD_V, w.dv_type, 1, shader::kStoreDv);
                break;
            case Part::bias: {
                const OwnBias own(p, w);
                if (own.each_row) bits |= shader::kStoreEachRow;
                if (own.each_head) bits |= shader::kStoreEachHead;
                if (share_ > 0 || w.adds(FOVEA_GRAD_BIAS)) bits |= shader::kStoreAdds;
                break;
            }
            case Part::head:
                if (w.wants(FOVEA_GRAD_ALIBI)) bits |= shader::kStoreSlope;
                if (w.wants(FOVEA_GRAD_SINKS)) bits |= shader::kStoreSink;
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
        if (part_ == Part::keys || part_ == Part::bias)
            push.first_key = uint32_t(first_), push.key_count = uint32_t(count_);
        if (part_ == Part::bias && OwnBias(p, w).each_row)
            push.first_key = 0, push.key_count = uint32_t(w.bias_keys);
        return push;
    }

    const FoveaPlan_T& plan_;
    const Problem& p;
    const Backward& w;
    const BackwardPlan& m;
    const Gathering gathering_;
    Part part_ = Part::queries;
    uint64_t index_ = 0;              // index of the entry and key/value head, bias part, or head
    uint64_t first_ = 0, count_ = 0;  // rows or keys
    uint64_t share_ = 0;              // which of those that add to the same results
    RowBlock block_{};
};

}  // namespace

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
    m.row_sums_offset = align_up(gathering_of(plan).end(), kWorkspaceAlignment);
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

FoveaResult backward_slice(const FoveaPlan_T& plan, uint64_t slice, uint64_t first, FoveaDispatch* out,
                           uint32_t& count, FoveaDiag*) {
    BackwardSlice(plan, slice).fill(first, out, count);
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

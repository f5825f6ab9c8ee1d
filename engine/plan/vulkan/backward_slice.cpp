// The dispatches of a slice of gradients.
#include "plan/vulkan/backward.hpp"

#include "plan/vulkan/kernels.hpp"

#include <algorithm>

namespace fovea {
namespace {

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
          gathering_(gathering_of_gradients(plan)) {
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
                       each = kBackwardDispatches + gathered_count(plan_) + (part_ == Part::head ? 1 : 0);
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

FoveaResult backward_slice(const FoveaPlan_T& plan, uint64_t slice, uint64_t first, FoveaDispatch* out,
                           uint32_t& count, FoveaDiag*) {
    BackwardSlice(plan, slice).fill(first, out, count);
    return FOVEA_OK;
}

}  // namespace fovea

#include "plan/vulkan/attention.hpp"
#include "plan/vulkan/dispatch.hpp"
#include "plan/vulkan/kernels.hpp"
#include "plan/vulkan/rows.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"
#include "shaders/interface.h"

#include <bit>

namespace fovea {
namespace {

// The three dispatches of one block.
class StagedSlice {
  public:
    StagedSlice(const FoveaPlan_T& plan, const RowBlock& block)
        : plan_(plan),
          p(plan.problem),
          s(plan.vulkan.staged),
          block_(block),
          windows_(plan, block),
          gathering_(staged_gathering(plan, plan.vulkan.grid, plan.vulkan.staged.extra_offset)) {
        entries_ = uint64_t{block.batches} * block.heads;
        const uint64_t rows = entries_ * block.rows;
        has_keys_ = p.len_kv > 0;
        row_scale_ = {s.row_scale_offset, rows * 4, 0};
        scores_ = {s.scores_offset, rows * s.score_stride * 4, 0};
    }

    void gather(FoveaDispatch* out, uint32_t& count) const {
        if (gathered_count(plan_) == 0) return;
        fill_extra(plan_, windows_, s.extra_offset, gathering_, out[count++]);
        gathering_.fill(windows_, out, count);
    }

    void scores(FoveaDispatch& out) const {
        DispatchBuilder d(out, s.score_tile.shared ? Shader::scores_shared : Shader::scores_direct);
        shader::ScoresPush push{};
        push.slice = slice_view();
        const Window q = windows_.query(p.q, p.dim_qk, p.q_type), k = windows_.keys(p.k, p.dim_qk, p.k_type);
        push.q = tensor_view(p.q, q);
        push.k = tensor_view(p.k, k);
        push.pages = page_view();
        push.group = p.group;
        push.dim = p.dim_qk;
        push.scale = p.scale;
        d.input(FOVEA_SLOT_Q, FOVEA_BIND_Q, q);
        d.input(FOVEA_SLOT_K, FOVEA_BIND_K, k);
        bind_tables(d, true);
        d.output(FOVEA_SLOT_SCORES, FOVEA_BIND_WORKSPACE, scores_);
        d.output_if(wants(p, FOVEA_OUTPUT_SCORES), FOVEA_SLOT_OUT_SCORES, FOVEA_BIND_SCORES,
                    windows_.matrices);
        stand_in(d, {FOVEA_SLOT_SEQUENCES, FOVEA_SLOT_BLOCK_TABLE}, {FOVEA_SLOT_OUT_SCORES});
        d.spec(FOVEA_SPEC_THREADS, s.score_tile.threads);
        d.spec(FOVEA_SPEC_A_TYPE, p.q_type);
        d.spec(FOVEA_SPEC_B_TYPE, p.k_type);
        d.spec(FOVEA_SPEC_ALIGNED, s.score_quads);
        d.spec(FOVEA_SPEC_ROWS, s.score_tile.rows);
        d.push(push);
        d.groups(ceil_div(s.score_stride, s.score_tile.columns), ceil_div(block_.rows, s.score_tile.rows),
                 entries_);
    }

    void softmax(FoveaDispatch& out) const {
        DispatchBuilder d(out, Shader::softmax, plan_.vulkan.gathered);
        shader::SoftmaxPush push{};
        push.slice = slice_view();
        push.logit = logit_view(p);
        push.keep_scale = std::bit_cast<uint32_t>(p.dropout ? p.keep_scale : 1.0f);
        bind_matrix(d, FOVEA_SLOT_MASK, FOVEA_BIND_MASK, p.mask, push.mask);
        bind_matrix(d, FOVEA_SLOT_BIAS, FOVEA_BIND_BIAS, p.bias, push.bias);
        bind_matrix(d, FOVEA_SLOT_DROPOUT_MASK, FOVEA_BIND_DROPOUT_MASK, p.dropout_mask, push.keep);
        push.keep_keys = uint32_t(p.dropout_mask.keys);
        if (plan_.vulkan.visible.flags & shader::kFlagPhilox) {
            const shader::PhiloxView philox = philox_view(p);
            push.keep = {philox.key_low, philox.key_high, philox.counter, philox.threshold};
            push.keep_keys = p.first_query, push.keep_scale = p.first_key;
            push.first_batch_head = p.first_batch_head + block_.first_batch * p.heads_q + block_.first_head;
        }
        bind_whole(d, p.alibi, FOVEA_SLOT_ALIBI, FOVEA_BIND_ALIBI);
        bind_whole(d, p.sinks, FOVEA_SLOT_SINKS, FOVEA_BIND_SINKS);
        bind_tables(d, false);
        d.input_if(gathered_count(plan_) != 0, FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE,
                   {s.extra_offset, gathering_.end() - s.extra_offset, 0});
        d.output(FOVEA_SLOT_ROW_SCALE, FOVEA_BIND_WORKSPACE, row_scale_);
        d.output_if(has_keys_, FOVEA_SLOT_SCORES, FOVEA_BIND_WORKSPACE, scores_);
        d.output_if(wants(p, FOVEA_OUTPUT_LSE), FOVEA_SLOT_LSE, FOVEA_BIND_LSE, windows_.lse);
        d.output_if(wants(p, FOVEA_OUTPUT_ROW_STATS), FOVEA_SLOT_ROW_STATS, FOVEA_BIND_ROW_STATS,
                    windows_.stats);
        bind_result_matrix(d, FOVEA_OUTPUT_CAPPED, FOVEA_SLOT_CAPPED, FOVEA_BIND_CAPPED);
        bind_result_matrix(d, FOVEA_OUTPUT_MASKED, FOVEA_SLOT_MASKED, FOVEA_BIND_MASKED);
        bind_result_matrix(d, FOVEA_OUTPUT_WEIGHTS, FOVEA_SLOT_WEIGHTS, FOVEA_BIND_WEIGHTS);
        stand_in(d, {FOVEA_SLOT_EXTRA},
                 {FOVEA_SLOT_SCORES, FOVEA_SLOT_LSE, FOVEA_SLOT_ROW_STATS, FOVEA_SLOT_CAPPED,
                  FOVEA_SLOT_MASKED, FOVEA_SLOT_WEIGHTS});
        d.spec(FOVEA_SPEC_THREADS, s.softmax_threads);
        d.spec(FOVEA_SPEC_ROW_THREADS, s.row_threads);
        d.call(true);
        d.push(push);
        d.groups(ceil_div(block_.rows, s.softmax_threads / s.row_threads), entries_, 1);
        if (has_keys_ || gathered_count(plan_)) d.after_earlier_ones();
    }

    void weighted_sum(FoveaDispatch& out) const {
        DispatchBuilder d(out, staged_sum_shader(plan_));
        shader::WeightedSumPush push{};
        push.slice = slice_view();
        const Window o = windows_.query(p.o, p.dim_v, p.o_type);
        push.o = tensor_view(p.o, o);
        d.tensor(FOVEA_SLOT_O, FOVEA_BIND_O, o, p.o_type, plan_.properties);
        const Window v = has_keys_ ? windows_.keys(p.v, p.dim_v, p.v_type) : Window{};
        push.v = tensor_view(p.v, v);
        d.input_if(has_keys_, FOVEA_SLOT_V, FOVEA_BIND_V, v);
        push.pages = page_view();
        push.group = p.group;
        push.dim = p.dim_v;
        bind_tables(d, true);
        d.input_if(has_keys_, FOVEA_SLOT_SCORES, FOVEA_BIND_WORKSPACE, scores_);
        d.input(FOVEA_SLOT_ROW_SCALE, FOVEA_BIND_WORKSPACE, row_scale_);
        stand_in(d, {FOVEA_SLOT_V, FOVEA_SLOT_SCORES, FOVEA_SLOT_SEQUENCES, FOVEA_SLOT_BLOCK_TABLE}, {});
        d.spec(FOVEA_SPEC_THREADS, s.sum_tile.threads);
        d.spec(FOVEA_SPEC_A_TYPE, FOVEA_F32);
        d.spec(FOVEA_SPEC_B_TYPE, p.v_type);
        d.spec(FOVEA_SPEC_ALIGNED, s.sum_quads);
        d.spec(FOVEA_SPEC_ROWS, s.sum_tile.rows);
        d.push(push);
        d.groups(ceil_div(p.dim_v, s.sum_tile.columns), ceil_div(block_.rows, s.sum_tile.rows), entries_);
        d.after_earlier_ones();
    }

    bool has_keys() const { return has_keys_; }

  private:
    void stand_in(DispatchBuilder& d, std::initializer_list<uint32_t> inputs,
                  std::initializer_list<uint32_t> outputs) const {
        if (is_software(plan_.properties))
            d.stand_in(storage_buffer_limit(plan_.properties), inputs, outputs);
    }

    shader::SliceView slice_view() const {
        shader::SliceView view{};
        set_rows(view, plan_, block_);
        view.heads = block_.heads;
        view.score_stride = s.score_stride;
        view.flags = (view.flags & ((1u << shader::kResultRowShift) - 1)) |
                     windows_.row_base << shader::kResultRowShift |
                     windows_.matrices.base << shader::kResultElementShift;
        return view;
    }

    shader::PageView page_view() const { return {p.page_size, p.page_count, uint32_t(p.block_table_pages)}; }

    static shader::TensorView tensor_view(const FoveaStrides& strides, const Window& window) {
        return {window.base, uint32_t(strides.batch), uint32_t(strides.head), uint32_t(strides.row)};
    }

    void bind_matrix(DispatchBuilder& d, uint32_t slot, uint32_t source, const MatrixView& m,
                     shader::TensorView& view) const {
        if (!m.present || m.keys == 0) return;
        const Window window = windows_.matrix(m);
        view = tensor_view(m.strides, window);
        d.input(slot, source, window);
    }

    void bind_result_matrix(DispatchBuilder& d, uint32_t output, uint32_t slot, uint32_t source) const {
        d.output_if(wants(p, output) && has_keys_, slot, source, windows_.matrices);
    }

    void bind_whole(DispatchBuilder& d, bool used, uint32_t slot, uint32_t source) const {
        d.input_if(used && p.binding_bytes[source] > 0, slot, source, windows_.whole(source));
    }

    void bind_tables(DispatchBuilder& d, bool with_blocks) const {
        bind_whole(d, p.sequences, FOVEA_SLOT_SEQUENCES, FOVEA_BIND_SEQUENCES);
        if (with_blocks) bind_whole(d, p.page_size != 0, FOVEA_SLOT_BLOCK_TABLE, FOVEA_BIND_BLOCK_TABLE);
    }

    const FoveaPlan_T& plan_;
    const Problem& p;
    const StagedPlan& s;
    RowBlock block_;
    BlockWindows windows_;
    Gathering gathering_;
    uint64_t entries_;
    bool has_keys_;
    Window row_scale_, scores_;
};

}  // namespace

FoveaResult staged_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                         FoveaDiag*) {
    const StagedSlice make(plan, plan.vulkan.grid.block(slice));
    const bool has_output = wants(plan.problem, FOVEA_OUTPUT_O), has_softmax = plan.vulkan.staged.has_softmax;
    count = 0;
    make.gather(out, count);
    if (make.has_keys()) make.scores(out[count++]);
    if (has_softmax) make.softmax(out[count++]);
    if (has_output) make.weighted_sum(out[count++]);
    return FOVEA_OK;
}

}  // namespace fovea

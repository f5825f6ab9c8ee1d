#include "plan/vulkan/costs.hpp"
#include "plan/vulkan/flash.hpp"
#include "plan/vulkan/rotation.hpp"
#include "plan/vulkan/rows.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"
#include "shaders/interface.h"

namespace fovea {
namespace {

// The grid counts key/value heads.
RowBlock in_query_heads(RowBlock block, uint32_t group) {
    block.first_head *= group;
    block.heads *= group;
    return block;
}

// The dispatches of one block: parameters, flash, combine.
class FlashSlice {
  public:
    FlashSlice(const FoveaPlan_T& plan, const RowBlock& block)
        : plan_(plan),
          p(plan.problem),
          f(plan.vulkan.flash),
          block_(block),
          windows_(plan, in_query_heads(block, plan.problem.group)),
          gathering_(flash_gathering(plan, f, plan.vulkan.grid)) {
        rows_ = block.rows * p.group;
        extra_ = {f.extra_offset, sizeof(shader::FlashExtra), 0};
        if (!f.mask_map.obstacle) {
            map_ = {f.mask_map.offset, mask_map_bytes(plan, f, block.heads, block.rows), 0};
            extra_.size = map_.offset + map_.size - extra_.offset;
        }
        if (gathered_count(plan)) extra_.size = gathering_.end() - extra_.offset;
        partial_ = {f.partial_offset, rows_ * block.heads * f.splits * partial_row_bytes(p), 0};
    }

    void extra(FoveaDispatch& out) const { fill_extra(plan_, windows_, f.extra_offset, gathering_, out); }
    void gather(FoveaDispatch* out, uint32_t& count) const { gathering_.fill(windows_, out, count); }

    void mask_map(FoveaDispatch& out) const {
        DispatchBuilder d(out, Shader::mask_map);
        shader::MaskMapPush push{};
        push.mask = matrix_view(p.mask, windows_), push.bias = matrix_view(p.bias, windows_);
        push.flags = plan_.vulkan.visible.flags;
        push.rows = uint32_t(block_.rows);
        push.tile_rows = f.rows, push.group = p.group, push.map_heads = f.mask_map.for_all_heads;
        push.block_keys = f.block_keys, push.key_limit = plan_.vulkan.visible.key_limit;
        push.map_words = f.mask_map.words;
        bind_matrix(d, FOVEA_SLOT_MASK, FOVEA_BIND_MASK, p.mask, windows_);
        bind_matrix(d, FOVEA_SLOT_BIAS, FOVEA_BIND_BIAS, p.bias, windows_);
        d.output(FOVEA_SLOT_MASK_MAP, FOVEA_BIND_WORKSPACE, map_);
        d.spec(FOVEA_SPEC_THREADS, shader::kMaskMapThreads);
        d.push(push);
        d.groups(ceil_div(rows_, f.rows), f.mask_map.words, f.mask_map.for_all_heads ? 1 : block_.heads);
    }

    void flash(FoveaDispatch& out) const {
        DispatchBuilder d(out, flash_shader(f), plan_.vulkan.gathered);
        out.subgroup_size = f.subgroup_size;
        d.stored_type(p.o_type, plan_.properties);
        const bool has_keys = p.len_kv > 0, has_output = wants(p, FOVEA_OUTPUT_O);
        const Window q = windows_.query(p.q, p.dim_qk, p.q_type), o = windows_.query(p.o, p.dim_v, p.o_type);
        const Window k = has_keys ? windows_.keys(p.k, p.dim_qk, p.k_type) : Window{};
        const Window v = has_keys ? windows_.keys(p.v, p.dim_v, p.v_type) : Window{};
        shader::FlashPush push{};
        push.slice = rows_view(plan_, block_);
        if (!f.mask_map.obstacle) push.slice.flags |= shader::kFlagMaskMap;
        const bool keys_by_table = p.packed_rows_kv || p.page_size;
        push.q = entry_view(p.q, q, p.heads_q, p.packed_rows_q);
        push.o = entry_view(p.o, o, p.heads_q, p.packed_rows_q);
        push.k = entry_view(p.k, k, p.heads_kv, keys_by_table);
        push.v = entry_view(p.v, v, p.heads_kv, keys_by_table);
        const bool has_entries = plan_.vulkan.grid.block_batches > 1;
        if (has_entries) push.slice.flags |= shader::kFlagEntries;
        push.group_splits = p.group | (has_entries ? p.heads_kv : f.splits) << 16;
        push.split_keys = f.split_keys;
        push.dims = p.dim_qk | p.dim_v << 16;
        push.result_base = windows_.row_base;
        push.scale = p.scale;
        push.logit = logit_view(p);
        const BoundTensor rows = bound(plan_.vulkan.rotated_in, FOVEA_BIND_Q, q);
        d.input(FOVEA_SLOT_Q, rows.source, rows.window);
        d.input_if(has_keys, FOVEA_SLOT_K, FOVEA_BIND_K, k);
        d.input_if(has_keys, FOVEA_SLOT_V, FOVEA_BIND_V, v);
        bind_visibility(d, p, windows_);
        bind_results(d, has_output && f.splits == 1, f.splits == 1);
        d.input_if(f.has_extra, FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE, extra_);
        d.output_if(f.splits > 1, FOVEA_SLOT_PARTIAL, FOVEA_BIND_WORKSPACE, partial_);
        if (is_software(plan_)) fill_up(d);
        d.spec(FOVEA_SPEC_THREADS, f.threads);
        d.spec(FOVEA_SPEC_A_TYPE, p.q_type);
        d.spec(FOVEA_SPEC_B_TYPE, p.k_type);
        d.spec(FOVEA_SPEC_ALIGNED, f.quads);
        d.spec(FOVEA_SPEC_ROWS, f.rows);
        d.spec(FOVEA_SPEC_V_TYPE, p.v_type);
        d.spec(FOVEA_SPEC_COLUMN_QUADS, f.column_quads);
        d.call(f.general, has_entries || shares_pipelines(plan_), wants(p, FOVEA_OUTPUT_ROW_STATS));
        if (f.form == FlashForm::coopmat) matrix_constants(d);
        if (f.form == FlashForm::coopmat2) flexible_constants(d);
        if (f.form != FlashForm::coopmat && f.form != FlashForm::coopmat2) d.spec(FOVEA_SPEC_PARTS, f.parts);
        d.push(push);
        d.groups(ceil_div(rows_, f.rows), flash_column_blocks(plan_),
                 uint64_t{block_.batches} * block_.heads * f.splits);
        if (f.has_extra || plan_.vulkan.rotated_in.dim) d.after_earlier_ones();
    }

    void combine(FoveaDispatch& out) const {
        DispatchBuilder d(out, Shader::flash_combine);
        const Window o = windows_.query(p.o, p.dim_v, p.o_type);
        shader::CombinePush push{};
        push.slice = rows_view(plan_, block_);
        push.o = head_view(p.o, o);
        push.group_splits = p.group | f.splits << 16;
        push.dim = p.dim_v;
        push.heads_q = p.heads_q;
        push.result_base = windows_.row_base;
        push.keep_scale = p.dropout ? p.keep_scale : 1.0f;
        bind_whole(d, p, p.sequences, FOVEA_SLOT_SEQUENCES, FOVEA_BIND_SEQUENCES);
        bind_results(d, wants(p, FOVEA_OUTPUT_O), true);
        d.input(FOVEA_SLOT_PARTIAL, FOVEA_BIND_WORKSPACE, partial_);
        d.stored_type(p.o_type, plan_.properties);
        d.spec(FOVEA_SPEC_THREADS, shader::kElementThreads);
        if (wants(p, FOVEA_OUTPUT_ROW_STATS)) d.spec(FOVEA_SPEC_CALL, shader::kStatsCall);
        d.push(push);
        d.groups(rows_, ceil_div(p.dim_v, shader::kElementThreads), block_.heads);
        d.after_earlier_ones();
    }

  private:
    // Heads are counted through the slice's entries: an entry's only head is as far from the next one's as
    // the entries are.
    static shader::HeadView entry_view(FoveaStrides strides, const Window& window, uint32_t heads,
                                       bool is_placed_by_table) {
        if (heads == 1 && !is_placed_by_table) strides.head = strides.batch;
        return head_view(strides, window);
    }

    void flexible_constants(DispatchBuilder& d) const {
        d.spec(FOVEA_SPEC_SCOPE, f.subgroup_size ? shader::kScopeSubgroup : shader::kScopeWorkgroup);
        d.spec(FOVEA_SPEC_KEYS, f.block_keys);
        d.spec(FOVEA_SPEC_DEPTH, f.depth);
    }

    void matrix_constants(DispatchBuilder& d) const {
        d.bfloat16(p.precision);
        d.spec(FOVEA_SPEC_MATRIX_M, plan_.properties.coopmat_m);
        d.spec(FOVEA_SPEC_MATRIX_N, plan_.properties.coopmat_n);
        d.spec(FOVEA_SPEC_MATRIX_K, plan_.properties.coopmat_k);
        d.spec(FOVEA_SPEC_KEYS, f.block_keys);
        d.spec(FOVEA_SPEC_DEPTH, f.depth);
        d.spec(FOVEA_SPEC_SUBGROUPS, f.subgroups);
    }

    // A software driver takes a second or more to compile a pipeline, and each set of slots is one: common
    // calls share theirs. The other slots are bound to buffers that the dispatch has or never touches. An
    // output slot is bound to one that is written: if it were a part of the workspace, a validation layer
    // would assume that slices write it without a barrier between them.
    void fill_up(DispatchBuilder& d) const {
        d.stand_in(storage_buffer_limit(plan_.properties), {FOVEA_SLOT_K, FOVEA_SLOT_V, FOVEA_SLOT_EXTRA},
                   {});
        for (const uint32_t slot : {FOVEA_SLOT_O, FOVEA_SLOT_LSE, FOVEA_SLOT_PARTIAL}) {
            if (d.binds(slot) || d.binding_count() >= storage_buffer_limit(plan_.properties)) continue;
            if (f.splits > 1)
                d.output(slot, FOVEA_BIND_WORKSPACE, partial_);
            else if (wants(p, FOVEA_OUTPUT_O))
                bind_o(d, slot);
            else if (wants(p, FOVEA_OUTPUT_LSE))
                d.output(slot, FOVEA_BIND_LSE, windows_.lse);
            else
                d.output(slot, FOVEA_BIND_ROW_STATS, windows_.stats);
        }
    }

    void bind_o(DispatchBuilder& d, uint32_t slot) const {
        const Window window = windows_.query(p.o, p.dim_v, p.o_type);
        const BoundTensor o = bound(plan_.vulkan.rotated_out, FOVEA_BIND_O, window);
        d.tensor(slot, o.source, o.window, p.o_type, plan_.properties);
    }

    // Binds the results that both kernels may finish rows with.
    void bind_results(DispatchBuilder& d, bool has_output, bool finishes) const {
        if (has_output) bind_o(d, FOVEA_SLOT_O);
        bind_whole(d, p, p.sinks && finishes, FOVEA_SLOT_SINKS, FOVEA_BIND_SINKS);
        d.output_if(finishes && wants(p, FOVEA_OUTPUT_LSE), FOVEA_SLOT_LSE, FOVEA_BIND_LSE, windows_.lse);
        d.output_if(finishes && wants(p, FOVEA_OUTPUT_ROW_STATS), FOVEA_SLOT_ROW_STATS, FOVEA_BIND_ROW_STATS,
                    windows_.stats);
    }

    const FoveaPlan_T& plan_;
    const Problem& p;
    const FlashPlan& f;
    RowBlock block_;
    BlockWindows windows_;
    uint64_t rows_;
    Gathering gathering_;
    Window extra_, map_{}, partial_;
};

}  // namespace

FoveaResult flash_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                        FoveaDiag*) {
    const FlashPlan& f = plan.vulkan.flash;
    const FlashSlice make(plan, plan.vulkan.grid.block(slice));
    const RowBlock heads = in_query_heads(plan.vulkan.grid.block(slice), plan.problem.group);
    count = 0;
    fill_rotation_in(plan, heads, out, count);
    if (f.has_extra) make.extra(out[count++]);
    make.gather(out, count);
    if (!f.mask_map.obstacle) make.mask_map(out[count++]);
    make.flash(out[count++]);
    if (f.splits > 1) make.combine(out[count++]);
    fill_rotation_out(plan, heads, out, count);
    return FOVEA_OK;
}

}  // namespace fovea

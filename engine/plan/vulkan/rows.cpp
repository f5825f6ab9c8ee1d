#include "plan/vulkan/rows.hpp"

#include "problem/philox.hpp"

#include <bit>

namespace fovea {

shader::LogitView logit_view(const Problem& p) { return std::bit_cast<shader::LogitView>(p.logit); }

shader::PhiloxView philox_view(const Problem& p) {
    const uint64_t key = dropout_key(p);
    return {uint32_t(key), uint32_t(key >> 32), uint32_t(p.dropout_offset), p.drop_threshold};
}

shader::HeadView matrix_view(const MatrixView& m, const BlockWindows& windows) {
    if (!m.present || m.keys == 0) return {};
    return head_view(m.strides, windows.matrix(m));
}

void bind_matrix(DispatchBuilder& d, uint32_t slot, uint32_t source, const MatrixView& m,
                 const BlockWindows& windows) {
    const bool used = m.present && m.keys > 0;
    d.input_if(used, slot, source, used ? windows.matrix(m) : Window{});
}

shader::HeadView head_view(const FoveaStrides& strides, const Window& window) {
    return {window.base, uint32_t(strides.head), uint32_t(strides.row)};
}

shader::FlashSlice rows_view(const FoveaPlan_T& plan, const RowBlock& block) {
    shader::FlashSlice view{};
    set_rows(view, plan, block);
    return view;
}

bool needs_extra(const Problem& p) {
    return p.mask.present || p.bias.present || p.dropout || p.page_size != 0;
}

void fill_extra(const FoveaPlan_T& plan, const BlockWindows& windows, uint64_t offset,
                const Gathering& gathering, FoveaDispatch& out) {
    const Problem& p = plan.problem;
    DispatchBuilder d(out, Shader::flash_extra);
    shader::FlashExtra push{};
    push.mask = matrix_view(p.mask, windows);
    push.bias = matrix_view(p.bias, windows);
    if (p.dropout_mask.present)
        push.keep = matrix_view(p.dropout_mask, windows);
    else
        push.keep = {p.first_query, p.first_key, p.first_batch_head};
    push.keep_keys = uint32_t(p.dropout_mask.keys);
    push.keep_scale = p.keep_scale;
    push.philox = philox_view(p);
    push.page_size = p.page_size, push.page_count = p.page_count;
    push.table_pages = uint32_t(p.block_table_pages);
    push.k_page = uint32_t(p.k.batch), push.v_page = uint32_t(p.v.batch);
    push.map_words = plan.vulkan.flash.mask_map.words;
    push.map_heads = plan.vulkan.flash.mask_map.for_all_heads;
    push.heads_q = p.heads_q;
    push.at = gathering.places();
    d.output(FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE, {offset, sizeof push, 0});
    d.spec(FOVEA_SPEC_THREADS, shader::kFlashMaxThreads);
    d.push(push);
    d.groups(1, 1, 1);
}

void bind_whole(DispatchBuilder& d, const Problem& p, bool used, uint32_t slot, FoveaBinding binding) {
    d.input_if(used && p.binding_bytes[binding] > 0, slot, binding, {0, p.binding_bytes[binding], 0});
}

void bind_visibility(DispatchBuilder& d, const Problem& p, const BlockWindows& windows) {
    bind_matrix(d, FOVEA_SLOT_MASK, FOVEA_BIND_MASK, p.mask, windows);
    bind_matrix(d, FOVEA_SLOT_BIAS, FOVEA_BIND_BIAS, p.bias, windows);
    bind_matrix(d, FOVEA_SLOT_DROPOUT_MASK, FOVEA_BIND_DROPOUT_MASK, p.dropout_mask, windows);
    bind_whole(d, p, p.alibi, FOVEA_SLOT_ALIBI, FOVEA_BIND_ALIBI);
    bind_whole(d, p, p.sequences, FOVEA_SLOT_SEQUENCES, FOVEA_BIND_SEQUENCES);
    bind_whole(d, p, p.page_size != 0, FOVEA_SLOT_BLOCK_TABLE, FOVEA_BIND_BLOCK_TABLE);
}

}  // namespace fovea

// Common to the dispatches of flash and of map tiles: a slice's rows, the fields that decide their visible
// keys, and the parameters that go through the workspace.
#pragma once

#include "plan/vulkan/attention.hpp"
#include "plan/vulkan/dispatch.hpp"
#include "plan/vulkan/gather.hpp"
#include "shaders/interface.h"

namespace fovea {

constexpr uint32_t kHalfWord = 0xffff;  // limit of the 16-bit fields of push constants

shader::LogitView logit_view(const Problem& p);
shader::PhiloxView philox_view(const Problem& p);

shader::HeadView head_view(const FoveaStrides& strides, const Window& window);

// Sets the fields that every kernel's slice has: its rows, and the position of queries among keys.
template <class View>
void set_rows(View& view, const FoveaPlan_T& plan, const RowBlock& block) {
    const Problem& p = plan.problem;
    const VulkanVisibility& visible = plan.vulkan.visible;
    view.rows = uint32_t(block.rows);
    view.first_batch = block.first_batch;
    view.first_head = block.first_head;
    view.first_row = uint32_t(block.first_row);
    view.len_q = uint32_t(p.len_q);
    view.len_kv = uint32_t(p.len_kv);
    view.flags = visible.flags;
    view.offset = visible.offset;
    view.window_left = visible.window_left;
    view.window_right = visible.window_right;
    view.key_limit = visible.key_limit;
    view.packed_rows_q = uint32_t(p.packed_rows_q);
    view.packed_rows_kv = uint32_t(p.packed_rows_kv);
}

// `block` counts heads as the kernel does.
shader::FlashSlice rows_view(const FoveaPlan_T& plan, const RowBlock& block);

// True if the call needs FlashExtra when all its inputs are bound.
bool needs_extra(const Problem& p);
// The dispatch that puts FlashExtra into the workspace.
void fill_extra(const FoveaPlan_T& plan, const BlockWindows& windows, uint64_t offset,
                const Gathering& gathering, FoveaDispatch& out);

// A binding as a whole, if it is used.
void bind_whole(DispatchBuilder& d, const Problem& p, bool used, uint32_t slot, FoveaBinding binding);
// The part of a mask, a bias or a dropout mask that the block needs; nothing where there is none.
shader::HeadView matrix_view(const MatrixView& m, const BlockWindows& windows);
void bind_matrix(DispatchBuilder& d, uint32_t slot, uint32_t source, const MatrixView& m,
                 const BlockWindows& windows);
// Mask, bias, keep, ALiBi, sequence table and block table.
void bind_visibility(DispatchBuilder& d, const Problem& p, const BlockWindows& windows);

}  // namespace fovea

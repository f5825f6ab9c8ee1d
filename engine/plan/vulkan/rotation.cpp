#include "plan/vulkan/rotation.hpp"

#include "plan/vulkan/dispatch.hpp"
#include "problem/checked.hpp"
#include "problem/rotation.hpp"

namespace fovea {
namespace {

static_assert(shader::kRotationBlock == kRotationBlock);

// [batch, heads, len, dim] from the description, which becomes packed float32.
RotatedTensor replace(FoveaBinding binding, FoveaStrides& strides, FoveaDtype& type, uint32_t batch,
                      uint32_t heads, uint64_t len, uint32_t dim) {
    const uint64_t rows = uint64_t{batch} * heads * len;
    const FoveaStrides packed{int64_t(heads * len * dim), int64_t(len * dim), int64_t(dim)};
    const RotatedTensor t{dim, binding, type, strides, packed, align_up(rows * dim * 4, kWorkspaceAlignment),
                          0};
    strides = packed;
    type = FOVEA_F32;
    return t;
}

uint64_t groups_of(const RotatedTensor& t, uint64_t rows) {
    return ceil_div(rows * (t.dim / kRotationBlock), shader::kElementThreads);
}

FoveaResult check_rotation(const RotatedTensor& t, const RowBlock& block, const VulkanLimits& limits) {
    if (!t.dim) return FOVEA_OK;
    if (FoveaResult r =
            limits.window(t.binding, largest_window(t.strides, block.batches, block.heads, block.rows, t.dim,
                                                    dtype_bytes(t.type), limits.alignment())))
        return r;
    return limits.groups(groups_of(t, block.rows), 1, uint64_t{block.batches} * block.heads);
}

// `back`: from the copy to the caller's tensor.
void fill(const FoveaPlan_T& plan, const RotatedTensor& t, const RowBlock& block, bool back,
          FoveaDispatch& out) {
    const uint64_t alignment = window_alignment(plan.properties);
    const Window theirs = block_window(t.strides, block, t.dim, dtype_bytes(t.type), alignment);
    Window copy = block_window(t.packed, block, t.dim, 4, alignment);
    copy.offset += t.offset;
    DispatchBuilder d(out, Shader::rotate);
    shader::RotatePush push{};
    push.slice = {block.heads, uint32_t(block.rows), t.dim, block.first_batch, uint32_t(block.first_row)};
    push.x = back ? view_of(t.packed, copy) : view_of(t.strides, theirs);
    push.y = back ? view_of(t.strides, theirs) : view_of(t.packed, copy);
    d.input(FOVEA_SLOT_X, back ? FOVEA_BIND_WORKSPACE : t.binding, back ? copy : theirs);
    d.tensor(FOVEA_SLOT_Y, back ? t.binding : FOVEA_BIND_WORKSPACE, back ? theirs : copy,
             back ? t.type : FOVEA_F32, plan.properties);
    d.spec(FOVEA_SPEC_THREADS, shader::kElementThreads);
    d.spec(FOVEA_SPEC_A_TYPE, back ? FOVEA_F32 : t.type);
    d.push(push);
    d.groups(groups_of(t, block.rows), 1, uint64_t{block.batches} * block.heads);
    if (back) d.after_earlier_ones();
}

}  // namespace

FoveaResult use_rotated_copies(FoveaPlan_T& plan, FoveaDiag* diag) {
    VulkanPlan& v = plan.vulkan;
    Problem& p = plan.problem;
    const bool attends = plan.operation == Operation::attention || plan.operation == Operation::map_tile;
    FoveaResult r;
    if (plan.operation == Operation::append && plan.append.rotate) {
        FoveaAppendDesc& d = plan.append;
        v.rotated_in = replace(FOVEA_BIND_X, d.x_strides, d.x_type, d.batch, d.heads, d.len, d.dim);
    }
    if (attends && p.rotated_k)
        v.rotated_in = replace(FOVEA_BIND_Q, p.q, p.q_type, p.batch, p.heads_q, uint64_t(p.len_q), p.dim_qk);
    if (attends && p.rotated_v && wants(p, FOVEA_OUTPUT_O)) {
        if ((r = check_stored_type("o_type", p.o_type, plan.properties, diag))) return r;
        v.rotated_out = replace(FOVEA_BIND_O, p.o, p.o_type, p.batch, p.heads_q, uint64_t(p.len_q), p.dim_v);
    }
    return rotation_count(v) ? require_shader(Shader::rotate, diag) : FOVEA_OK;
}

uint64_t rotated_bytes(const VulkanPlan& v) { return v.rotated_in.bytes + v.rotated_out.bytes; }

void place_rotated(VulkanPlan& v, uint64_t offset) {
    v.rotated_in.offset = offset;
    v.rotated_out.offset = offset + v.rotated_in.bytes;
}

FoveaResult check_rotations(const FoveaPlan_T& plan, const RowBlock& block, const VulkanLimits& limits) {
    if (FoveaResult r = check_rotation(plan.vulkan.rotated_in, block, limits)) return r;
    return check_rotation(plan.vulkan.rotated_out, block, limits);
}

BoundTensor bound(const RotatedTensor& t, FoveaBinding binding, Window window) {
    if (!t.dim) return {binding, window};
    window.offset += t.offset;
    return {FOVEA_BIND_WORKSPACE, window};
}

void fill_rotation_in(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch* out, uint32_t& count) {
    if (plan.vulkan.rotated_in.dim) fill(plan, plan.vulkan.rotated_in, block, false, out[count++]);
}

void fill_rotation_out(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch* out, uint32_t& count) {
    if (plan.vulkan.rotated_out.dim) fill(plan, plan.vulkan.rotated_out, block, true, out[count++]);
}

void explain_rotation(const VulkanPlan& v, TextSink& text) {
    if (v.rotated_in.dim)
        text.line("%s is rotated in the workspace first, by blocks of %u elements",
                  v.rotated_in.binding == FOVEA_BIND_Q ? "q" : "x", kRotationBlock);
    if (v.rotated_out.dim)
        text.line("o is rotated back from the workspace, by blocks of %u elements", kRotationBlock);
}

}  // namespace fovea

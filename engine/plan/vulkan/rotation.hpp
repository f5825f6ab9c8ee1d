// Rotated KV caches, see FOVEA_FLAG_ROTATED_CACHE. In the plan's description q, or append's X, becomes a
// packed float32 copy in the workspace. A small dispatch of each slice makes it first. o becomes another
// copy, which one more dispatch rotates back into the caller's tensor. So no other kernel knows of rotations.
#pragma once

#include "plan/plan.hpp"
#include "plan/text_sink.hpp"
#include "plan/vulkan/limits.hpp"

namespace fovea {

// Replaces the tensors in the plan's description. Call it once, before anything else reads them.
FoveaResult use_rotated_copies(FoveaPlan_T& plan, FoveaDiag* diag);

inline uint32_t rotation_count(const VulkanPlan& v) {
    return (v.rotated_in.dim != 0) + (v.rotated_out.dim != 0);
}
// Bytes of the copies, which begin at `rotated_in.offset` in the workspace.
uint64_t rotated_bytes(const VulkanPlan& v);
void place_rotated(VulkanPlan& v, uint64_t offset);

// The dispatches of a block of query heads, or of X's, against the device's limits.
FoveaResult check_rotations(const FoveaPlan_T& plan, const RowBlock& block, const VulkanLimits& limits);

// A tensor as a kernel binds it: the caller's, or the copy in the workspace.
struct BoundTensor {
    uint32_t source;
    Window window;
};
BoundTensor bound(const RotatedTensor& t, FoveaBinding binding, Window window);

// Adds the dispatch before a slice's kernels, and the one after them; nothing where none is needed.
void fill_rotation_in(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch* out, uint32_t& count);
void fill_rotation_out(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch* out, uint32_t& count);

// Returns the problem with the caller's tensors in place of the copies.
inline Problem call_of(const FoveaPlan_T& plan) {
    Problem p = plan.problem;
    const RotatedTensor &q = plan.vulkan.rotated_in, &o = plan.vulkan.rotated_out;
    if (q.dim) p.q = q.strides, p.q_type = q.type;
    if (o.dim) p.o = o.strides, p.o_type = o.type;
    return p;
}
void explain_rotation(const VulkanPlan& v, TextSink& text);

}  // namespace fovea

// Plans, slices and explanations of each kernel except flash, which has its own header. See vulkan_slice.
#pragma once

#include "plan/plan.hpp"
#include "plan/vulkan/gather.hpp"
#include "plan/vulkan/shaders.hpp"

namespace fovea {

class TextSink;

// ---- staged attention: three kernels over blocks of query rows ----

// Fills plan.vulkan.staged, the grid and plan.info's costs, or fails with the reason.
FoveaResult plan_staged(FoveaPlan_T& plan, FoveaDiag* diag);
// Returns the place after their scores where the slices of a grid gather inputs.
Gathering staged_gathering(const FoveaPlan_T& plan, const BlockGrid& grid, uint64_t extra_offset);
// The module of the weighted sum, by o's type and the tile.
Shader staged_sum_shader(const FoveaPlan_T& plan);
FoveaResult staged_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                         FoveaDiag* diag);
void explain_staged(const FoveaPlan_T& plan, TextSink& text);

// ---- gradients of attention ----

// Slices are of dq by query rows, then of dk and dv by keys, of the query heads of one key/value head each;
// then of dbias by its own rows or keys, and of dalibi and dsinks by heads, each summed over all that shares
// it. No slice needs another one.
FoveaResult plan_vulkan_backward(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult backward_slice(const FoveaPlan_T& plan, uint64_t slice, uint64_t first, FoveaDispatch* out,
                           uint32_t& count, FoveaDiag* diag);

// Returns the first slices of dq, of dk and dv, of dbias, and of dalibi and dsinks; each kind has a kernel of
// its own. A kind that is not requested begins where the next does; the last one may be past the end.
constexpr uint32_t kBackwardParts = 4;
void first_slices_of_backward(const FoveaPlan_T& plan, uint64_t* first);
void explain_vulkan_backward(const FoveaPlan_T& plan, TextSink& text);

// ---- map tiles: workgroups of pixels, slices of workgroups ----

FoveaResult plan_vulkan_map_tile(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult map_tile_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                           FoveaDiag* diag);
void explain_vulkan_map_tile(const FoveaPlan_T& plan, TextSink& text);

// ---- rope, linear, append, gather, merge, norm and pointwise: one dispatch for each slice ----

FoveaResult plan_vulkan_rope(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_linear(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_append(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_gather(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_merge(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_norm(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan_pointwise(FoveaPlan_T& plan, FoveaDiag* diag);

// The module of a linear layer's plan.
Shader linear_shader(const FoveaPlan_T& plan);
// Why linear does without matrix units, or null with their tile in `tile`.
const char* choose_linear_matrices(const FoveaDeviceProperties& properties, const FoveaLinearDesc& desc,
                                   TileChoice& tile);

// The one dispatch of a slice of any of them.
FoveaResult operation_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                            FoveaDiag* diag);

void explain_linear(const FoveaPlan_T& plan, TextSink& text);
void explain_rows(const FoveaPlan_T& plan, TextSink& text);  // all others

}  // namespace fovea

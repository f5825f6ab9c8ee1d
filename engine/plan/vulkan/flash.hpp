// Attention in one pass on Vulkan: flash over blocks of query rows, with key splits where there are few rows.
#pragma once

#include "plan/plan.hpp"
#include "plan/vulkan/gather.hpp"
#include "plan/vulkan/shaders.hpp"

namespace fovea {

// Why flash cannot serve this problem; null if it can.
const char* flash_obstacle(const FoveaPlan_T& plan);

// Fills plan.vulkan.flash, the grid and plan.info's costs, or fails with the reason.
FoveaResult plan_flash(FoveaPlan_T& plan, FoveaDiag* diag);
// The same for the matrix kernels: another workgroup, the same splits and slices.
FoveaResult plan_flash_coopmat(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_flash_coopmat2(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult flash_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                        FoveaDiag* diag);
void explain_flash(const FoveaPlan_T& plan, TextSink& text);

// The module of the plan, in its float32 form.
Shader flash_shader(const FlashPlan& f);

// True if visibility and weights depend on more than causal, window and lengths. The code for that is half of
// a kernel and costs registers, so calls without it use a variant without that code.
bool flash_is_general(const FoveaPlan_T& plan);

// Where the slices of a grid of key/value heads gather inputs.
Gathering flash_gathering(const FoveaPlan_T& plan, const FlashPlan& f, const BlockGrid& grid);

// Bytes of a row's partial result of a key split.
uint64_t partial_row_bytes(const Problem& p);

// Workgroups for all value columns.
uint32_t flash_column_blocks(const FoveaPlan_T& plan);

// ---- shapes of the kernels with cooperative matrices: pure functions of problem and properties ----

// Why flash_coopmat cannot, or by itself should not, serve this problem; null if it can.
const char* flash_coopmat_obstacle(const FoveaPlan_T& plan);

// The same for flash_coopmat2.
const char* flash_coopmat2_obstacle(const FoveaPlan_T& plan);
bool choose_flexible_shape(const FoveaPlan_T& plan, FlashPlan& f);

// Fills the workgroup's shape; false if none fits the device's shared memory and workgroups.
bool choose_matrix_shape(const FoveaPlan_T& plan, FlashPlan& f);

// ---- the map of mask and bias that flash may make first ----

// Blocks that are hidden as a whole are skipped, in clear ones the matrices are not read. Results are the
// same bits with and without the map.

// Decides by the tile of `f` if a map is likely to pay off, and fills f.mask_map except for its offset.
void choose_mask_map(const FoveaPlan_T& plan, FlashPlan& f);

// The size of the map for a slice of so many key/value heads and queries; 0 without a map.
uint64_t mask_map_bytes(const FoveaPlan_T& plan, const FlashPlan& f, uint64_t heads_kv, uint64_t queries);

void explain_mask_map(const MaskMapPlan& map, TextSink& text);

}  // namespace fovea

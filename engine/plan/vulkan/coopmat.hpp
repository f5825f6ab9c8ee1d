// Shapes of flash_coopmat: pure functions of problem and properties.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

// Why flash_coopmat cannot, or by itself should not, serve this problem; null if it can.
const char* flash_coopmat_obstacle(const FoveaPlan_T& plan);

// The same for flash_coopmat2.
const char* flash_coopmat2_obstacle(const FoveaPlan_T& plan);
bool choose_flexible_shape(const FoveaPlan_T& plan, FlashPlan& f);

// Why linear does without matrix units, or null with their tile in `tile`.
const char* choose_linear_matrices(const FoveaDeviceProperties& properties, const FoveaLinearDesc& desc,
                                   TileChoice& tile);

// Fills the workgroup's shape; false if none fits the device's shared memory and workgroups.
bool choose_matrix_shape(const FoveaPlan_T& plan, FlashPlan& f);

}  // namespace fovea

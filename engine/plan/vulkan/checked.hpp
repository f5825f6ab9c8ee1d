// The kernels of the device check (foveaCheckDevice): each is known by its main shader and by the class of a
// call's types. What failed there is no candidate of the planner.
#pragma once

#include "plan/plan.hpp"
#include "plan/vulkan/shaders.hpp"

namespace fovea {

// The shader that names all dispatches of the plan: softmax for staged attention, backward_query for
// gradients.
Shader main_shader(const FoveaPlan_T& plan);
// FOVEA_CHECK_*.
uint32_t check_class(const FoveaPlan_T& plan);
const char* check_class_name(uint32_t check_class);
// The kernel's name in texts, "staged" or "flash_subgroup" for example.
const char* checked_kernel_name(Shader main);

// True if calls of the plan's class must not use the kernel.
inline bool has_failed(const FoveaPlan_T& plan, Shader main) {
    return plan.properties.failed_shaders[check_class(plan)] >> uint32_t(main) & 1;
}
constexpr const char* kFailedCheck = "it gave wrong results on this driver (foveaCheckDevice)";

// FOVEA_UNSUPPORTED if the plan's kernel has failed.
FoveaResult check_driver(const FoveaPlan_T& plan, FoveaDiag* diag);

}  // namespace fovea

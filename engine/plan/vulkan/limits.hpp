// Checks that a Vulkan plan stays within the device's limits and the caller's budgets. Each error names the
// limit.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea {

constexpr uint64_t kMinStorageRange = 256;     // of a descriptor: parameters, and rows at any alignment
constexpr uint64_t kWorkspaceAlignment = 256;  // the largest storage offset alignment that Vulkan allows

// Windows start at a multiple of this: of the device's alignment, and of 16 bytes for loads of four words.
uint64_t window_alignment(const FoveaDeviceProperties& properties);

constexpr uint32_t kMaxSubgroup = 128;  // the largest subgroup that Vulkan allows

// Checks the minimum device requirements of all kernels, see fovea_vulkan.h, and rejects impossible values.
FoveaResult check_vulkan_properties(const FoveaDeviceProperties& properties, FoveaDiag* diag);

// Plans with `make` and holds the plan against the number of storage buffers that one shader may bind: as
// long as some dispatch has more, one input more is gathered in the workspace, see gather.hpp.
FoveaResult plan_within_buffers(FoveaPlan_T& plan, FoveaResult (*make)(FoveaPlan_T& plan, FoveaDiag* diag),
                                FoveaDiag* diag);
template <FoveaResult (*make)(FoveaPlan_T& plan, FoveaDiag* diag)>
FoveaResult within_buffers(FoveaPlan_T& plan, FoveaDiag* diag) {
    return plan_within_buffers(plan, make, diag);
}

class VulkanLimits {
  public:
    VulkanLimits(const FoveaDeviceProperties& properties, FoveaDiag* diag)
        : properties_(properties), diag_(diag) {}

    uint64_t alignment() const { return window_alignment(properties_); }
    // `binding`: FoveaBinding; FOVEA_BIND_WORKSPACE for the workspace.
    FoveaResult window(uint32_t binding, uint64_t bytes) const;
    FoveaResult groups(uint64_t x, uint64_t y, uint64_t z) const;
    FoveaResult workspace(uint64_t bytes, uint64_t limit) const;
    FoveaResult cost(double flops, double limit) const;

  private:
    const FoveaDeviceProperties& properties_;
    FoveaDiag* diag_;
};

}  // namespace fovea

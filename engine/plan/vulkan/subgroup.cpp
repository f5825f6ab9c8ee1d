#include "plan/vulkan/subgroup.hpp"

#include "plan/vulkan/features.hpp"
#include "plan/vulkan/vendors.hpp"

namespace fovea {
namespace {

// Vendors where ggml-vulkan and others found subgroup operations slower or wrong.
struct Exception {
    uint32_t vendor_id;
    const char* why;
};
constexpr Exception kExceptions[] = {
    {kVendorIntel, "subgroups of a forced size slow Intel's devices down"},
    {kVendorApple, "subgroup operations are not to be relied on under Apple's Metal"},
    {kVendorArm, "subgroup operations are not to be relied on with ARM's drivers"},
};

}  // namespace

SubgroupChoice choose_subgroup(const FoveaDeviceProperties& properties, uint32_t threads, uint32_t least) {
    constexpr uint32_t kNeeded = FOVEA_FEATURE_SUBGROUP_ARITHMETIC | FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL;
    if (const char* why = missing_features(
            properties, kNeeded,
            "the device does not support subgroup arithmetic or full subgroups of a chosen size"))
        return {0, why};
    for (const Exception& e : kExceptions)
        if (properties.vendor_id == e.vendor_id) return {0, e.why};
    if (properties.min_subgroup_size > threads)
        return {0, "the device's subgroups are wider than the workgroup"};
    const uint32_t size = properties.max_subgroup_size < threads ? properties.max_subgroup_size : threads;
    if (size < least) return {0, "the device's subgroups are too narrow for the workgroup"};
    if (properties.max_workgroup_subgroups && threads / size > properties.max_workgroup_subgroups)
        return {0, "the device allows fewer subgroups in a workgroup (maxComputeWorkgroupSubgroups)"};
    return {size, nullptr};
}

}  // namespace fovea

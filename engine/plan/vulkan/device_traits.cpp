#include "plan/vulkan/device_traits.hpp"

#include "problem/status.hpp"

#include <cstdio>

namespace fovea {
namespace {

struct Named {
    uint32_t bit;
    const char* switches;     // as Vulkan calls them
    const char* not_enabled;  // null: there is nothing to enable
};
#define FOVEA_OFF(what)                                                \
    "the device supports it, but the application did not enable " what \
    " (FoveaVulkanDevice::enabled_features; "                          \
    "foveaEnableRecommendedFeatures does)"
constexpr Named kNamed[] = {
    {FOVEA_FEATURE_F16_STORAGE, "storageBuffer16BitAccess", FOVEA_OFF("storageBuffer16BitAccess")},
    {FOVEA_FEATURE_F16_ARITHMETIC, "shaderFloat16", FOVEA_OFF("shaderFloat16")},
    {FOVEA_FEATURE_SUBGROUP_ARITHMETIC, "arithmetic in subgroups", nullptr},
    {FOVEA_FEATURE_SUBGROUP_SHUFFLE, "shuffles in subgroups", nullptr},
    {FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL, "subgroupSizeControl and computeFullSubgroups",
     FOVEA_OFF("subgroupSizeControl and computeFullSubgroups")},
    {FOVEA_FEATURE_COOPMAT, "cooperativeMatrix and vulkanMemoryModel",
     FOVEA_OFF("cooperativeMatrix and vulkanMemoryModel")},
    {FOVEA_FEATURE_BF16_INPUTS, "shaderBFloat16Type and shaderBFloat16CooperativeMatrix",
     FOVEA_OFF("shaderBFloat16Type and shaderBFloat16CooperativeMatrix")},
    {FOVEA_FEATURE_COOPMAT2, "the parts of VK_NV_cooperative_matrix2",
     FOVEA_OFF("the parts of VK_NV_cooperative_matrix2")},
    {FOVEA_FEATURE_PUSH_DESCRIPTORS, "VK_KHR_push_descriptor", FOVEA_OFF("VK_KHR_push_descriptor")},
    {FOVEA_FEATURE_TIMESTAMPS, "timestamps", nullptr},
    {FOVEA_FEATURE_DEVICE_ATOMICS, "vulkanMemoryModelDeviceScope", FOVEA_OFF("vulkanMemoryModelDeviceScope")},
};
#undef FOVEA_OFF

}  // namespace

void write_feature_names(uint32_t features, char* text, size_t room) {
    size_t length = 0;
    text[0] = '\0';
    for (const Named& named : kNamed) {
        if (!(features & named.bit) || length + 1 >= room) continue;
        const int written =
            snprintf(text + length, room - length, "%s%s", length ? ", " : "", named.switches);
        if (written > 0) length += size_t(written);
    }
}

const char* missing_features(const FoveaDeviceProperties& properties, uint32_t needed, const char* lacks) {
    const uint32_t missing = needed & ~properties.features;
    if (!missing) return nullptr;
    if (missing & ~properties.features_not_enabled) return lacks;
    for (const Named& named : kNamed)
        if (missing & named.bit && named.not_enabled) return named.not_enabled;
    return lacks;
}

FoveaResult check_features(const FoveaDeviceProperties& properties, FoveaDiag* diag) {
    uint32_t known = 0;
    for (const Named& named : kNamed) known |= named.bit;
    if (const uint32_t unknown = properties.features & ~known)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.features",
                    "properties.features has unknown bits 0x%x", unknown);
    return FOVEA_OK;
}

// ---- subgroups ----

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

// ---- vendors ----

namespace {

constexpr uint32_t kUnknownCores = 16;
constexpr uint32_t kSoftwareCores = 8;

// Typical cores of devices whose driver does not report them: Arc A770 and Lunar Lake, Adreno 740.
struct TypicalCores {
    uint32_t vendor_id;
    FoveaDeviceClass device_class;
    uint32_t cores;
};
constexpr TypicalCores kTypicalCores[] = {
    {kVendorIntel, FOVEA_CLASS_DISCRETE, 32},
    {kVendorIntel, FOVEA_CLASS_INTEGRATED, 8},
    {kVendorQualcomm, FOVEA_CLASS_INTEGRATED, 6},
};

}  // namespace

uint32_t core_count_of(const FoveaDeviceProperties& properties) {
    if (properties.core_count) return properties.core_count;
    if (properties.device_class == FOVEA_CLASS_CPU) return kSoftwareCores;
    for (const TypicalCores& t : kTypicalCores)
        if (properties.vendor_id == t.vendor_id && properties.device_class == t.device_class) return t.cores;
    return kUnknownCores;
}

}  // namespace fovea

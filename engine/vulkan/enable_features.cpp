// foveaEnableRecommendedFeatures: writes the features worth enabling into the application's own chain and
// list.
#include "problem/abi_struct.hpp"
#include "vulkan/device_query.hpp"

#include <cstddef>
#include <cstring>

namespace fovea::vulkan {
namespace {

// The switch of a feature: in its own struct and, from some version on, in the struct of a core version.
// A chain contains one of them, never both (VkDeviceCreateInfo's valid usage).
struct Switch {
    const char* feature;
    VkStructureType type;
    size_t size_bytes, offset;
    VkStructureType core_type;  // VK_STRUCTURE_TYPE_MAX_ENUM: there is none
    size_t core_offset;
};
constexpr VkStructureType kNone = VK_STRUCTURE_TYPE_MAX_ENUM;

// A feature of a struct of an extension's, and where it is one of a core version's struct, too.
#define FOVEA_SWITCH(name, TYPE, Struct) \
    { #name, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE, sizeof(Struct), offsetof(Struct, name), kNone, 0 }
#define FOVEA_CORE_SWITCH(name, TYPE, Struct, VERSION, Core)                                     \
    {                                                                                            \
#name, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE, sizeof(Struct), offsetof(Struct, name), \
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_##VERSION##_FEATURES, offsetof(Core, name)  \
    }
using Storage16 = VkPhysicalDevice16BitStorageFeatures;
using Float16 = VkPhysicalDeviceShaderFloat16Int8Features;
using SubgroupSizes = VkPhysicalDeviceSubgroupSizeControlFeatures;
using MemoryModel = VkPhysicalDeviceVulkanMemoryModelFeatures;
using Bfloat16 = VkPhysicalDeviceShaderBfloat16FeaturesKHR;
using Matrix2 = VkPhysicalDeviceCooperativeMatrix2FeaturesNV;
using Core11 = VkPhysicalDeviceVulkan11Features;
using Core12 = VkPhysicalDeviceVulkan12Features;
using Core13 = VkPhysicalDeviceVulkan13Features;
using Core14 = VkPhysicalDeviceVulkan14Features;

constexpr Switch kSwitches[] = {
    FOVEA_CORE_SWITCH(storageBuffer16BitAccess, 16BIT_STORAGE_FEATURES, Storage16, 1_1, Core11),
    FOVEA_CORE_SWITCH(shaderFloat16, SHADER_FLOAT16_INT8_FEATURES, Float16, 1_2, Core12),
    FOVEA_CORE_SWITCH(subgroupSizeControl, SUBGROUP_SIZE_CONTROL_FEATURES, SubgroupSizes, 1_3, Core13),
    FOVEA_CORE_SWITCH(computeFullSubgroups, SUBGROUP_SIZE_CONTROL_FEATURES, SubgroupSizes, 1_3, Core13),
    FOVEA_CORE_SWITCH(vulkanMemoryModel, VULKAN_MEMORY_MODEL_FEATURES, MemoryModel, 1_2, Core12),
    FOVEA_CORE_SWITCH(vulkanMemoryModelDeviceScope, VULKAN_MEMORY_MODEL_FEATURES, MemoryModel, 1_2, Core12),
    FOVEA_SWITCH(cooperativeMatrix, COOPERATIVE_MATRIX_FEATURES_KHR,
                 VkPhysicalDeviceCooperativeMatrixFeaturesKHR),
    FOVEA_CORE_SWITCH(maintenance4, MAINTENANCE_4_FEATURES, VkPhysicalDeviceMaintenance4Features, 1_3,
                      Core13),
    FOVEA_SWITCH(deviceFault, FAULT_FEATURES_EXT, VkPhysicalDeviceFaultFeaturesEXT),
    FOVEA_CORE_SWITCH(pushDescriptor, VULKAN_1_4_FEATURES, Core14, 1_4, Core14),
    FOVEA_SWITCH(shaderBFloat16Type, SHADER_BFLOAT16_FEATURES_KHR, Bfloat16),
    FOVEA_SWITCH(shaderBFloat16CooperativeMatrix, SHADER_BFLOAT16_FEATURES_KHR, Bfloat16),
    FOVEA_SWITCH(cooperativeMatrixFlexibleDimensions, COOPERATIVE_MATRIX_2_FEATURES_NV, Matrix2),
    FOVEA_SWITCH(cooperativeMatrixReductions, COOPERATIVE_MATRIX_2_FEATURES_NV, Matrix2),
    FOVEA_SWITCH(cooperativeMatrixConversions, COOPERATIVE_MATRIX_2_FEATURES_NV, Matrix2),
    FOVEA_SWITCH(cooperativeMatrixPerElementOperations, COOPERATIVE_MATRIX_2_FEATURES_NV, Matrix2),
    FOVEA_SWITCH(cooperativeMatrixWorkgroupScope, COOPERATIVE_MATRIX_2_FEATURES_NV, Matrix2),
};
#undef FOVEA_SWITCH
#undef FOVEA_CORE_SWITCH

const Switch* find_switch(const char* feature) {
    for (const Switch& s : kSwitches)
        if (strcmp(s.feature, feature) == 0) return &s;
    return nullptr;
}

void turn_on(VkBaseOutStructure* item, size_t offset) {
    const VkBool32 on = VK_TRUE;
    memcpy(reinterpret_cast<unsigned char*>(item) + offset, &on, sizeof on);
}

uint32_t words_of(size_t size_bytes) { return static_cast<uint32_t>((size_bytes + 7) / 8); }

// The room holds the structs of this library one after another: first the features, then those that the
// host's chain lacks. No pointer into it is kept, so that copies of FoveaEnabledFeatures are whole.
VkPhysicalDeviceFeatures2* features_in_room(FoveaEnabledFeatures& enabled) {
    if (enabled.room_first == 0) return nullptr;
    return reinterpret_cast<VkPhysicalDeviceFeatures2*>(&enabled.room[enabled.room_first - 1]);
}

uint32_t words_of_type(VkStructureType type) {
    for (const Switch& s : kSwitches)
        if (s.type == type) return words_of(s.size_bytes);
    return 0;
}

// Calls use(struct) for each struct after the features until one says true, which is returned.
template <class Use>
VkBaseOutStructure* find_in_room(FoveaEnabledFeatures& enabled, const Use& use) {
    if (enabled.room_first == 0) return nullptr;
    uint32_t at = enabled.room_first - 1 + words_of(sizeof(VkPhysicalDeviceFeatures2));
    while (at < enabled.room_used) {
        auto* item = reinterpret_cast<VkBaseOutStructure*>(&enabled.room[at]);
        const uint32_t words = words_of_type(item->sType);
        if (words == 0 || words > enabled.room_used - at) break;
        if (use(item)) return item;
        at += words;
    }
    return nullptr;
}

// The struct that holds a switch, of the host's chain or of ours; null if there is none yet.
VkBaseOutStructure* holder_of(const Switch& s, FoveaEnabledFeatures& enabled) {
    const auto holds = [&](const VkBaseOutStructure* item) {
        return item->sType == s.type || item->sType == s.core_type;
    };
    void* chain = enabled.features ? enabled.features->pNext : nullptr;
    for (auto* item = static_cast<VkBaseOutStructure*>(chain); item; item = item->pNext)
        if (holds(item)) return item;
    return find_in_room(enabled, holds);
}

// A zeroed struct in the host's room, which has been found large enough.
void* take_room(FoveaEnabledFeatures& enabled, size_t size_bytes) {
    void* place = &enabled.room[enabled.room_used];
    enabled.room_used += words_of(size_bytes);
    memset(place, 0, size_bytes);
    return place;
}

void enable(const Switch& s, FoveaEnabledFeatures& enabled) {
    VkBaseOutStructure* item = holder_of(s, enabled);
    if (!item) {
        item = static_cast<VkBaseOutStructure*>(take_room(enabled, s.size_bytes));
        item->sType = s.type;
    }
    turn_on(item, item->sType == s.type ? s.offset : s.core_offset);
}

bool has_extension(const FoveaEnabledFeatures& enabled, const char* name) {
    for (uint32_t i = 0; i < enabled.extension_count; ++i)
        if (strcmp(enabled.extensions[i], name) == 0) return true;
    return false;
}

// Checks that everything to be added has room, so that a failure changes nothing.
FoveaResult check_room(const FoveaRecommendedFeatures& recommended, FoveaEnabledFeatures& enabled,
                       FoveaDiag* diag) {
    uint32_t words = enabled.room_first ? 0 : words_of(sizeof(VkPhysicalDeviceFeatures2));
    uint32_t extensions = enabled.extension_count;
    VkStructureType counted[FOVEA_MAX_RECOMMENDED_FEATURES];
    uint32_t counted_count = 0;
    for (uint32_t i = 0; i < recommended.count; ++i) {
        const FoveaRecommendedFeature& item = recommended.items[i];
        if (!item.available) continue;
        if (item.extension && !has_extension(enabled, item.extension)) ++extensions;  // some of them twice
        if (!item.feature) continue;
        const Switch* found = find_switch(item.feature);
        if (!found)
            return fail(diag, FOVEA_INVALID_ARGUMENT, "recommended.items",
                        "recommended.items[%u].feature is %s, which this library does not know", i,
                        item.feature);
        bool known = holder_of(*found, enabled) != nullptr;
        for (uint32_t n = 0; n < counted_count; ++n) known |= counted[n] == found->type;
        if (known) continue;
        counted[counted_count++] = found->type;
        words += words_of(found->size_bytes);
    }
    if (extensions > FOVEA_MAX_ENABLED_EXTENSIONS)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "extension_count",
                    "extension_count is %u; with what Fovea adds it may pass the limit, %u",
                    enabled.extension_count, unsigned{FOVEA_MAX_ENABLED_EXTENSIONS});
    if (words > FOVEA_ENABLED_ROOM_WORDS - enabled.room_used)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "room_used",
                    "room_used is %u words of %u; %u more are needed", enabled.room_used,
                    unsigned{FOVEA_ENABLED_ROOM_WORDS}, words);
    return FOVEA_OK;
}

FoveaResult check_given(const FoveaEnabledFeatures& enabled, FoveaDiag* diag) {
    if (enabled.extension_count > FOVEA_MAX_ENABLED_EXTENSIONS)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "extension_count", "extension_count is %u; the limit is %u",
                    enabled.extension_count, unsigned{FOVEA_MAX_ENABLED_EXTENSIONS});
    for (uint32_t i = 0; i < enabled.extension_count; ++i)
        if (!enabled.extensions[i])
            return fail(diag, FOVEA_INVALID_ARGUMENT, "extensions", "extensions[%u] is null", i);
    if (enabled.room_used > FOVEA_ENABLED_ROOM_WORDS)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "room_used",
                    "room_used is %u; leave it to foveaEnableRecommendedFeatures", enabled.room_used);
    if (enabled.room_first > enabled.room_used)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "room_first",
                    "room_first is %u; leave it to foveaEnableRecommendedFeatures", enabled.room_first);
    if (enabled.features && enabled.features->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "features.sType",
                    "features.sType is %d; it must be VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2",
                    int(enabled.features->sType));
    return FOVEA_OK;
}

}  // namespace
}  // namespace fovea::vulkan

using namespace fovea;
using namespace fovea::vulkan;

FoveaResult foveaEnableRecommendedFeatures(const FoveaRecommendedFeatures* given,
                                           FoveaEnabledFeatures* enabled, FoveaDiag* diag) {
    FoveaRecommendedFeatures recommended;
    if (FoveaResult r = read_struct(given, recommended, "recommended", diag)) return r;
    if (!enabled) return fail(diag, FOVEA_INVALID_ARGUMENT, "enabled", "enabled is null");
    // It is written in place: so it must be whole.
    if (enabled->struct_size != sizeof *enabled)
        return fail(diag, FOVEA_ABI_MISMATCH, "struct_size",
                    "enabled.struct_size is %u; this library's FoveaEnabledFeatures has %zu bytes",
                    enabled->struct_size, sizeof *enabled);
    if (recommended.count > FOVEA_MAX_RECOMMENDED_FEATURES)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "recommended.count",
                    "recommended.count is %u; the limit is %u", recommended.count,
                    unsigned{FOVEA_MAX_RECOMMENDED_FEATURES});
    if (FoveaResult r = check_given(*enabled, diag)) return r;
    if (FoveaResult r = check_room(recommended, *enabled, diag)) return r;
    if (!enabled->room_first) {
        const uint32_t first = enabled->room_used + 1;
        take_room(*enabled, sizeof(VkPhysicalDeviceFeatures2));
        enabled->room_first = first;
        features_in_room(*enabled)->sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    }
    for (uint32_t i = 0; i < recommended.count; ++i) {
        const FoveaRecommendedFeature& item = recommended.items[i];
        if (!item.available) continue;
        if (item.extension && !has_extension(*enabled, item.extension))
            enabled->extensions[enabled->extension_count++] = item.extension;
        if (item.feature) enable(*find_switch(item.feature), *enabled);
    }
    return FOVEA_OK;
}

VkPhysicalDeviceFeatures2* foveaEnabledFeatures2(FoveaEnabledFeatures* enabled) {
    if (!enabled || enabled->struct_size != sizeof *enabled) return nullptr;
    VkPhysicalDeviceFeatures2* features = features_in_room(*enabled);
    if (!features || enabled->room_first > enabled->room_used) return enabled->features;
    if (enabled->features) *features = *enabled->features;
    void* rest = enabled->features ? enabled->features->pNext : nullptr;
    auto* last = reinterpret_cast<VkBaseOutStructure*>(features);
    find_in_room(*enabled, [&](VkBaseOutStructure* item) {
        last = last->pNext = item;
        return false;
    });
    last->pNext = static_cast<VkBaseOutStructure*>(rest);
    return features;
}

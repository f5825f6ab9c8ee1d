// foveaEnableNeeds: what a device is worth being created with, written into the host's own chain and list.
#include "problem/abi_struct.hpp"
#include "vulkan/device_query.hpp"

#include <cstddef>
#include <cstring>

namespace fovea::vulkan {
namespace {

// The switch of a feature: in a struct of its own and, from some version on, in the struct of a core version.
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
// host's chain lacks. No pointer into it is kept, so that copies of FoveaDeviceEnables are whole.
VkPhysicalDeviceFeatures2* features_in_room(FoveaDeviceEnables& enables) {
    if (enables.room_first == 0) return nullptr;
    return reinterpret_cast<VkPhysicalDeviceFeatures2*>(&enables.room[enables.room_first - 1]);
}

uint32_t words_of_type(VkStructureType type) {
    for (const Switch& s : kSwitches)
        if (s.type == type) return words_of(s.size_bytes);
    return 0;
}

// Calls use(struct) for each struct after the features until one says true, which is returned.
template <class Use>
VkBaseOutStructure* find_in_room(FoveaDeviceEnables& enables, const Use& use) {
    if (enables.room_first == 0) return nullptr;
    uint32_t at = enables.room_first - 1 + words_of(sizeof(VkPhysicalDeviceFeatures2));
    while (at < enables.room_used) {
        auto* item = reinterpret_cast<VkBaseOutStructure*>(&enables.room[at]);
        const uint32_t words = words_of_type(item->sType);
        if (words == 0 || words > enables.room_used - at) break;
        if (use(item)) return item;
        at += words;
    }
    return nullptr;
}

// The struct that holds a switch, of the host's chain or of ours; null if there is none yet.
VkBaseOutStructure* holder_of(const Switch& s, FoveaDeviceEnables& enables) {
    const auto holds = [&](const VkBaseOutStructure* item) {
        return item->sType == s.type || item->sType == s.core_type;
    };
    void* chain = enables.features ? enables.features->pNext : nullptr;
    for (auto* item = static_cast<VkBaseOutStructure*>(chain); item; item = item->pNext)
        if (holds(item)) return item;
    return find_in_room(enables, holds);
}

// A zeroed struct in the host's room, which has been found large enough.
void* take_room(FoveaDeviceEnables& enables, size_t size_bytes) {
    void* place = &enables.room[enables.room_used];
    enables.room_used += words_of(size_bytes);
    memset(place, 0, size_bytes);
    return place;
}

void enable(const Switch& s, FoveaDeviceEnables& enables) {
    VkBaseOutStructure* item = holder_of(s, enables);
    if (!item) {
        item = static_cast<VkBaseOutStructure*>(take_room(enables, s.size_bytes));
        item->sType = s.type;
    }
    turn_on(item, item->sType == s.type ? s.offset : s.core_offset);
}

bool has_extension(const FoveaDeviceEnables& enables, const char* name) {
    for (uint32_t i = 0; i < enables.extension_count; ++i)
        if (strcmp(enables.extensions[i], name) == 0) return true;
    return false;
}

// Checks that everything to be added has room, so that a failure changes nothing.
FoveaResult check_room(const FoveaDeviceNeeds& needs, FoveaDeviceEnables& enables, FoveaDiag* diag) {
    uint32_t words = enables.room_first ? 0 : words_of(sizeof(VkPhysicalDeviceFeatures2));
    uint32_t extensions = enables.extension_count;
    VkStructureType counted[FOVEA_MAX_NEEDED_EXTENSIONS];
    uint32_t counted_count = 0;
    for (uint32_t i = 0; i < needs.count; ++i) {
        const FoveaDeviceNeed& need = needs.items[i];
        if (!need.available) continue;
        if (need.extension && !has_extension(enables, need.extension)) ++extensions;  // some of them twice
        if (!need.feature) continue;
        const Switch* found = find_switch(need.feature);
        if (!found)
            return fail(diag, FOVEA_INVALID_ARGUMENT, "needs.items",
                        "needs.items[%u].feature is %s, which this library does not know", i, need.feature);
        bool known = holder_of(*found, enables) != nullptr;
        for (uint32_t n = 0; n < counted_count; ++n) known |= counted[n] == found->type;
        if (known) continue;
        counted[counted_count++] = found->type;
        words += words_of(found->size_bytes);
    }
    if (extensions > FOVEA_MAX_ENABLED_EXTENSIONS)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "extension_count",
                    "extension_count is %u; with what Fovea adds it may pass the limit, %u",
                    enables.extension_count, unsigned{FOVEA_MAX_ENABLED_EXTENSIONS});
    if (words > FOVEA_ENABLE_ROOM_WORDS - enables.room_used)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "room_used",
                    "room_used is %u words of %u; %u more are needed", enables.room_used,
                    unsigned{FOVEA_ENABLE_ROOM_WORDS}, words);
    return FOVEA_OK;
}

FoveaResult check_given(const FoveaDeviceEnables& enables, FoveaDiag* diag) {
    if (enables.extension_count > FOVEA_MAX_ENABLED_EXTENSIONS)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "extension_count", "extension_count is %u; the limit is %u",
                    enables.extension_count, unsigned{FOVEA_MAX_ENABLED_EXTENSIONS});
    for (uint32_t i = 0; i < enables.extension_count; ++i)
        if (!enables.extensions[i])
            return fail(diag, FOVEA_INVALID_ARGUMENT, "extensions", "extensions[%u] is null", i);
    if (enables.room_used > FOVEA_ENABLE_ROOM_WORDS)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "room_used",
                    "room_used is %u; leave it to foveaEnableNeeds", enables.room_used);
    if (enables.room_first > enables.room_used)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "room_first",
                    "room_first is %u; leave it to foveaEnableNeeds", enables.room_first);
    if (enables.features && enables.features->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "features.sType",
                    "features.sType is %d; it must be VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2",
                    int(enables.features->sType));
    return FOVEA_OK;
}

}  // namespace
}  // namespace fovea::vulkan

using namespace fovea;
using namespace fovea::vulkan;

FoveaResult foveaEnableNeeds(const FoveaDeviceNeeds* given, FoveaDeviceEnables* enables, FoveaDiag* diag) {
    FoveaDeviceNeeds needs;
    if (FoveaResult r = read_struct(given, needs, "needs", diag)) return r;
    if (!enables) return fail(diag, FOVEA_INVALID_ARGUMENT, "enables", "enables is null");
    // It is written in place: so it must be whole.
    if (enables->struct_size != sizeof *enables)
        return fail(diag, FOVEA_ABI_MISMATCH, "struct_size",
                    "enables.struct_size is %u; this library's FoveaDeviceEnables has %zu bytes",
                    enables->struct_size, sizeof *enables);
    if (needs.count > FOVEA_MAX_NEEDED_EXTENSIONS)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "needs.count", "needs.count is %u; the limit is %u",
                    needs.count, unsigned{FOVEA_MAX_NEEDED_EXTENSIONS});
    if (FoveaResult r = check_given(*enables, diag)) return r;
    if (FoveaResult r = check_room(needs, *enables, diag)) return r;
    if (!enables->room_first) {
        const uint32_t first = enables->room_used + 1;
        take_room(*enables, sizeof(VkPhysicalDeviceFeatures2));
        enables->room_first = first;
        features_in_room(*enables)->sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    }
    for (uint32_t i = 0; i < needs.count; ++i) {
        const FoveaDeviceNeed& need = needs.items[i];
        if (!need.available) continue;
        if (need.extension && !has_extension(*enables, need.extension))
            enables->extensions[enables->extension_count++] = need.extension;
        if (need.feature) enable(*find_switch(need.feature), *enables);
    }
    return FOVEA_OK;
}

VkPhysicalDeviceFeatures2* foveaEnabledFeatures(FoveaDeviceEnables* enables) {
    if (!enables || enables->struct_size != sizeof *enables) return nullptr;
    VkPhysicalDeviceFeatures2* features = features_in_room(*enables);
    if (!features || enables->room_first > enables->room_used) return enables->features;
    if (enables->features) *features = *enables->features;
    void* rest = enables->features ? enables->features->pNext : nullptr;
    auto* last = reinterpret_cast<VkBaseOutStructure*>(features);
    find_in_room(*enables, [&](VkBaseOutStructure* item) {
        last = last->pNext = item;
        return false;
    });
    last->pNext = static_cast<VkBaseOutStructure*>(rest);
    return features;
}

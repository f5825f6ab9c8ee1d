// Features of a device, as it reports them or as a host enabled them: both are the same chain of structs.
#include "vulkan/device_query.hpp"

#include <cstring>

namespace fovea::vulkan {
namespace {

// Every struct that can contain one of our features. Each is read from an application's chain or queried from
// a device.
struct FeatureStructs {
    VkPhysicalDevice16BitStorageFeatures storage_16bit{};
    VkPhysicalDeviceShaderFloat16Int8Features float16{};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size{};
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat{};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16{};
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV coopmat2{};
    VkPhysicalDeviceMaintenance4Features maintenance4{};
    VkPhysicalDeviceFaultFeaturesEXT fault{};
    // The same features again, by core version: a chain has one kind or the other.
    VkPhysicalDeviceVulkan11Features core11{};
    VkPhysicalDeviceVulkan12Features core12{};
    VkPhysicalDeviceVulkan13Features core13{};
    VkPhysicalDeviceVulkan14Features core14{};
};

template <class T>
void take(const VkBaseInStructure* item, T& to) {
    memcpy(static_cast<void*>(&to), item, sizeof to);
}

void read_chain(const void* chain, FeatureStructs& out) {
    for (auto item = static_cast<const VkBaseInStructure*>(chain); item; item = item->pNext) {
        switch (int(item->sType)) {  // the header's enum may be older than what it is compared with
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES:
                take(item, out.storage_16bit);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES:
                take(item, out.float16);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES:
                take(item, out.subgroup_size);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES:
                take(item, out.memory_model);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR:
                take(item, out.coopmat);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR:
                take(item, out.bfloat16);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV:
                take(item, out.coopmat2);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES:
                take(item, out.maintenance4);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT:
                take(item, out.fault);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
                take(item, out.core11);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
                take(item, out.core12);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES:
                take(item, out.core13);
                break;
            case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_4_FEATURES:
                take(item, out.core14);
                break;
            default:
                break;
        }
    }
}

// A feature counts only where its extension is present or its core version reached.
Features judge(const FeatureStructs& f, uint32_t api_version, uint32_t extensions) {
    const auto usable = [&](Extension extension, uint32_t core) {
        return (extensions & extension) != 0 || api_version >= core;
    };
    Features out{};
    out.storage_16bit = f.storage_16bit.storageBuffer16BitAccess || f.core11.storageBuffer16BitAccess;
    out.float16 =
        usable(kExtFloat16Int8, VK_API_VERSION_1_2) && (f.float16.shaderFloat16 || f.core12.shaderFloat16);
    if (usable(kExtSubgroupSizeControl, VK_API_VERSION_1_3)) {
        out.subgroup_size_control = f.subgroup_size.subgroupSizeControl || f.core13.subgroupSizeControl;
        out.full_subgroups = f.subgroup_size.computeFullSubgroups || f.core13.computeFullSubgroups;
    }
    out.memory_model = usable(kExtMemoryModel, VK_API_VERSION_1_2) &&
                       (f.memory_model.vulkanMemoryModel || f.core12.vulkanMemoryModel);
    out.device_scope = out.memory_model &&
                       (f.memory_model.vulkanMemoryModelDeviceScope || f.core12.vulkanMemoryModelDeviceScope);
    out.device_atomics = !out.memory_model || out.device_scope;
    out.coopmat = (extensions & kExtCoopmat) && out.memory_model && f.coopmat.cooperativeMatrix;
    out.bfloat16_matrices = out.coopmat && (extensions & kExtBfloat16) && f.bfloat16.shaderBFloat16Type &&
                            f.bfloat16.shaderBFloat16CooperativeMatrix;
    const VkPhysicalDeviceCooperativeMatrix2FeaturesNV& two = f.coopmat2;
    // Modules of SPIR-V 1.6 set workgroup sizes by specialization, which needs maintenance4.
    out.maintenance4 =
        api_version >= VK_API_VERSION_1_3 && (f.maintenance4.maintenance4 || f.core13.maintenance4);
    out.coopmat2 = out.coopmat && out.maintenance4 && (extensions & kExtCoopmat2) &&
                   two.cooperativeMatrixFlexibleDimensions && two.cooperativeMatrixReductions &&
                   two.cooperativeMatrixConversions && two.cooperativeMatrixPerElementOperations;
    out.workgroup_matrices = out.coopmat2 && two.cooperativeMatrixWorkgroupScope;
    out.device_fault = (extensions & kExtDeviceFault) && f.fault.deviceFault;
    if (extensions & kExtPushDescriptor)
        out.push_function = "vkCmdPushDescriptorSetKHR";
    else if (api_version >= VK_API_VERSION_1_4 && f.core14.pushDescriptor)
        out.push_function = "vkCmdPushDescriptorSet";
    out.push_descriptors = out.push_function != nullptr;
    return out;
}

template <class T>
void append(VkBaseOutStructure*& tail, T& item, VkStructureType type) {
    item.sType = type;
    tail->pNext = reinterpret_cast<VkBaseOutStructure*>(&item);
    tail = tail->pNext;
}

}  // namespace

uint32_t extension_bit(const char* name) {
    static constexpr struct {
        const char* name;
        Extension bit;
    } kExtensions[] = {
        {VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME, kExtPushDescriptor},
        {VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, kExtFloat16Int8},
        {VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, kExtSubgroupSizeControl},
        {VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, kExtMemoryModel},
        {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, kExtCoopmat},
        {VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, kExtBfloat16},
        {VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME, kExtCoopmat2},
        {VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, kExtSmBuiltins},
        {VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME, kExtAmdCores},
        {VK_EXT_DEVICE_FAULT_EXTENSION_NAME, kExtDeviceFault},
        {"VK_KHR_portability_subset", kExtPortability},  // in headers a beta extension
    };
    for (const auto& known : kExtensions) {
        if (strcmp(known.name, name) == 0) return known.bit;
    }
    return 0;
}

Features supported_features(const InstanceTable& vk, VkPhysicalDevice handle, uint32_t api_version,
                            uint32_t extensions) {
    FeatureStructs f;
    VkPhysicalDeviceFeatures2 features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    auto* tail = reinterpret_cast<VkBaseOutStructure*>(&features);
    append(tail, f.storage_16bit, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
    if ((extensions & kExtFloat16Int8) || api_version >= VK_API_VERSION_1_2)
        append(tail, f.float16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
    if ((extensions & kExtMemoryModel) || api_version >= VK_API_VERSION_1_2)
        append(tail, f.memory_model, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
    if ((extensions & kExtSubgroupSizeControl) || api_version >= VK_API_VERSION_1_3)
        append(tail, f.subgroup_size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
    if (extensions & kExtCoopmat)
        append(tail, f.coopmat, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    if (extensions & kExtBfloat16)
        append(tail, f.bfloat16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR);
    if (extensions & kExtCoopmat2)
        append(tail, f.coopmat2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV);
    if (api_version >= VK_API_VERSION_1_3)
        append(tail, f.maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
    if (extensions & kExtDeviceFault)
        append(tail, f.fault, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT);
    if (api_version >= VK_API_VERSION_1_4)
        append(tail, f.core14, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_4_FEATURES);
    vk.vkGetPhysicalDeviceFeatures2(handle, &features);
    return judge(f, api_version, extensions);
}

Features enabled_features(const PhysicalDevice& device, const VkPhysicalDeviceFeatures2* chain,
                          uint32_t enabled_extensions) {
    FeatureStructs f;
    read_chain(chain, f);
    Features out = judge(f, device.api_version, enabled_extensions);
    // The application cannot have enabled a feature that the device lacks. Its mistake must not select a
    // kernel that needs the feature.
    const Features& has = device.features;
    out.storage_16bit &= has.storage_16bit;
    out.float16 &= has.float16;
    out.subgroup_size_control &= has.subgroup_size_control;
    out.full_subgroups &= has.full_subgroups;
    out.memory_model &= has.memory_model;
    out.coopmat &= has.coopmat;
    out.bfloat16_matrices &= has.bfloat16_matrices;
    out.coopmat2 &= has.coopmat2;
    out.workgroup_matrices &= has.workgroup_matrices;
    out.device_fault &= has.device_fault;
    return out;
}

}  // namespace fovea::vulkan

#include "vulkan/device_query.hpp"

#include "plan/vulkan/limits.hpp"
#include "problem/host_memory.hpp"
#include "problem/status.hpp"

#include <algorithm>

namespace fovea::vulkan {
namespace {

FoveaResult below_floor(FoveaDiag* diag, const char* field, const char* device, uint32_t has,
                        uint32_t needs) {
    return fail(diag, FOVEA_UNSUPPORTED, field, "%s: %s is %u; at least %u is needed", device, field, has,
                needs);
}

FoveaResult check_version(const char* device, uint32_t host, uint32_t own, FoveaDiag* diag) {
    if (host < VK_API_VERSION_1_1)
        return fail(diag, FOVEA_UNSUPPORTED, "api_version",
                    "api_version is %u.%u; instance and device must be created with 1.1 or later",
                    VK_API_VERSION_MAJOR(host), VK_API_VERSION_MINOR(host));
    if (own < VK_API_VERSION_1_1)
        return fail(diag, FOVEA_UNSUPPORTED, "apiVersion", "%s has Vulkan %u.%u; at least 1.1 is needed",
                    device, VK_API_VERSION_MAJOR(own), VK_API_VERSION_MINOR(own));
    return FOVEA_OK;
}

// Every limit of the specification's table "Required Limits" that a pipeline layout, a descriptor, a dispatch
// or a timestamp of the recorder comes near, in its order there. Those that have a place in the properties
// are compared with each plan; the others with what all plans need.
FoveaResult check_limits(const char* device, const VkPhysicalDeviceLimits& l, FoveaDiag* diag) {
    const struct {
        const char* field;
        uint32_t has, needs;
    } floor[] = {
        {"maxStorageBufferRange", l.maxStorageBufferRange, kMinStorageRange},
        {"maxPushConstantsSize", l.maxPushConstantsSize, kMinPushBytes},
        {"maxBoundDescriptorSets", l.maxBoundDescriptorSets, 1},  // set 0
        {"maxPerStageDescriptorStorageBuffers", l.maxPerStageDescriptorStorageBuffers, kMinStorageBuffers},
        {"maxPerStageResources", l.maxPerStageResources, kMinStorageBuffers},
        {"maxDescriptorSetStorageBuffers", l.maxDescriptorSetStorageBuffers, kMinStorageBuffers},
        {"maxComputeSharedMemorySize", l.maxComputeSharedMemorySize, kMinSharedBytes},
        {"maxComputeWorkGroupCount[0]", l.maxComputeWorkGroupCount[0], 1},
        {"maxComputeWorkGroupCount[1]", l.maxComputeWorkGroupCount[1], 1},
        {"maxComputeWorkGroupCount[2]", l.maxComputeWorkGroupCount[2], 1},
        {"maxComputeWorkGroupInvocations", l.maxComputeWorkGroupInvocations, kMinInvocations},
        {"maxComputeWorkGroupSize[0]", l.maxComputeWorkGroupSize[0], kMinInvocations},
        {"maxComputeWorkGroupSize[1]", l.maxComputeWorkGroupSize[1], 1},
        {"maxComputeWorkGroupSize[2]", l.maxComputeWorkGroupSize[2], 1},
    };
    for (const auto& [field, has, needs] : floor)
        if (has < needs) return below_floor(diag, field, device, has, needs);
    const VkDeviceSize alignment = l.minStorageBufferOffsetAlignment;
    if (alignment == 0 || alignment > kWorkspaceAlignment || (alignment & (alignment - 1)) != 0)
        return fail(diag, FOVEA_UNSUPPORTED, "minStorageBufferOffsetAlignment",
                    "%s: minStorageBufferOffsetAlignment is %llu; it must be a power of two up to %u", device,
                    static_cast<unsigned long long>(alignment), unsigned(kWorkspaceAlignment));
    return FOVEA_OK;
}

FoveaResult check_queues(const InstanceTable& vk, PhysicalDevice& device, FoveaDiag* diag) {
    constexpr uint32_t kMaxFamilies = 32;  // drivers have up to about eight
    VkQueueFamilyProperties families[kMaxFamilies];
    uint32_t count = kMaxFamilies;
    vk.vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families);
    bool compute = false;
    for (uint32_t i = 0; i < count; ++i) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        compute = true;
        device.timestamps |= families[i].timestampValidBits > 0;
    }
    if (!compute)
        return fail(diag, FOVEA_UNSUPPORTED, "queueFlags",
                    "%s has no queue family with VK_QUEUE_COMPUTE_BIT; one is needed",
                    device.vulkan_properties.deviceName);
    return FOVEA_OK;
}

FoveaResult list_extensions(const InstanceTable& vk, PhysicalDevice& device, const FoveaHostAllocator& memory,
                            FoveaDiag* diag) {
    uint32_t count = 0;
    VkResult result = vk.vkEnumerateDeviceExtensionProperties(device.handle, nullptr, &count, nullptr);
    if (result != VK_SUCCESS) return fail_vulkan(diag, result, "vkEnumerateDeviceExtensionProperties");
    if (count == 0) return FOVEA_OK;
    HostArray<VkExtensionProperties> list(memory, count);
    if (!list.data())
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "allocator", "no memory for %u extension names", count);
    result = vk.vkEnumerateDeviceExtensionProperties(device.handle, nullptr, &count, list.data());
    // VK_INCOMPLETE: a layer appeared in between. What was written is true all the same.
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return fail_vulkan(diag, result, "vkEnumerateDeviceExtensionProperties");
    for (uint32_t i = 0; i < count; ++i) device.extensions |= extension_bit(list.data()[i].extensionName);
    return FOVEA_OK;
}

// True for a subgroup's matrices with operands of this type and float32 sums.
bool has_factors(const VkCooperativeMatrixPropertiesKHR& p, VkComponentTypeKHR factors) {
    return p.AType == factors && p.BType == factors && p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
           p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR && p.scope == VK_SCOPE_SUBGROUP_KHR;
}

// Chooses among the shapes with float16 operands and float32 sums: 16x16x16 if it exists, else the largest.
// Drivers list the same shape several times, for saturating or integer kinds. bfloat16 counts only in the
// chosen shape, which every known driver with bfloat16 has.
void choose_shape(const VkCooperativeMatrixPropertiesKHR* list, uint32_t count, PhysicalDevice& device) {
    FoveaDeviceProperties& properties = device.properties;
    uint64_t best = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const VkCooperativeMatrixPropertiesKHR& p = list[i];
        if (!has_factors(p, VK_COMPONENT_TYPE_FLOAT16_KHR)) continue;
        uint64_t score = uint64_t{p.MSize} * p.NSize * p.KSize;
        if (p.MSize == 16 && p.NSize == 16 && p.KSize == 16) score = UINT64_MAX;
        if (score <= best) continue;
        best = score;
        properties.coopmat_m = p.MSize;
        properties.coopmat_n = p.NSize;
        properties.coopmat_k = p.KSize;
    }
    for (uint32_t i = 0; i < count; ++i) {
        const VkCooperativeMatrixPropertiesKHR& p = list[i];
        device.lists_bfloat16 |= has_factors(p, VK_COMPONENT_TYPE_BFLOAT16_KHR) &&
                                 p.MSize == properties.coopmat_m && p.NSize == properties.coopmat_n &&
                                 p.KSize == properties.coopmat_k;
    }
}

FoveaResult query_coopmat(const InstanceTable& vk, PhysicalDevice& device, const FoveaHostAllocator& memory,
                          FoveaDiag* diag) {
    const auto query = vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
    if (!query || !(device.extensions & kExtCoopmat)) return FOVEA_OK;
    uint32_t count = 0;
    VkResult result = query(device.handle, &count, nullptr);
    if (result != VK_SUCCESS)
        return fail_vulkan(diag, result, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    if (count == 0) return FOVEA_OK;
    HostArray<VkCooperativeMatrixPropertiesKHR> list(memory, count);
    if (!list.data())
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "allocator", "no memory for %u matrix shapes", count);
    for (uint32_t i = 0; i < count; ++i)
        list.data()[i] = {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
    result = query(device.handle, &count, list.data());
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return fail_vulkan(diag, result, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    choose_shape(list.data(), count, device);
    return FOVEA_OK;
}

// A workgroup of few threads comes first: its shared memory then serves more workgroups of a core.
void choose_flexible(const VkCooperativeMatrixFlexibleDimensionsPropertiesNV* list, uint32_t count,
                     PhysicalDevice& device) {
    for (uint32_t i = 0; i < count; ++i) {
        const VkCooperativeMatrixFlexibleDimensionsPropertiesNV& p = list[i];
        if (p.AType != VK_COMPONENT_TYPE_FLOAT16_KHR || p.BType != VK_COMPONENT_TYPE_FLOAT16_KHR ||
            p.CType != VK_COMPONENT_TYPE_FLOAT32_KHR || p.ResultType != VK_COMPONENT_TYPE_FLOAT32_KHR)
            continue;
        const FlexibleMatrices found{p.MGranularity, p.NGranularity, p.KGranularity, p.workgroupInvocations};
        FlexibleMatrices& best = device.workgroup_matrices;
        if (p.scope == VK_SCOPE_SUBGROUP_KHR)
            device.subgroup_matrices = {found.m, found.n, found.k, 0};
        else if (p.scope == VK_SCOPE_WORKGROUP_KHR && found.threads &&
                 (!best.threads || found.threads < best.threads))
            best = found;
    }
}

FoveaResult query_flexible(const InstanceTable& vk, PhysicalDevice& device, const FoveaHostAllocator& memory,
                           FoveaDiag* diag) {
    const auto query = vk.vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV;
    constexpr const char* kCall = "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV";
    if (!query || !(device.extensions & kExtCoopmat2)) return FOVEA_OK;
    uint32_t count = 0;
    VkResult result = query(device.handle, &count, nullptr);
    if (result != VK_SUCCESS) return fail_vulkan(diag, result, kCall);
    if (count == 0) return FOVEA_OK;
    HostArray<VkCooperativeMatrixFlexibleDimensionsPropertiesNV> list(memory, count);
    if (!list.data())
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "allocator", "no memory for %u matrix shapes", count);
    for (uint32_t i = 0; i < count; ++i)
        list.data()[i] = {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV};
    result = query(device.handle, &count, list.data());
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return fail_vulkan(diag, result, kCall);
    choose_flexible(list.data(), count, device);
    return FOVEA_OK;
}

// Properties beyond the core limits: subgroups, the number of cores, flexible matrices.
struct ExtendedProperties {
    VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceSubgroupSizeControlProperties sizes{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
    VkPhysicalDeviceShaderCorePropertiesAMD amd{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
    VkPhysicalDeviceCooperativeMatrix2PropertiesNV coopmat2{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV};
    VkPhysicalDevicePushDescriptorPropertiesKHR push{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR};
};

void query_properties(const InstanceTable& vk, const PhysicalDevice& device, bool subgroup_sizes,
                      ExtendedProperties& out) {
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    properties.pNext = &out.subgroup;
    void** tail = &out.subgroup.pNext;
    const auto append = [&tail](auto& item) {
        *tail = &item;
        tail = &item.pNext;
    };
    if (subgroup_sizes) append(out.sizes);
    if (device.extensions & kExtSmBuiltins) append(out.nvidia);
    if (device.extensions & kExtAmdCores) append(out.amd);
    if (device.extensions & kExtCoopmat2) append(out.coopmat2);
    if (device.features.push_descriptors) append(out.push);
    vk.vkGetPhysicalDeviceProperties2(device.handle, &properties);
}

void fill_properties(const InstanceTable& vk, PhysicalDevice& device) {
    const VkPhysicalDeviceLimits& limits = device.vulkan_properties.limits;
    const bool subgroup_sizes =
        (device.extensions & kExtSubgroupSizeControl) || device.api_version >= VK_API_VERSION_1_3;
    ExtendedProperties more;
    query_properties(vk, device, subgroup_sizes, more);

    FoveaDeviceProperties& properties = device.properties;
    properties.struct_size = sizeof properties;
    properties.backend = FOVEA_BACKEND_VULKAN;
    properties.device_class = device_class_of(device.vulkan_properties.deviceType);
    properties.max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
    properties.max_shared_bytes = limits.maxComputeSharedMemorySize;
    properties.max_push_bytes = limits.maxPushConstantsSize;
    for (int i = 0; i < 3; ++i) properties.max_workgroup_count[i] = limits.maxComputeWorkGroupCount[i];
    properties.subgroup_size = more.subgroup.subgroupSize;
    properties.min_subgroup_size = subgroup_sizes ? more.sizes.minSubgroupSize : properties.subgroup_size;
    properties.max_subgroup_size = subgroup_sizes ? more.sizes.maxSubgroupSize : properties.subgroup_size;
    properties.storage_offset_alignment = static_cast<uint32_t>(limits.minStorageBufferOffsetAlignment);
    properties.max_storage_range = limits.maxStorageBufferRange;
    properties.vendor_id = device.vulkan_properties.vendorID;
    properties.max_storage_buffers =
        std::min({limits.maxPerStageDescriptorStorageBuffers, limits.maxPerStageResources,
                  limits.maxDescriptorSetStorageBuffers});
    properties.max_workgroup_subgroups = subgroup_sizes ? more.sizes.maxComputeWorkgroupSubgroups : 0;
    device.max_push_descriptors = more.push.maxPushDescriptors;
    properties.core_count = more.nvidia.shaderSMCount
                                ? more.nvidia.shaderSMCount
                                : more.amd.shaderEngineCount * more.amd.shaderArraysPerEngineCount *
                                      more.amd.computeUnitsPerShaderArray;
    properties.coopmat2_max_side = more.coopmat2.cooperativeMatrixFlexibleDimensionsMaxDimension;
    properties.coopmat2_reserved_bytes = more.coopmat2.cooperativeMatrixWorkgroupScopeReservedSharedMemory;

    if (more.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) {
        if (more.subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT)
            properties.features |= FOVEA_FEATURE_SUBGROUP_ARITHMETIC;
        if (more.subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT)
            properties.features |= FOVEA_FEATURE_SUBGROUP_SHUFFLE;
    }
    if (device.timestamps) properties.features |= FOVEA_FEATURE_TIMESTAMPS;
    // Where there is but one size, it need not be required: NVK, and AMD's chips before RDNA, let no stage do
    // it.
    const bool fixed = subgroup_sizes && properties.min_subgroup_size == properties.max_subgroup_size;
    if (!fixed && !(more.sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT))
        device.features.subgroup_size_control = false;
}

}  // namespace

FoveaResult query_physical_device(const InstanceTable& vk, VkPhysicalDevice handle, uint32_t api_version,
                                  const FoveaHostAllocator& memory, PhysicalDevice& out, FoveaDiag* diag) {
    out = PhysicalDevice{};
    out.handle = handle;
    vk.vkGetPhysicalDeviceProperties(handle, &out.vulkan_properties);
    const char* name = out.vulkan_properties.deviceName;
    if (FoveaResult r = check_version(name, api_version, out.vulkan_properties.apiVersion, diag)) return r;
    if (FoveaResult r = check_limits(name, out.vulkan_properties.limits, diag)) return r;
    out.api_version =
        api_version < out.vulkan_properties.apiVersion ? api_version : out.vulkan_properties.apiVersion;
    if (FoveaResult r = check_queues(vk, out, diag)) return r;
    if (FoveaResult r = list_extensions(vk, out, memory, diag)) return r;
    out.features = supported_features(vk, handle, out.api_version, out.extensions);
    if (FoveaResult r = query_coopmat(vk, out, memory, diag)) return r;
    if (FoveaResult r = query_flexible(vk, out, memory, diag)) return r;
    fill_properties(vk, out);
    return FOVEA_OK;
}

}  // namespace fovea::vulkan

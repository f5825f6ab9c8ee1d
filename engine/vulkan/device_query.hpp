// Queries what a physical device supports, and what the application enabled, as Fovea's properties.
#pragma once

#include "problem/abi_fields.hpp"
#include "vulkan/vk_table.hpp"

#include <cstdint>

namespace fovea {
// The list of an older host is shorter: it ends after any of its items.
template <>
struct FieldsOf<FoveaRecommendedFeatures> {
    static bool end_inside(const FoveaRecommendedFeatures&, size_t size) {
        constexpr size_t kHead = offsetof(FoveaRecommendedFeatures, items);
        return size < kHead ? size != sizeof(uint32_t)
                            : size < sizeof(FoveaRecommendedFeatures) &&
                                  (size - kHead) % sizeof(FoveaRecommendedFeature) != 0;
    }
};
}  // namespace fovea

namespace fovea::vulkan {

// The minimum requirements for a context (Vulkan 1.1, 128 invocations, 16 KiB, 128 bytes).
constexpr uint32_t kMinInvocations = 128;
constexpr uint32_t kMinSharedBytes = 16 * 1024;
constexpr uint32_t kMinPushBytes = 128;
// The least that Vulkan lets a device have; which plans it can serve is decided when they are made.
constexpr uint32_t kMinStorageBuffers = 4;

// Device extensions that matter here, one bit each.
enum Extension : uint32_t {
    kExtPushDescriptor = 1u << 0,
    kExtFloat16Int8 = 1u << 1,
    kExtSubgroupSizeControl = 1u << 2,
    kExtMemoryModel = 1u << 3,
    kExtCoopmat = 1u << 4,
    kExtCoopmat2 = 1u << 5,
    kExtSmBuiltins = 1u << 6,
    kExtAmdCores = 1u << 7,
    kExtDeviceFault = 1u << 8,
    kExtPortability = 1u << 9,
    kExtBfloat16 = 1u << 10,
};
uint32_t extension_bit(const char* name);  // 0: not one of them

// Features, either those that a device has or those that a host enabled.
struct Features {
    bool storage_16bit, float16, subgroup_size_control, full_subgroups, memory_model, coopmat;
    bool device_scope;    // device scope of the memory model
    bool device_atomics;  // not forbidden by a memory model without device scope
    bool maintenance4;
    bool bfloat16_matrices;   // with coopmat: the type of their operands
    bool coopmat2;            // the parts of VK_NV_cooperative_matrix2 that the kernels use
    bool workgroup_matrices;  // with coopmat2: a workgroup may share a matrix
    bool push_descriptors;
    bool device_fault;          // the reason of a loss can be asked for
    const char* push_function;  // vkCmdPushDescriptorSet or its KHR name; null without push_descriptors
};

// Float16 operands and float32 sums of flexible dimensions, as in the device properties.
struct FlexibleMatrices {
    uint32_t m, n, k;  // 0: none
    uint32_t threads;  // 0: of subgroups
};

struct PhysicalDevice {
    VkPhysicalDevice handle;
    uint32_t api_version;  // the lower of the application's and the device's version
    uint32_t extensions;   // Extension bits of the device
    VkPhysicalDeviceProperties vulkan_properties;
    Features features;              // what the device supports
    bool timestamps;                // some compute queue has them
    uint32_t max_push_descriptors;  // 0: no extension, no core version that has them
    FlexibleMatrices subgroup_matrices, workgroup_matrices;
    bool lists_bfloat16;               // bfloat16 operands in the shape of coopmat_*
    FoveaDeviceProperties properties;  // without `features`, which depend on what the host enables
};

inline FoveaDeviceClass device_class_of(VkPhysicalDeviceType type) {
    switch (type) {
        case VK_PHYSICAL_DEVICE_TYPE_CPU:
            return FOVEA_CLASS_CPU;
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return FOVEA_CLASS_DISCRETE;
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
            return FOVEA_CLASS_VIRTUAL;
        default:
            return FOVEA_CLASS_INTEGRATED;
    }
}

// Fails with the reason for a device below the minimum requirements. `memory` serves lists that live during
// the call.
FoveaResult query_physical_device(const InstanceTable& vk, VkPhysicalDevice handle, uint32_t api_version,
                                  const FoveaHostAllocator& memory, PhysicalDevice& out, FoveaDiag* diag);

// As the device reports them.
Features supported_features(const InstanceTable& vk, VkPhysicalDevice handle, uint32_t api_version,
                            uint32_t extensions);

// Features among those enabled with vkCreateDevice, as far as the device really has them.
Features enabled_features(const PhysicalDevice& device, const VkPhysicalDeviceFeatures2* chain,
                          uint32_t enabled_extensions);

}  // namespace fovea::vulkan

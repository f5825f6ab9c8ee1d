// What a device is created with beyond the floor, so that the engine may choose its kernels of subgroups and
// cooperative matrices.
#pragma once

#include <volk.h>

#include <vector>

namespace fovea::visualizer {

struct EngineFeatures {
    VkPhysicalDeviceShaderFloat16Int8Features float16{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};

    // Takes what the device offers; the chain of feature structs, which ends in `rest`, to be asked for.
    template <class Offers>
    void* chain(const Offers& offers, std::vector<const char*>& extensions, void* rest) {
        const auto take = [&](const char* name, auto& feature) {
            if (!offers(name)) return;
            extensions.push_back(name);
            feature.pNext = rest;
            rest = &feature;
        };
        take(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, float16);
        take(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, memory_model);
        take(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, subgroup_size);
        take(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, coopmat);
        return rest;
    }
    // Leaves on what has a use here, once the device has said what it has.
    void keep_useful() {
        float16.shaderInt8 = VK_FALSE;
        memory_model.vulkanMemoryModelAvailabilityVisibilityChains = VK_FALSE;
        coopmat.cooperativeMatrixRobustBufferAccess = VK_FALSE;
    }
};

}  // namespace fovea::visualizer

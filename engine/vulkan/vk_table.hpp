// The Vulkan entry points that the recorder calls, fetched through the host's getters. Nothing is linked.
#pragma once

#include "vulkan/bfloat16.hpp"

#include <fovea/fovea_vulkan.h>

namespace fovea::vulkan {

// Asked about a physical device, before there is a device. Optional ones may be null.
#define FOVEA_VK_INSTANCE_CALLS(call)                                                     \
    call(vkGetPhysicalDeviceProperties) call(vkGetPhysicalDeviceProperties2)              \
        call(vkGetPhysicalDeviceFeatures2) call(vkGetPhysicalDeviceQueueFamilyProperties) \
            call(vkEnumerateDeviceExtensionProperties)

#define FOVEA_VK_DEVICE_CALLS(call)                                                                       \
    call(vkCreatePipelineCache) call(vkDestroyPipelineCache) call(vkGetPipelineCacheData)                 \
        call(vkCreateShaderModule) call(vkDestroyShaderModule) call(vkCreateDescriptorSetLayout)          \
            call(vkDestroyDescriptorSetLayout) call(vkCreatePipelineLayout) call(vkDestroyPipelineLayout) \
                call(vkCreateComputePipelines) call(vkDestroyPipeline) call(vkAllocateDescriptorSets)     \
                    call(vkUpdateDescriptorSets) call(vkCmdBindPipeline) call(vkCmdBindDescriptorSets)    \
                        call(vkCmdPushConstants) call(vkCmdDispatch) call(vkCmdPipelineBarrier)           \
                            call(vkCmdWriteTimestamp)

struct InstanceTable {
#define FOVEA_VK_MEMBER(name) PFN_##name name;
    FOVEA_VK_INSTANCE_CALLS(FOVEA_VK_MEMBER)
    // Null where the extension is missing.
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
    PFN_vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV
        vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV;
};

struct DeviceTable {
    FOVEA_VK_DEVICE_CALLS(FOVEA_VK_MEMBER)
#undef FOVEA_VK_MEMBER
    // Null where not enabled.
    PFN_vkCmdPushDescriptorSetKHR vkCmdPushDescriptorSet;
    PFN_vkGetDeviceFaultInfoEXT vkGetDeviceFaultInfoEXT;
    PFN_vkSetDebugUtilsObjectNameEXT vkSetDebugUtilsObjectNameEXT;
    PFN_vkCmdBeginDebugUtilsLabelEXT vkCmdBeginDebugUtilsLabelEXT;
    PFN_vkCmdEndDebugUtilsLabelEXT vkCmdEndDebugUtilsLabelEXT;
};

// A function that the driver lacks is rejected with an error that names it.
FoveaResult load_instance_table(PFN_vkGetInstanceProcAddr get, VkInstance instance, InstanceTable& out,
                                FoveaDiag* diag);

// `push_descriptors`: the name of the function to fetch, or null where the host enabled none. `device_fault`:
// fetch vkGetDeviceFaultInfoEXT.
FoveaResult load_device_table(PFN_vkGetInstanceProcAddr get_instance, VkInstance instance,
                              PFN_vkGetDeviceProcAddr get_device, VkDevice device,
                              const char* push_descriptors, bool device_fault, DeviceTable& out,
                              FoveaDiag* diag);

}  // namespace fovea::vulkan

#include "vulkan/vk_table.hpp"

#include "problem/status.hpp"

namespace fovea::vulkan {
namespace {

FoveaResult missing(const char* name, FoveaDiag* diag) {
    return fail(diag, FOVEA_UNSUPPORTED, name,
                "get_instance_proc_addr or get_device_proc_addr returned null for %s, which is needed", name);
}

}  // namespace

FoveaResult load_instance_table(PFN_vkGetInstanceProcAddr get, VkInstance instance, InstanceTable& out,
                                FoveaDiag* diag) {
    out = InstanceTable{};
#define FOVEA_VK_FETCH(name)                                       \
    out.name = reinterpret_cast<PFN_##name>(get(instance, #name)); \
    if (!out.name) return missing(#name, diag);
    FOVEA_VK_INSTANCE_CALLS(FOVEA_VK_FETCH)
#undef FOVEA_VK_FETCH
#define FOVEA_VK_FETCH(name) out.name = reinterpret_cast<PFN_##name>(get(instance, #name))
    FOVEA_VK_FETCH(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR);
    FOVEA_VK_FETCH(vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV);
#undef FOVEA_VK_FETCH
    return FOVEA_OK;
}

FoveaResult load_device_table(PFN_vkGetInstanceProcAddr get_instance, VkInstance instance,
                              PFN_vkGetDeviceProcAddr get_device, VkDevice device,
                              const char* push_descriptors, bool device_fault, DeviceTable& out,
                              FoveaDiag* diag) {
    out = DeviceTable{};
#define FOVEA_VK_FETCH(name)                                            \
    out.name = reinterpret_cast<PFN_##name>(get_device(device, #name)); \
    if (!out.name) return missing(#name, diag);
    FOVEA_VK_DEVICE_CALLS(FOVEA_VK_FETCH)
#undef FOVEA_VK_FETCH
    if (push_descriptors) {
        out.vkCmdPushDescriptorSet =
            reinterpret_cast<PFN_vkCmdPushDescriptorSetKHR>(get_device(device, push_descriptors));
        if (!out.vkCmdPushDescriptorSet) return missing(push_descriptors, diag);
    }
    if (device_fault)
        out.vkGetDeviceFaultInfoEXT =
            reinterpret_cast<PFN_vkGetDeviceFaultInfoEXT>(get_device(device, "vkGetDeviceFaultInfoEXT"));
        // An instance extension: only the instance's getter says whether the host enabled it.
#define FOVEA_VK_FETCH(name) out.name = reinterpret_cast<PFN_##name>(get_instance(instance, #name))
    FOVEA_VK_FETCH(vkSetDebugUtilsObjectNameEXT);
    FOVEA_VK_FETCH(vkCmdBeginDebugUtilsLabelEXT);
    FOVEA_VK_FETCH(vkCmdEndDebugUtilsLabelEXT);
#undef FOVEA_VK_FETCH
    if (!out.vkCmdBeginDebugUtilsLabelEXT || !out.vkCmdEndDebugUtilsLabelEXT)
        out.vkCmdBeginDebugUtilsLabelEXT = nullptr;
    return FOVEA_OK;
}

}  // namespace fovea::vulkan

// A Vulkan layer for tests: while the file that FOVEA_LOSE_DEVICE names exists, the next submission with a
// fence takes the file away and says that the device is lost, and so does every later call on that device.
// Only the second device, which compiles kernels, submits without a fence: its loss is never noticed.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Calls {
    PFN_vkGetDeviceProcAddr next = nullptr;
    PFN_vkQueueSubmit submit = nullptr;
    PFN_vkDestroyDevice destroy = nullptr;
    bool lost = false;
};

std::mutex mutex;
std::map<void*, PFN_vkGetInstanceProcAddr> instances;  // by the loader's dispatch table
std::map<void*, Calls> devices;

void* key_of(const void* handle) { return *static_cast<void* const*>(handle); }

template <class Info>
Info* link_of(const void* chain, VkStructureType type) {
    auto* at = const_cast<Info*>(static_cast<const Info*>(chain));
    while (at && !(at->sType == type && at->function == VK_LAYER_LINK_INFO))
        at = const_cast<Info*>(static_cast<const Info*>(at->pNext));
    return at;
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* info,
                                      VkFence fence) {
    const std::lock_guard lock(mutex);
    Calls& calls = devices.at(key_of(queue));
    const char* sign = std::getenv("FOVEA_LOSE_DEVICE");
    std::error_code none;
    if (sign && fence && std::filesystem::remove(sign, none)) calls.lost = true;
    return calls.lost ? VK_ERROR_DEVICE_LOST : calls.submit(queue, count, info, fence);
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* allocator) {
    const std::lock_guard lock(mutex);
    const auto found = devices.find(key_of(device));
    const PFN_vkDestroyDevice next = found->second.destroy;
    devices.erase(found);
    next(device, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* allocator, VkInstance* instance) {
    auto* link =
        link_of<VkLayerInstanceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
    if (!link) return VK_ERROR_INITIALIZATION_FAILED;
    const PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    const auto create = reinterpret_cast<PFN_vkCreateInstance>(next(VK_NULL_HANDLE, "vkCreateInstance"));
    const VkResult r = create(info, allocator, instance);
    if (r != VK_SUCCESS) return r;
    const std::lock_guard lock(mutex);
    instances[key_of(*instance)] = next;
    return r;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator, VkDevice* device) {
    auto* link = link_of<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
    if (!link) return VK_ERROR_INITIALIZATION_FAILED;
    const PFN_vkGetInstanceProcAddr instance_next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    const PFN_vkGetDeviceProcAddr next = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    const auto create = reinterpret_cast<PFN_vkCreateDevice>(instance_next(VK_NULL_HANDLE, "vkCreateDevice"));
    const VkResult r = create(physical, info, allocator, device);
    if (r != VK_SUCCESS) return r;
    Calls calls;
    calls.next = next;
    calls.submit = reinterpret_cast<PFN_vkQueueSubmit>(next(*device, "vkQueueSubmit"));
    calls.destroy = reinterpret_cast<PFN_vkDestroyDevice>(next(*device, "vkDestroyDevice"));
    const std::lock_guard lock(mutex);
    devices[key_of(*device)] = calls;
    return r;
}

}  // namespace

EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice device, const char* name) {
    if (std::strcmp(name, "vkGetDeviceProcAddr") == 0)
        return reinterpret_cast<PFN_vkVoidFunction>(vkGetDeviceProcAddr);
    if (std::strcmp(name, "vkQueueSubmit") == 0) return reinterpret_cast<PFN_vkVoidFunction>(submit);
    if (std::strcmp(name, "vkDestroyDevice") == 0)
        return reinterpret_cast<PFN_vkVoidFunction>(destroy_device);
    const std::lock_guard lock(mutex);
    return devices.at(key_of(device)).next(device, name);
}

EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
    const struct {
        const char* name;
        PFN_vkVoidFunction call;
    } own[] = {{"vkGetInstanceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(vkGetInstanceProcAddr)},
               {"vkGetDeviceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(vkGetDeviceProcAddr)},
               {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(create_instance)},
               {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(create_device)},
               {"vkQueueSubmit", reinterpret_cast<PFN_vkVoidFunction>(submit)},
               {"vkDestroyDevice", reinterpret_cast<PFN_vkVoidFunction>(destroy_device)}};
    for (const auto& pair : own)
        if (std::strcmp(name, pair.name) == 0) return pair.call;
    if (!instance) return nullptr;
    const std::lock_guard lock(mutex);
    return instances.at(key_of(instance))(instance, name);
}

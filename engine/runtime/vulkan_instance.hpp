// A Vulkan instance with its loader, and the messages of the validation layer if asked for.
#pragma once

#include <vulkan/vulkan_core.h>
#include <fovea/fovea.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fovea::runtime {

#define FOVEA_RUNTIME_INSTANCE_CALLS(call)                                                            \
    call(vkDestroyInstance) call(vkEnumeratePhysicalDevices) call(vkGetPhysicalDeviceProperties)      \
        call(vkGetPhysicalDeviceProperties2) call(vkGetPhysicalDeviceFeatures2)                       \
            call(vkGetPhysicalDeviceQueueFamilyProperties) call(vkEnumerateDeviceExtensionProperties) \
                call(vkCreateDevice) call(vkGetDeviceProcAddr)

struct InstanceCalls {
#define FOVEA_MEMBER(name) PFN_##name name = nullptr;
    FOVEA_RUNTIME_INSTANCE_CALLS(FOVEA_MEMBER)
#undef FOVEA_MEMBER
};

class Instance {
  public:
    // Fails with the reason if there is no loader, no driver or (with `validation`) no layer.
    static Result<std::unique_ptr<Instance>> create(bool validation);
    ~Instance();
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    VkInstance handle() const { return handle_; }
    uint32_t api_version() const { return api_version_; }
    uint32_t layer_version() const { return layer_version_; }  // validation layer; 0: there is none
    const InstanceCalls& vk() const { return calls_; }
    PFN_vkGetInstanceProcAddr get_proc() const;
    const std::vector<VkPhysicalDevice>& physical_devices() const { return physical_devices_; }
    // Validation messages of any thread since the last call.
    std::vector<std::string> take_messages();

  private:
    Instance() = default;
    Result<void> create_handle();
    Result<void> list_physical_devices();
    void add_message(std::string text);
    static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                     VkDebugUtilsMessageTypeFlagsEXT types,
                                                     const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                     void* user);

    VkInstance handle_ = VK_NULL_HANDLE;
    uint32_t api_version_ = 0, layer_version_ = 0;
    bool validation_ = false;
    InstanceCalls calls_;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    std::vector<VkPhysicalDevice> physical_devices_;
    std::mutex messages_mutex_;
    std::vector<std::string> messages_;
};

// "VK_ERROR_DEVICE_LOST" for those that matter, else the number.
std::string vk_result_text(VkResult result);
Error vk_error(VkResult result, const char* call);

}  // namespace fovea::runtime

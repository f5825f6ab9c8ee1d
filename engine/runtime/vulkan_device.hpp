// One Vulkan device with a compute queue, created only for Fovea, and the context on it.
#pragma once

#include "runtime/vulkan_instance.hpp"

#include <fovea/fovea_vulkan.h>

namespace fovea::runtime {

#define FOVEA_RUNTIME_DEVICE_CALLS(call)                                                                   \
    call(vkDestroyDevice) call(vkGetDeviceQueue) call(vkCreateCommandPool) call(vkDestroyCommandPool)      \
        call(vkResetCommandPool) call(vkAllocateCommandBuffers) call(vkBeginCommandBuffer)                 \
            call(vkEndCommandBuffer) call(vkQueueSubmit) call(vkCreateFence) call(vkDestroyFence)          \
                call(vkResetFences) call(vkWaitForFences) call(vkDeviceWaitIdle) call(vkCreateSemaphore)   \
                    call(vkDestroySemaphore) call(vkCreateQueryPool) call(vkDestroyQueryPool)              \
                        call(vkGetQueryPoolResults) call(vkCmdResetQueryPool) call(vkCreateDescriptorPool) \
                            call(vkDestroyDescriptorPool) call(vkResetDescriptorPool)                      \
                                call(vkCmdPipelineBarrier) call(vkCmdCopyBuffer) call(vkCmdFillBuffer)

struct DeviceCalls {
#define FOVEA_MEMBER(name) PFN_##name name = nullptr;
    FOVEA_RUNTIME_DEVICE_CALLS(FOVEA_MEMBER)
#undef FOVEA_MEMBER
    PFN_vkWaitSemaphores vkWaitSemaphores = nullptr;                // null without timeline semaphores
    PFN_vkGetDeviceFaultInfoEXT vkGetDeviceFaultInfoEXT = nullptr;  // null without VK_EXT_device_fault
};

// Features to leave out although the device has them, so that tests reach the other paths, and features that
// only a tool needs.
struct DeviceWishes {
    bool push_descriptors = true;
    bool timeline_semaphores = true;
    bool mapped_memory = true;         // false: as on a device whose own memory the CPU cannot access
    bool pipeline_statistics = false;  // VK_KHR_pipeline_executable_properties, where there is one
    bool device_fault = true;          // why a device was lost, which only a device that was may be asked
};

class VulkanDevice {
  public:
    // `instance` must outlive the device. Fails with the reason for a device below Fovea's minimum
    // requirements.
    static Result<std::unique_ptr<VulkanDevice>> open(Instance& instance, VkPhysicalDevice physical_device,
                                                      const DeviceWishes& wishes = {});
    ~VulkanDevice();
    VulkanDevice(const VulkanDevice&) = delete;
    VulkanDevice& operator=(const VulkanDevice&) = delete;

    // Another context on the same device; `host` comes filled for it.
    FoveaVulkanDevice host() const;

    Instance& instance() const { return instance_; }
    VkPhysicalDevice physical_device() const { return physical_device_; }
    VkDevice handle() const { return handle_; }
    const DeviceCalls& vk() const { return vk_; }
    VkQueue queue() const { return queue_; }
    uint32_t queue_family() const { return queue_family_; }
    FoveaContext context() const { return context_; }
    FoveaDeviceProperties properties() const;
    const VkPhysicalDeviceLimits& limits() const { return vulkan_properties_.limits; }
    const VkPhysicalDeviceProperties& vulkan_properties() const { return vulkan_properties_; }
    const std::string& driver() const { return driver_; }
    uint32_t api_version() const { return api_version_; }
    bool has_timeline() const { return timeline_; }
    bool has_pipeline_statistics() const { return pipeline_statistics_; }
    bool maps_memory() const { return maps_memory_; }
    // "; the driver says: ..." of a lost device, or nothing.
    std::string fault_text() const;
    bool has_memory_budget() const { return memory_budget_; }
    uint64_t max_allocation_bytes() const { return max_allocation_bytes_; }
    uint32_t timestamp_bits() const { return timestamp_bits_; }  // 0: the queue has none
    // While the device may still be working, nothing on it may be destroyed: abandon it.
    void abandon(bool abandoned = true) { abandoned_ = abandoned; }
    bool abandoned() const { return abandoned_; }

  private:
    explicit VulkanDevice(Instance& instance);
    void query_properties();
    Result<void> choose_queue();
    Result<void> choose_features(FoveaRecommendedFeatures recommended, const DeviceWishes& wishes);
    Result<void> create_device();
    Result<void> create_context();
    bool offers(const char* extension) const;

    Instance& instance_;
    VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties vulkan_properties_{};
    std::string driver_;
    uint32_t api_version_ = 0;
    std::vector<VkExtensionProperties> offered_;
    // As they were passed to vkCreateDevice; `own_` is the head of the chain.
    VkPhysicalDeviceFeatures2 own_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline_features_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    VkPhysicalDeviceFaultFeaturesEXT fault_features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT};
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics_features_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
    mutable FoveaEnabledFeatures enabled_ = foveaEnabledFeatures();
    VkDevice handle_ = VK_NULL_HANDLE;
    DeviceCalls vk_;
    VkQueue queue_ = VK_NULL_HANDLE;
    uint32_t queue_family_ = 0, timestamp_bits_ = 0;
    uint64_t max_allocation_bytes_ = 0;
    bool timeline_ = false, pipeline_statistics_ = false, memory_budget_ = false, maps_memory_ = true,
         abandoned_ = false;
    FoveaContext context_ = nullptr;
};

}  // namespace fovea::runtime

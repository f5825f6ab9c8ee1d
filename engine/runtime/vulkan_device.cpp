#include "runtime/vulkan_device.hpp"

#include <algorithm>
#include <cstring>

namespace fovea::runtime {

namespace {

template <class Function>
Function device_call(const VulkanDevice& device, const char* name) {
    return reinterpret_cast<Function>(device.instance().vk().vkGetDeviceProcAddr(device.handle(), name));
}

// "Mesa 25.0.7 (LLVM 15.0.7), Vulkan 1.4.305"
std::string driver_text(const VkPhysicalDeviceDriverProperties& driver, uint32_t api_version) {
    std::string text = driver.driverName;
    if (driver.driverInfo[0]) text += (text.empty() ? "" : ": ") + std::string(driver.driverInfo);
    char version[32];
    snprintf(version, sizeof version, "Vulkan %u.%u.%u", VK_API_VERSION_MAJOR(api_version),
             VK_API_VERSION_MINOR(api_version), VK_API_VERSION_PATCH(api_version));
    return text + (text.empty() ? "" : ", ") + version;
}

}  // namespace

Result<std::unique_ptr<VulkanDevice>> VulkanDevice::open(Instance& instance, VkPhysicalDevice physical_device,
                                                         const DeviceWishes& wishes) {
    FoveaRecommendedFeatures recommended{};
    recommended.struct_size = sizeof recommended;
    Diag diag;
    if (foveaQueryRecommendedFeatures(instance.get_proc(), instance.handle(), instance.api_version(),
                                      physical_device, nullptr, &recommended, &diag) != FOVEA_OK)
        return diag.error();
    std::unique_ptr<VulkanDevice> device(new VulkanDevice(instance));
    device->physical_device_ = physical_device;
    device->maps_memory_ = wishes.mapped_memory;
    device->query_properties();
    if (Result<void> r = device->choose_queue(); !r) return r.error();
    if (Result<void> r = device->choose_features(recommended, wishes); !r) return r.error();
    if (Result<void> r = device->create_device(); !r) return r.error();
    if (Result<void> r = device->create_context(); !r) return r.error();
    return device;
}

VulkanDevice::VulkanDevice(Instance& instance) : instance_(instance) {}

VulkanDevice::~VulkanDevice() {
    if (abandoned_) return;
    foveaDestroyContext(context_);
    // All submissions from here have ended. Layers submit too, and one of them does not wait for its
    // submissions.
    if (handle_ && vk_.vkDeviceWaitIdle) static_cast<void>(vk_.vkDeviceWaitIdle(handle_));
    if (handle_ && vk_.vkDestroyDevice) vk_.vkDestroyDevice(handle_, nullptr);
}

bool VulkanDevice::offers(const char* extension) const {
    return std::any_of(offered_.begin(), offered_.end(), [&](const VkExtensionProperties& e) {
        return strcmp(e.extensionName, extension) == 0;
    });
}

void VulkanDevice::query_properties() {
    const InstanceCalls& vk = instance_.vk();
    uint32_t count = 0;
    if (vk.vkEnumerateDeviceExtensionProperties(physical_device_, nullptr, &count, nullptr) == VK_SUCCESS) {
        offered_.resize(count);
        if (vk.vkEnumerateDeviceExtensionProperties(physical_device_, nullptr, &count, offered_.data()) < 0)
            count = 0;
        offered_.resize(count);
    }
    vk.vkGetPhysicalDeviceProperties(physical_device_, &vulkan_properties_);
    api_version_ = std::min(instance_.api_version(), vulkan_properties_.apiVersion);

    VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &memory};
    if (api_version_ >= VK_API_VERSION_1_2 || offers(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME))
        memory.pNext = &driver;
    vk.vkGetPhysicalDeviceProperties2(physical_device_, &all);
    max_allocation_bytes_ = memory.maxMemoryAllocationSize;
    driver_ = driver_text(driver, vulkan_properties_.apiVersion);
}

// A compute-only queue does not compete with the display; one with timestamps is preferred.
Result<void> VulkanDevice::choose_queue() {
    uint32_t count = 0;
    instance_.vk().vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    instance_.vk().vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, families.data());
    int best = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const VkQueueFamilyProperties& f = families[i];
        if (!(f.queueFlags & VK_QUEUE_COMPUTE_BIT) || f.queueCount == 0) continue;
        const int score = 1 + (f.timestampValidBits ? 2 : 0) + (f.queueFlags & VK_QUEUE_GRAPHICS_BIT ? 0 : 1);
        if (score <= best) continue;
        best = score;
        queue_family_ = i;
        timestamp_bits_ = f.timestampValidBits;
    }
    if (best == 0)
        return Error{FOVEA_UNSUPPORTED, "queueFlags",
                     "the device has no queue family with VK_QUEUE_COMPUTE_BIT, which is needed"};
    return {};
}

Result<void> VulkanDevice::choose_features(FoveaRecommendedFeatures recommended, const DeviceWishes& wishes) {
    const auto want = [&](const char* name) {
        if (offers(name)) enabled_.extensions[enabled_.extension_count++] = name;
        return offers(name);
    };
    // Features for this program itself; those for the kernels follow.
    void** tail = &own_.pNext;
    const bool has_timeline = wishes.timeline_semaphores && (api_version_ >= VK_API_VERSION_1_2 ||
                                                             want(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME));
    if (has_timeline) *tail = &timeline_features_, tail = &timeline_features_.pNext;
    if (wishes.device_fault && want(VK_EXT_DEVICE_FAULT_EXTENSION_NAME))
        *tail = &fault_features_, tail = &fault_features_.pNext;
    if (wishes.pipeline_statistics && want(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME))
        *tail = &statistics_features_, tail = &statistics_features_.pNext;
    memory_budget_ = want(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    instance_.vk().vkGetPhysicalDeviceFeatures2(physical_device_, &own_);
    own_.features = {};
    fault_features_.deviceFaultVendorBinary = VK_FALSE;
    timeline_ = timeline_features_.timelineSemaphore;
    pipeline_statistics_ = statistics_features_.pipelineExecutableInfo;
    enabled_.features = &own_;
    // A layer that is older than VK_KHR_shader_bfloat16 reports a device that enables it.
    const uint32_t layer = instance_.layer_version();
    const bool knows_no_bfloat16 = layer && layer < VK_MAKE_API_VERSION(0, 1, 4, 321);
    for (uint32_t i = 0; i < recommended.count; ++i) {
        FoveaRecommendedFeature& item = recommended.items[i];
        const std::string_view name = item.extension ? item.extension : item.feature;
        const bool push = name == VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME || name == "pushDescriptor";
        const bool unwanted = (push && !wishes.push_descriptors) ||
                              (name == "VK_KHR_shader_bfloat16" && knows_no_bfloat16) ||
                              (name == VK_EXT_DEVICE_FAULT_EXTENSION_NAME && !wishes.device_fault);
        if (unwanted) item.available = 0;
    }
    Diag diag;
    if (foveaEnableRecommendedFeatures(&recommended, &enabled_, &diag) != FOVEA_OK) return diag.error();
    return {};
}

Result<void> VulkanDevice::create_device() {
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = queue_family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, foveaEnabledFeatures2(&enabled_)};
    create.queueCreateInfoCount = 1;
    create.pQueueCreateInfos = &queue;
    create.enabledExtensionCount = enabled_.extension_count;
    create.ppEnabledExtensionNames = enabled_.extensions;
    const VkResult result = instance_.vk().vkCreateDevice(physical_device_, &create, nullptr, &handle_);
    if (result != VK_SUCCESS) return vk_error(result, "vkCreateDevice");
#define FOVEA_FETCH(name)                             \
    vk_.name = device_call<PFN_##name>(*this, #name); \
    if (!vk_.name) return Error{FOVEA_UNSUPPORTED, "vulkan", "the Vulkan driver has no " #name};
    FOVEA_RUNTIME_DEVICE_CALLS(FOVEA_FETCH)
#undef FOVEA_FETCH
    if (timeline_)
        vk_.vkWaitSemaphores = device_call<PFN_vkWaitSemaphores>(
            *this, api_version_ >= VK_API_VERSION_1_2 ? "vkWaitSemaphores" : "vkWaitSemaphoresKHR");
    timeline_ = vk_.vkWaitSemaphores != nullptr;
    if (fault_features_.deviceFault)
        vk_.vkGetDeviceFaultInfoEXT =
            device_call<PFN_vkGetDeviceFaultInfoEXT>(*this, "vkGetDeviceFaultInfoEXT");
    vk_.vkGetDeviceQueue(handle_, queue_family_, 0, &queue_);
    return {};
}

std::string VulkanDevice::fault_text() const {
    if (!vk_.vkGetDeviceFaultInfoEXT) return {};
    VkDeviceFaultCountsEXT counts{VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT};
    VkDeviceFaultInfoEXT info{VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT};
    // VK_INCOMPLETE is a success: there are addresses, which are not asked for.
    if (vk_.vkGetDeviceFaultInfoEXT(handle_, &counts, &info) < VK_SUCCESS || !info.description[0]) return {};
    info.description[sizeof info.description - 1] = '\0';
    return std::string("; the driver says: ") + info.description;
}

FoveaVulkanDevice VulkanDevice::host() const {
    FoveaVulkanDevice host{};
    host.struct_size = sizeof host;
    host.api_version = api_version_;
    host.instance = instance_.handle();
    host.physical_device = physical_device_;
    host.device = handle_;
    host.get_instance_proc_addr = instance_.get_proc();
    host.get_device_proc_addr = instance_.vk().vkGetDeviceProcAddr;
    host.enabled_features = foveaEnabledFeatures2(&enabled_);
    host.enabled_extensions = enabled_.extensions;
    host.enabled_extension_count = enabled_.extension_count;
    return host;
}

Result<void> VulkanDevice::create_context() {
    const FoveaVulkanDevice filled = host();
    Diag diag;
    if (foveaCreateContext(&filled, &context_, &diag) != FOVEA_OK) return diag.error();
    return {};
}

FoveaDeviceProperties VulkanDevice::properties() const {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    foveaContextProperties(context_, &properties, nullptr);
    return properties;
}

}  // namespace fovea::runtime

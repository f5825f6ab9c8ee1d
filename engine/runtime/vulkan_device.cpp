#include "runtime/vulkan_device.hpp"

#include <algorithm>
#include <cstring>

namespace fovea::runtime {

// The chain for vkCreateDevice: what the device has of the features that Fovea can use, and nothing else.
struct VulkanDevice::Features {
    VkPhysicalDeviceFeatures2 root{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDevice16BitStorageFeatures storage_16bit{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    VkPhysicalDeviceShaderFloat16Int8Features float16{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    VkPhysicalDeviceMaintenance4Features maintenance4{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES};
    VkPhysicalDeviceFaultFeaturesEXT fault{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV coopmat2{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};

    // Leaves on what has a use here.
    void keep_useful() {
        root.features = {};
        storage_16bit = {storage_16bit.sType, storage_16bit.pNext, storage_16bit.storageBuffer16BitAccess};
        float16.shaderInt8 = VK_FALSE;
        fault.deviceFaultVendorBinary = VK_FALSE;
        memory_model.vulkanMemoryModelAvailabilityVisibilityChains = VK_FALSE;
        coopmat.cooperativeMatrixRobustBufferAccess = VK_FALSE;
        coopmat2.cooperativeMatrixTensorAddressing = coopmat2.cooperativeMatrixBlockLoads = VK_FALSE;
    }
};

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
    FoveaDeviceNeeds needs{};
    needs.struct_size = sizeof needs;
    Diag diag;
    if (foveaQueryDeviceNeeds(instance.get_proc(), instance.handle(), instance.api_version(), physical_device,
                              nullptr, &needs, &diag) != FOVEA_OK)
        return diag.error();
    std::unique_ptr<VulkanDevice> device(new VulkanDevice(instance));
    device->physical_device_ = physical_device;
    device->maps_memory_ = wishes.mapped_memory;
    device->query_properties();
    if (Result<void> r = device->choose_queue(); !r) return r.error();
    device->choose_extensions(wishes);
    device->choose_features(wishes);
    if (Result<void> r = device->create_device(); !r) return r.error();
    if (Result<void> r = device->create_context(); !r) return r.error();
    return device;
}

VulkanDevice::VulkanDevice(Instance& instance) : instance_(instance) {}

VulkanDevice::~VulkanDevice() {
    if (abandoned_) return;
    foveaDestroyContext(context_);
    // What was submitted here has ended. Layers submit, too, and one of them does not wait for its own.
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
    vk.vkGetPhysicalDeviceProperties(physical_device_, &properties_);
    api_version_ = std::min(instance_.api_version(), properties_.apiVersion);

    VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &memory};
    if (api_version_ >= VK_API_VERSION_1_2 || offers(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME))
        memory.pNext = &driver;
    vk.vkGetPhysicalDeviceProperties2(physical_device_, &all);
    max_allocation_bytes_ = memory.maxMemoryAllocationSize;
    driver_ = driver_text(driver, properties_.apiVersion);
}

// A queue for compute alone does not compete with the display; one with timestamps comes first.
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
    if (best == 0) return Error{FOVEA_UNSUPPORTED, "queueFlags", "no queue family can compute"};
    return {};
}

void VulkanDevice::choose_extensions(const DeviceWishes& wishes) {
    const auto want = [&](const char* name, uint32_t core_since = UINT32_MAX) {
        const bool take = api_version_ < core_since && offers(name);
        if (take) extensions_.push_back(name);
        return take;
    };
    if (wishes.push_descriptors) want(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
    if (wishes.timeline_semaphores)
        timeline_ = want(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, VK_API_VERSION_1_2) ||
                    api_version_ >= VK_API_VERSION_1_2;
    want(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2);
    want(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VK_API_VERSION_1_2);
    want(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3);
    if (want(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) want(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
    device_fault_ = want(VK_EXT_DEVICE_FAULT_EXTENSION_NAME);
    memory_budget_ = want(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    // A device that has it must be created with it; its name is not in the headers without beta extensions.
    want("VK_KHR_portability_subset");
}

void VulkanDevice::choose_features(const DeviceWishes& wishes) {
    features_ = std::make_unique<Features>();
    Features& f = *features_;
    void** tail = &f.root.pNext;
    const auto append = [&](auto& item, bool known) {
        if (!known) return;
        *tail = &item;
        tail = &item.pNext;
    };
    const auto has = [&](const char* name) {
        return std::any_of(extensions_.begin(), extensions_.end(),
                           [&](const char* e) { return strcmp(e, name) == 0; });
    };
    append(f.storage_16bit, true);
    append(f.float16, api_version_ >= VK_API_VERSION_1_2 || has(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME));
    append(f.memory_model,
           api_version_ >= VK_API_VERSION_1_2 || has(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME));
    append(f.subgroup_size,
           api_version_ >= VK_API_VERSION_1_3 || has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME));
    append(f.maintenance4, api_version_ >= VK_API_VERSION_1_3);
    append(f.timeline, timeline_);
    append(f.fault, device_fault_);
    append(f.coopmat, has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME));
    append(f.coopmat2, has(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME));
    instance_.vk().vkGetPhysicalDeviceFeatures2(physical_device_, &f.root);
    f.keep_useful();
    timeline_ = timeline_ && f.timeline.timelineSemaphore && wishes.timeline_semaphores;
}

Result<void> VulkanDevice::create_device() {
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = queue_family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features_->root};
    create.queueCreateInfoCount = 1;
    create.pQueueCreateInfos = &queue;
    create.enabledExtensionCount = static_cast<uint32_t>(extensions_.size());
    create.ppEnabledExtensionNames = extensions_.data();
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
    if (features_->fault.deviceFault)
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

FoveaVulkanHost VulkanDevice::host() const {
    FoveaVulkanHost host{};
    host.struct_size = sizeof host;
    host.api_version = api_version_;
    host.instance = instance_.handle();
    host.physical_device = physical_device_;
    host.device = handle_;
    host.get_instance_proc_addr = instance_.get_proc();
    host.get_device_proc_addr = instance_.vk().vkGetDeviceProcAddr;
    host.enabled_features = &features_->root;
    host.enabled_extensions = extensions_.data();
    host.enabled_extension_count = static_cast<uint32_t>(extensions_.size());
    return host;
}

Result<void> VulkanDevice::create_context() {
    const FoveaVulkanHost filled = host();
    Diag diag;
    if (foveaCreateContext(&filled, &context_, &diag) != FOVEA_OK) return diag.error();
    return {};
}

FoveaDeviceFacts VulkanDevice::facts() const {
    FoveaDeviceFacts facts{};
    facts.struct_size = sizeof facts;
    foveaContextFacts(context_, &facts, nullptr);
    return facts;
}

}  // namespace fovea::runtime

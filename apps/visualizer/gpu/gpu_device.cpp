#include "gpu/gpu_device.hpp"

#include <fovea/inspect.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace fovea::visualizer {
namespace {

// The version for the instance. 1.3 has maintenance4, which flash_coopmat2 needs.
uint32_t instance_version() { return std::min(volkGetInstanceVersion(), uint32_t(VK_API_VERSION_1_3)); }

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
    auto& messages = *static_cast<LayerMessages*>(user);
    const std::lock_guard lock(messages.mutex);
    messages.texts.emplace_back(data->pMessage);
    return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(LayerMessages& messages) {
    VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    info.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    info.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    info.pfnUserCallback = on_message;
    info.pUserData = &messages;
    return info;
}

}  // namespace

int device_rank(const VkPhysicalDeviceProperties& properties) {
    constexpr uint32_t kSwiftShader = 0x1ae0;  // vendor ID
    switch (properties.deviceType) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return 5;
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
            return 4;
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
            return 3;
        default:
            return properties.vendorID == kSwiftShader ? 1 : 2;
    }
}

namespace {

// Explains results that the machine causes, not a mistake of the program.
const char* meaning(VkResult result) {
    switch (result) {
        case VK_ERROR_DEVICE_LOST:
            return ": the device was lost";
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            return ": out of device memory";
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            return ": out of memory";
        case VK_ERROR_INCOMPATIBLE_DRIVER:
            return ": no Vulkan driver is installed";
        default:
            return "";
    }
}

}  // namespace

Error vulkan_error(const char* call, VkResult result) {
    return Error{FOVEA_VULKAN_ERROR, call,
                 std::string(call) + " failed (VkResult " + std::to_string(result) + ")" + meaning(result),
                 result};
}

Result<std::unique_ptr<GpuDevice>> GpuDevice::open(const GpuWishes& wishes) {
    if (volkInitialize() != VK_SUCCESS)
        return Error{FOVEA_UNSUPPORTED, "Vulkan",
                     "this machine has no Vulkan loader; install the driver of its GPU (Debian: libvulkan1)"};
    std::unique_ptr<GpuDevice> device(new GpuDevice());
    if (Result<void> r = device->create_instance(wishes); !r) return r.error();
    if (Result<void> r = device->choose_physical(wishes); !r) return r.error();
    if (Result<void> r = device->create_device(wishes); !r) return r.error();
    if (Result<void> r = device->create_context(); !r) return r.error();
    device->warmer_ = std::make_unique<KernelWarmer>(*device);
    return device;
}

std::unique_ptr<GpuDevice> GpuDevice::without_vulkan(std::string why) {
    std::unique_ptr<GpuDevice> device(new GpuDevice());
    device->why_not_ = std::move(why);
    device->name_ = "no Vulkan device";
    device->properties_.struct_size = sizeof device->properties_;
    device->properties_.device_class = FOVEA_CLASS_CPU;
    return device;
}

GpuDevice::~GpuDevice() {
    warmer_.reset();
    if (device_) vkDeviceWaitIdle(device_);
    foveaDestroyContext(context_);
    if (allocator_) vmaDestroyAllocator(allocator_);
    if (fence_) vkDestroyFence(device_, fence_, nullptr);
    if (pool_) vkDestroyCommandPool(device_, pool_, nullptr);
    if (device_) vkDestroyDevice(device_, nullptr);
    if (messenger_) vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
    if (instance_) vkDestroyInstance(instance_, nullptr);
}

DeviceMemory GpuDevice::memory() const {
    if (!has_vulkan()) return {};
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS] = {};
    vmaGetHeapBudgets(allocator_, budgets);
    VkPhysicalDeviceMemoryProperties properties;
    vkGetPhysicalDeviceMemoryProperties(physical_, &properties);
    DeviceMemory memory;
    for (uint32_t i = 0; i < properties.memoryHeapCount; ++i) {
        memory.used_bytes += budgets[i].usage;
        memory.budget_bytes += budgets[i].budget;
    }
    return memory;
}

std::vector<std::string> GpuDevice::take_messages() {
    const std::lock_guard lock(messages_->mutex);
    return std::exchange(messages_->texts, {});
}

Result<void> GpuDevice::create_instance(const GpuWishes& wishes) {
    VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    app.pApplicationName = "fovea-visualizer";
    app.apiVersion = instance_version();
    if (app.apiVersion < VK_API_VERSION_1_1)
        return Error{FOVEA_UNSUPPORTED, "Vulkan", "the Vulkan loader is older than 1.1; install a newer one"};
    std::vector<const char*> extensions = wishes.instance_extensions, layers;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(*messages_);
    if (wishes.validation) {
        layers.push_back("VK_LAYER_KHRONOS_validation");
        extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
        info.pNext = &messenger;
    }
    info.pApplicationInfo = &app;
    info.enabledExtensionCount = uint32_t(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    info.enabledLayerCount = uint32_t(layers.size());
    info.ppEnabledLayerNames = layers.data();
    if (VkResult r = vkCreateInstance(&info, nullptr, &instance_)) return vulkan_error("vkCreateInstance", r);
    volkLoadInstance(instance_);
    if (wishes.validation)
        if (VkResult r = vkCreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_))
            return vulkan_error("vkCreateDebugUtilsMessengerEXT", r);
    return {};
}

Result<void> GpuDevice::choose_physical(const GpuWishes& wishes) {
    uint32_t count = 0;
    if (VkResult r = vkEnumeratePhysicalDevices(instance_, &count, nullptr))
        return vulkan_error("vkEnumeratePhysicalDevices", r);
    std::vector<VkPhysicalDevice> all(count);
    if (VkResult r = vkEnumeratePhysicalDevices(instance_, &count, all.data()))
        return vulkan_error("vkEnumeratePhysicalDevices", r);
    if (all.empty())
        return Error{FOVEA_UNSUPPORTED, "Vulkan",
                     "this machine has no Vulkan device; install the driver of its GPU, or a software driver "
                     "(Debian: mesa-vulkan-drivers)"};
    if (wishes.vulkan_device >= int(count))
        return Error{FOVEA_INVALID_ARGUMENT, "--device",
                     "--device is " + std::to_string(wishes.vulkan_device + 1) +
                         "; this machine has Vulkan devices 1 to " + std::to_string(count)};
    int best = 0;
    for (uint32_t i = 0; i < count; ++i) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(all[i], &properties);
        const int rank = device_rank(properties);
        if (wishes.vulkan_device >= 0 ? int(i) != wishes.vulkan_device : rank <= best) continue;
        best = rank;
        physical_ = all[i];
        vulkan_properties_ = properties;
        name_ = properties.deviceName;
    }
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
    for (uint32_t i = 0; i < count; ++i) {
        const VkQueueFlags both = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
        if ((families[i].queueFlags & both) != both) continue;
        family_ = i;
        timestamp_bits_ = families[i].timestampValidBits;
        ask_driver();
        return {};
    }
    return Error{FOVEA_UNSUPPORTED, "queueFlags",
                 name_ + " has no queue family for graphics and compute, which the visualizer needs"};
}

void GpuDevice::ask_driver() {
    if (std::min(vulkan_properties_.apiVersion, volkGetInstanceVersion()) < VK_API_VERSION_1_2) return;
    VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &driver};
    vkGetPhysicalDeviceProperties2(physical_, &asked);
    compiles_at_dispatch_ = driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
}

Result<void> GpuDevice::create_device(const GpuWishes& wishes) {
    uint32_t count = 0;
    vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> offered(count);
    vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, offered.data());
    if (wishes.present) {
        if (std::none_of(offered.begin(), offered.end(), [](const VkExtensionProperties& e) {
                return std::strcmp(e.extensionName, VK_KHR_SWAPCHAIN_EXTENSION_NAME) == 0;
            }))
            return Error{
                FOVEA_UNSUPPORTED, VK_KHR_SWAPCHAIN_EXTENSION_NAME,
                name_ + " cannot show a window (VK_KHR_swapchain is missing); choose another --device"};
        enabled_->extensions[enabled_->extension_count++] = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
    }
    FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
    Diag diag;
    if (foveaQueryRecommendedFeatures(vkGetInstanceProcAddr, instance_, instance_version(), physical_,
                                      nullptr, &recommended, &diag) != FOVEA_OK ||
        foveaEnableRecommendedFeatures(&recommended, enabled_.get(), &diag) != FOVEA_OK)
        return diag.error();

    if (VkResult r = create_like(device_)) return vulkan_error("vkCreateDevice", r);
    volkLoadDevice(device_);
    vkGetDeviceQueue(device_, family_, 0, &queue_);

    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = family_;
    if (VkResult r = vkCreateCommandPool(device_, &pool, nullptr, &pool_))
        return vulkan_error("vkCreateCommandPool", r);
    VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    if (VkResult r = vkCreateFence(device_, &fence, nullptr, &fence_))
        return vulkan_error("vkCreateFence", r);

    VmaVulkanFunctions functions{};
    functions.vkGetInstanceProcAddr = vkGetInstanceProcAddr;
    functions.vkGetDeviceProcAddr = vkGetDeviceProcAddr;
    VmaAllocatorCreateInfo allocator{};
    allocator.physicalDevice = physical_;
    allocator.device = device_;
    allocator.instance = instance_;
    allocator.vulkanApiVersion = VK_API_VERSION_1_1;
    allocator.pVulkanFunctions = &functions;
    heap_limits_.assign(VK_MAX_MEMORY_HEAPS, VkDeviceSize(wishes.memory_limit_bytes));
    if (wishes.memory_limit_bytes > 0) allocator.pHeapSizeLimit = heap_limits_.data();
    if (VkResult r = vmaCreateAllocator(&allocator, &allocator_))
        return vulkan_error("vmaCreateAllocator", r);
    return {};
}

VkResult GpuDevice::create_like(VkDevice& out) const {
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, foveaEnabledFeatures2(enabled_.get())};
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = enabled_->extension_count;
    info.ppEnabledExtensionNames = enabled_->extensions;
    return vkCreateDevice(physical_, &info, nullptr, &out);
}

Result<void> GpuDevice::create_context() {
    FoveaVulkanDevice host{};
    host.struct_size = sizeof host;
    host.api_version = instance_version();
    host.instance = instance_;
    host.physical_device = physical_;
    host.device = device_;
    host.get_instance_proc_addr = vkGetInstanceProcAddr;
    host.get_device_proc_addr = vkGetDeviceProcAddr;
    host.enabled_features = foveaEnabledFeatures2(enabled_.get());
    host.enabled_extensions = enabled_->extensions;
    host.enabled_extension_count = enabled_->extension_count;
    Diag diag;
    if (foveaCreateContext(&host, &context_, &diag) != FOVEA_OK) return diag.error();
    properties_.struct_size = sizeof properties_;
    if (foveaContextProperties(context_, &properties_, &diag) != FOVEA_OK) return diag.error();
    return {};
}

Result<VkCommandBuffer> GpuDevice::begin_once() {
    if (VkResult r = vkResetCommandPool(device_, pool_, 0)) return vulkan_error("vkResetCommandPool", r);
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.commandBufferCount = 1;
    VkCommandBuffer cmd = VK_NULL_HANDLE;
    if (VkResult r = vkAllocateCommandBuffers(device_, &allocate, &cmd))
        return vulkan_error("vkAllocateCommandBuffers", r);
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    if (VkResult r = vkBeginCommandBuffer(cmd, &begin)) return vulkan_error("vkBeginCommandBuffer", r);
    return cmd;
}

Result<void> GpuDevice::end_once(VkCommandBuffer cmd) {
    VkResult r = vkEndCommandBuffer(cmd);
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &cmd;
    if (r == VK_SUCCESS) r = vkQueueSubmit(queue_, 1, &submit, fence_);
    if (r == VK_SUCCESS) r = vkWaitForFences(device_, 1, &fence_, VK_TRUE, wait_nanoseconds());
    if (r == VK_SUCCESS) r = vkResetFences(device_, 1, &fence_);
    // A command buffer that may still run is freed with its pool, when the device is idle.
    if (r != VK_TIMEOUT) vkFreeCommandBuffers(device_, pool_, 1, &cmd);
    if (r != VK_SUCCESS) return vulkan_error("vkQueueSubmit", r);
    return {};
}

// Builds an error with the requested size, the available memory, and a remedy.
static Error no_room(const GpuDevice& device, const char* what, uint64_t size_bytes, VkResult r) {
    const DeviceMemory memory = device.memory();
    const uint64_t free = memory.budget_bytes - std::min(memory.used_bytes, memory.budget_bytes);
    return Error{FOVEA_OUT_OF_DEVICE_MEMORY, what,
                 std::string(what) + " needs " + format_bytes(size_bytes) + " of device memory, and " +
                     format_bytes(free) + " of the " + format_bytes(memory.budget_bytes) + " of " +
                     device.name() + " are free; use fewer tokens or heads, show a map, or clear A",
                 r};
}

Result<GpuBuffer> GpuBuffer::create(const GpuDevice& device, uint64_t size_bytes, const char* what) {
    if (!device.has_vulkan()) {
        GpuBuffer buffer;
        buffer.size_bytes_ = std::max<uint64_t>(size_bytes, 16);
        buffer.host_.reset(new (std::nothrow) std::byte[buffer.size_bytes_]());
        if (!buffer.host_)
            return Error{FOVEA_OUT_OF_HOST_MEMORY, what,
                         "not enough memory: " + std::to_string(size_bytes) + " bytes are needed"};
        buffer.data_ = buffer.host_.get();
        // The address identifies it wherever buffers are compared.
        buffer.buffer_ = (VkBuffer)(uintptr_t)buffer.data_;
        return buffer;
    }
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = std::max<uint64_t>(size_bytes, 16);
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    VmaAllocationCreateInfo how{};
    how.usage = VMA_MEMORY_USAGE_AUTO;
    how.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
    GpuBuffer buffer;
    VmaAllocationInfo placed{};
    buffer.allocator_ = device.allocator();
    if (VkResult r =
            vmaCreateBuffer(device.allocator(), &info, &how, &buffer.buffer_, &buffer.allocation_, &placed))
        return no_room(device, what, size_bytes, r);
    buffer.size_bytes_ = info.size;
    buffer.data_ = static_cast<std::byte*>(placed.pMappedData);
    std::memset(buffer.data_, 0, info.size);
    buffer.flush();
    return buffer;
}

GpuBuffer::GpuBuffer(GpuBuffer&& other) noexcept { *this = std::move(other); }

GpuBuffer& GpuBuffer::operator=(GpuBuffer&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(buffer_, other.buffer_);
    std::swap(allocation_, other.allocation_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(data_, other.data_);
    std::swap(host_, other.host_);
    return *this;
}

GpuBuffer::~GpuBuffer() {
    if (allocation_) vmaDestroyBuffer(allocator_, buffer_, allocation_);
}

void GpuBuffer::invalidate() const {
    if (allocation_) vmaInvalidateAllocation(allocator_, allocation_, 0, VK_WHOLE_SIZE);
}
void GpuBuffer::flush() const {
    if (allocation_) vmaFlushAllocation(allocator_, allocation_, 0, VK_WHOLE_SIZE);
}

}  // namespace fovea::visualizer

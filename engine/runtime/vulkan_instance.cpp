#include "runtime/vulkan_instance.hpp"

#include <volk.h>

#include <algorithm>
#include <cstring>

namespace fovea::runtime {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

// volk keeps the loader for the process; its other globals are not used, because they belong to one device.
VkResult open_loader() {
    static const VkResult result = volkInitialize();
    return result;
}

std::vector<VkExtensionProperties> instance_extensions(const char* layer) {
    const auto list = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
        vkGetInstanceProcAddr(nullptr, "vkEnumerateInstanceExtensionProperties"));
    uint32_t count = 0;
    if (!list || list(layer, &count, nullptr) != VK_SUCCESS) return {};
    std::vector<VkExtensionProperties> all(count);
    if (list(layer, &count, all.data()) < VK_SUCCESS) return {};
    all.resize(count);
    return all;
}

bool has_extension(const std::vector<VkExtensionProperties>& list, const char* name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const VkExtensionProperties& e) { return strcmp(e.extensionName, name) == 0; });
}

// Returns the version of Vulkan that the layer was written for; 0 if there is no such layer.
uint32_t version_of_layer(const char* name) {
    const auto list = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
        vkGetInstanceProcAddr(nullptr, "vkEnumerateInstanceLayerProperties"));
    uint32_t count = 0;
    if (!list || list(&count, nullptr) != VK_SUCCESS) return 0;
    std::vector<VkLayerProperties> all(count);
    if (list(&count, all.data()) < VK_SUCCESS) return 0;
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(all[i].layerName, name) == 0) return all[i].specVersion;
    return 0;
}

// The settings of the validation layer. Layers from 1.3.272 on take settings by name; older ones know only
// the first, in another way. Without the second, newer layers miss hazards of shader accesses.
struct ValidationSettings {
    const VkBool32 on = VK_TRUE;
    const VkLayerSettingEXT settings[2] = {
        {kValidationLayer, "validate_sync", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &on},
        {kValidationLayer, "syncval_shader_accesses_heuristic", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &on}};
    const VkLayerSettingsCreateInfoEXT by_name{VK_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT, nullptr, 2,
                                               settings};
    const VkValidationFeatureEnableEXT enable = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    VkValidationFeaturesEXT by_feature{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
};

// Declared here instead of using volk's globals, which change with every instance of the process.
template <class Function>
Function instance_call(VkInstance instance, const char* name) {
    return reinterpret_cast<Function>(vkGetInstanceProcAddr(instance, name));
}

}  // namespace

std::string vk_result_text(VkResult result) {
    switch (result) {
        case VK_TIMEOUT:
            return "VK_TIMEOUT";
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            return "VK_ERROR_OUT_OF_HOST_MEMORY";
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
        case VK_ERROR_INITIALIZATION_FAILED:
            return "VK_ERROR_INITIALIZATION_FAILED";
        case VK_ERROR_DEVICE_LOST:
            return "VK_ERROR_DEVICE_LOST";
        case VK_ERROR_INCOMPATIBLE_DRIVER:
            return "VK_ERROR_INCOMPATIBLE_DRIVER";
        default:
            return "VkResult " + std::to_string(int(result));
    }
}

Error vk_error(VkResult result, const char* call) {
    FoveaResult code = FOVEA_VULKAN_ERROR;
    if (result == VK_ERROR_DEVICE_LOST) code = FOVEA_DEVICE_LOST;
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY) code = FOVEA_OUT_OF_HOST_MEMORY;
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY) code = FOVEA_OUT_OF_DEVICE_MEMORY;
    if (result == VK_TIMEOUT) code = FOVEA_TIMEOUT;
    return Error{code, call, std::string(call) + " returned " + vk_result_text(result), int32_t(result)};
}

PFN_vkGetInstanceProcAddr Instance::get_proc() const { return vkGetInstanceProcAddr; }

Result<std::unique_ptr<Instance>> Instance::create(bool validation) {
    if (open_loader() != VK_SUCCESS)
        return Error{FOVEA_UNSUPPORTED, "vulkan",
                     "this machine has no Vulkan loader; install the driver of its GPU (Debian: libvulkan1)"};
    const uint32_t loader = volkGetInstanceVersion();
    if (loader < VK_API_VERSION_1_1)
        return Error{FOVEA_UNSUPPORTED, "vulkan", "the Vulkan loader is older than 1.1; install a newer one"};
    const uint32_t layer = validation ? version_of_layer(kValidationLayer) : 0;
    if (validation && !layer)
        return Error{FOVEA_UNSUPPORTED, "validation",
                     std::string(kValidationLayer) + " is not installed (Debian: vulkan-validationlayers)"};
    std::unique_ptr<Instance> instance(new Instance);
    instance->api_version_ = std::min<uint32_t>(loader, VK_API_VERSION_1_4);
    instance->validation_ = validation;
    instance->layer_version_ = layer;
    if (Result<void> r = instance->create_handle(); !r) return r.error();
    if (Result<void> r = instance->list_physical_devices(); !r) return r.error();
    return instance;
}

Result<void> Instance::create_handle() {
    const std::vector<VkExtensionProperties> offered = instance_extensions(nullptr);
    std::vector<const char*> extensions;
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pApplicationName = "fovea";
    application.pEngineName = "fovea";
    application.apiVersion = api_version_;
    VkInstanceCreateInfo create{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create.pApplicationInfo = &application;
    // Without it, drivers that are a layer over another API stay hidden.
    if (has_extension(offered, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
        extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
        create.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    }
    ValidationSettings settings;
    VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    messenger.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    // Not GENERAL: the loader's remarks about other drivers and layers of the machine.
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = this;
    if (validation_) {
        const std::vector<VkExtensionProperties> of_layer = instance_extensions(kValidationLayer);
        create.enabledLayerCount = 1;
        create.ppEnabledLayerNames = &kValidationLayer;
        extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
        if (has_extension(of_layer, VK_EXT_LAYER_SETTINGS_EXTENSION_NAME)) {
            extensions.push_back(VK_EXT_LAYER_SETTINGS_EXTENSION_NAME);
            messenger.pNext = &settings.by_name;
        } else if (has_extension(of_layer, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME)) {
            extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
            settings.by_feature.enabledValidationFeatureCount = 1;
            settings.by_feature.pEnabledValidationFeatures = &settings.enable;
            messenger.pNext = &settings.by_feature;
        }
        create.pNext = &messenger;
    }
    create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
    create.ppEnabledExtensionNames = extensions.data();
    const auto create_instance = instance_call<PFN_vkCreateInstance>(nullptr, "vkCreateInstance");
    VkResult result = create_instance(&create, nullptr, &handle_);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return Error{
            FOVEA_UNSUPPORTED, "vulkan",
            "this machine has a Vulkan loader, but no driver; install one (Debian: mesa-vulkan-drivers)",
            int32_t(result)};
    if (result != VK_SUCCESS) return vk_error(result, "vkCreateInstance");
#define FOVEA_FETCH(name)                                    \
    calls_.name = instance_call<PFN_##name>(handle_, #name); \
    if (!calls_.name) return Error{FOVEA_UNSUPPORTED, "vulkan", "the Vulkan loader has no " #name};
    FOVEA_RUNTIME_INSTANCE_CALLS(FOVEA_FETCH)
#undef FOVEA_FETCH
    if (!validation_) return {};
    messenger.pNext = nullptr;
    const auto create_messenger =
        instance_call<PFN_vkCreateDebugUtilsMessengerEXT>(handle_, "vkCreateDebugUtilsMessengerEXT");
    result = create_messenger(handle_, &messenger, nullptr, &messenger_);
    if (result != VK_SUCCESS) return vk_error(result, "vkCreateDebugUtilsMessengerEXT");
    return {};
}

Result<void> Instance::list_physical_devices() {
    uint32_t count = 0;
    VkResult result = calls_.vkEnumeratePhysicalDevices(handle_, &count, nullptr);
    if (result == VK_SUCCESS && count) {
        physical_devices_.resize(count);
        result = calls_.vkEnumeratePhysicalDevices(handle_, &count, physical_devices_.data());
        physical_devices_.resize(count);
    }
    if (result == VK_ERROR_INITIALIZATION_FAILED || (result == VK_SUCCESS && count == 0))
        return Error{FOVEA_UNSUPPORTED, "vulkan", "no Vulkan driver of this machine found a device",
                     int32_t(result)};
    if (result < VK_SUCCESS) return vk_error(result, "vkEnumeratePhysicalDevices");
    return {};
}

Instance::~Instance() {
    if (messenger_)
        instance_call<PFN_vkDestroyDebugUtilsMessengerEXT>(handle_, "vkDestroyDebugUtilsMessengerEXT")(
            handle_, messenger_, nullptr);
    if (handle_ && calls_.vkDestroyInstance) calls_.vkDestroyInstance(handle_, nullptr);
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
    const std::string name = data->pMessageIdName ? data->pMessageIdName : "";
    static_cast<Instance*>(user)->add_message(name + ": " + data->pMessage);
    return VK_FALSE;
}

void Instance::add_message(std::string text) {
    std::lock_guard lock(messages_mutex_);
    messages_.push_back(std::move(text));
}

std::vector<std::string> Instance::take_messages() {
    std::lock_guard lock(messages_mutex_);
    return std::exchange(messages_, {});
}

}  // namespace fovea::runtime

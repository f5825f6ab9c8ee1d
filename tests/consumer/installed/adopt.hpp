// Opens a device by the including program's own means, CALL(vkFunction), lets Fovea adopt it, and compiles
// the plan of one attention call.
#pragma once

#include <fovea/fovea_vulkan.hpp>

#include <cstdio>

inline int adopt(PFN_vkGetInstanceProcAddr getter) {
    VkApplicationInfo app{};
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.apiVersion = VK_API_VERSION_1_1;
    VkInstanceCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    create.pApplicationInfo = &app;
    VkInstance instance;
    if (CALL(vkCreateInstance)(&create, nullptr, &instance) != VK_SUCCESS)
        return std::puts("no Vulkan instance"), 1;
    LOAD_INSTANCE(instance);
    VkPhysicalDevice gpu;
    uint32_t count = 1;
    if (CALL(vkEnumeratePhysicalDevices)(instance, &count, &gpu) < 0 || count == 0)
        return std::puts("no Vulkan device"), 1;
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    const auto recommended = fovea::recommended_features(getter, instance, VK_API_VERSION_1_1, gpu);
    if (!recommended) return std::puts(recommended.error().text.c_str()), 1;
    FoveaEnabledFeatures enabled = foveaEnabledFeatures();
    fovea::Diag diag;
    if (foveaEnableRecommendedFeatures(&*recommended, &enabled, &diag) != FOVEA_OK)
        return std::puts(diag.text), 1;
    VkDeviceCreateInfo device_create{};
    device_create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device_create.pNext = foveaEnabledFeatures2(&enabled);
    device_create.queueCreateInfoCount = 1;
    device_create.pQueueCreateInfos = &queue;
    device_create.enabledExtensionCount = enabled.extension_count;
    device_create.ppEnabledExtensionNames = enabled.extensions;
    VkDevice device;
    if (CALL(vkCreateDevice)(gpu, &device_create, nullptr, &device) != VK_SUCCESS)
        return std::puts("no device"), 1;

    FoveaVulkanDevice vulkan = foveaVulkanDevice();
    vulkan.api_version = VK_API_VERSION_1_1;
    vulkan.instance = instance;
    vulkan.physical_device = gpu;
    vulkan.device = device;
    vulkan.get_instance_proc_addr = getter;
    vulkan.enabled_features = foveaEnabledFeatures2(&enabled);
    vulkan.enabled_extensions = enabled.extensions;
    vulkan.enabled_extension_count = enabled.extension_count;
    {
        const fovea::Result<fovea::Context> context = fovea::Context::create(vulkan);
        if (!context) return std::puts(context.error().text.c_str()), 1;
        const fovea::Result<fovea::Plan> plan =
            context->plan(fovea::Attention().batch(1).heads(2).lengths(8, 8).dims(16).causal());
        if (!plan) return std::puts(plan.error().text.c_str()), 1;
        std::printf("adopted: %s\n", plan->info().reason);
    }
    DESTROY_DEVICE(device);
    CALL(vkDestroyInstance)(instance, nullptr);
    return 0;
}

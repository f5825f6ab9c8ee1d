/* The parts that every application has, for the samples with Vulkan: a device with a queue, command buffers,
 * host-visible memory. Plain Vulkan 1.1 by prototypes. Errors end the program. */
#ifndef FOVEA_SAMPLES_HOST_H
#define FOVEA_SAMPLES_HOST_H

#include <vulkan/vulkan.h>

#include <fovea/fovea_vulkan.h>

#include <stdio.h>
#include <stdlib.h>

static inline void require(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

typedef struct Host {
    VkInstance instance;
    VkPhysicalDevice gpu;
    VkDevice device;
    VkQueue queue;
    VkCommandPool commands;
    FoveaEnabledFeatures enabled; /* the features that the device was created with */
} Host;

/* A device with all that Fovea can use of it enabled. The pointer of foveaEnabledFeatures2 is into `enabled`:
 * after a move, ask again. */
static inline void open_host(Host* h) {
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                           .pApplicationInfo = &app};
    require(vkCreateInstance(&instance, NULL, &h->instance) == VK_SUCCESS, "no Vulkan");
    uint32_t count = 1;
    require(vkEnumeratePhysicalDevices(h->instance, &count, &h->gpu) >= 0 && count, "no Vulkan device");
    FoveaDiag diag = foveaDiag();
    FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
    h->enabled = foveaEnabledFeatures(); /* your own features and extensions go in first */
    require(foveaQueryRecommendedFeatures(vkGetInstanceProcAddr, h->instance, VK_API_VERSION_1_1, h->gpu,
                                          NULL, &recommended, &diag) == FOVEA_OK,
            diag.text);
    require(foveaEnableRecommendedFeatures(&recommended, &h->enabled, &diag) == FOVEA_OK, diag.text);
    const float priority = 1; /* queue family 0: choose one with compute, as family 0 of most devices has */
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                       .pNext = foveaEnabledFeatures2(&h->enabled),
                                       .queueCreateInfoCount = 1,
                                       .pQueueCreateInfos = &queue,
                                       .enabledExtensionCount = h->enabled.extension_count,
                                       .ppEnabledExtensionNames = h->enabled.extensions};
    require(vkCreateDevice(h->gpu, &device, NULL, &h->device) == VK_SUCCESS, "no device");
    vkGetDeviceQueue(h->device, 0, 0, &h->queue);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
    vkCreateCommandPool(h->device, &pool, NULL, &h->commands);
}

static inline FoveaContext adopt_host(Host* h) {
    FoveaVulkanDevice vulkan = foveaVulkanDevice();
    vulkan.api_version = VK_API_VERSION_1_1;
    vulkan.instance = h->instance;
    vulkan.physical_device = h->gpu;
    vulkan.device = h->device;
    vulkan.get_instance_proc_addr = vkGetInstanceProcAddr;
    vulkan.enabled_features = foveaEnabledFeatures2(&h->enabled);
    vulkan.enabled_extensions = h->enabled.extensions;
    vulkan.enabled_extension_count = h->enabled.extension_count;
    FoveaContext context;
    FoveaDiag diag = foveaDiag();
    require(foveaCreateContext(&vulkan, &context, &diag) == FOVEA_OK, diag.text);
    return context;
}

typedef struct HostMemory { /* a host-visible storage buffer */
    VkBuffer buffer;
    VkDeviceMemory memory;
    float* mapped;
} HostMemory;

static inline HostMemory allocate(const Host* h, uint64_t bytes) {
    HostMemory m = {0};
    const VkBufferCreateInfo buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                       .size = bytes ? bytes : 16,
                                       .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    require(vkCreateBuffer(h->device, &buffer, NULL, &m.buffer) == VK_SUCCESS, "no buffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(h->device, m.buffer, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(h->gpu, &types);
    const VkFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0; /* Vulkan promises one for a buffer */
    while (!(needs.memoryTypeBits >> type & 1) || (types.memoryTypes[type].propertyFlags & mapped) != mapped)
        ++type;
    const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                         .allocationSize = needs.size,
                                         .memoryTypeIndex = type};
    require(vkAllocateMemory(h->device, &memory, NULL, &m.memory) == VK_SUCCESS, "no memory");
    vkBindBufferMemory(h->device, m.buffer, m.memory, 0);
    void* mapping;
    vkMapMemory(h->device, m.memory, 0, VK_WHOLE_SIZE, 0, &mapping);
    m.mapped = mapping;
    return m;
}
static inline void release(const Host* h, const HostMemory* m) {
    vkDestroyBuffer(h->device, m->buffer, NULL);
    vkFreeMemory(h->device, m->memory, NULL);
}

static inline VkCommandBuffer new_commands(const Host* h) {
    const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = h->commands,
                                              .commandBufferCount = 1};
    VkCommandBuffer cmd;
    require(vkAllocateCommandBuffers(h->device, &info, &cmd) == VK_SUCCESS, "no command buffer");
    return cmd;
}
static inline void begin(VkCommandBuffer cmd) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    require(vkBeginCommandBuffer(cmd, &info) == VK_SUCCESS, "no recording");
}
/* Storage writes of compute shaders become seen by what follows on `to`. */
static inline void cmd_barrier(VkCommandBuffer cmd, VkPipelineStageFlags to, VkAccessFlags access) {
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask = access};
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, to, 0, 1, &barrier, 0, NULL, 0, NULL);
}
static inline void end_and_submit(const Host* h, VkCommandBuffer cmd, VkFence fence) {
    vkEndCommandBuffer(cmd);
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &cmd};
    require(vkQueueSubmit(h->queue, 1, &submit, fence) == VK_SUCCESS, "not submitted");
}

/* Descriptor sets for `sets` dispatches, where the device has no push descriptors. */
static inline VkDescriptorPool new_pool(const Host* h, uint32_t sets) {
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = sets,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    VkDescriptorPool pool;
    require(vkCreateDescriptorPool(h->device, &info, NULL, &pool) == VK_SUCCESS, "no descriptor pool");
    return pool;
}

static inline void close_host(const Host* h) {
    vkDestroyCommandPool(h->device, h->commands, NULL);
    vkDestroyDevice(h->device, NULL);
    vkDestroyInstance(h->instance, NULL);
}

#endif

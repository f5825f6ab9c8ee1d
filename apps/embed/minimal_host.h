/* The parts that every application has: a Vulkan device with a queue, a command buffer, a host-visible
 * buffer, and its own compute pass. */
#ifndef FOVEA_EMBED_MINIMAL_HOST_H
#define FOVEA_EMBED_MINIMAL_HOST_H

#include <fovea/fovea_vulkan.h>
#include <volk.h>

#include "inputs.comp.h"

#include <stdio.h>
#include <stdlib.h>

static void require(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "fovea_embed_minimal: %s\n", what);
    exit(1);
}

typedef struct Host {
    VkInstance instance;
    VkPhysicalDevice gpu;
    VkDevice device;
    FoveaEnabledFeatures enabled; /* the features that the device was created with */
    VkQueue queue;
    VkCommandPool commands;
    VkCommandBuffer cmd;
    VkBuffer buffer;
    VkDeviceMemory memory;
    float* mapped;
} Host;

static void open_device(Host* h) {
    require(volkInitialize() == VK_SUCCESS, "no Vulkan loader");
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                         .pApplicationInfo = &app};
    require(vkCreateInstance(&create, NULL, &h->instance) == VK_SUCCESS, "no Vulkan driver");
    volkLoadInstance(h->instance);
    uint32_t count = 1;
    require(vkEnumeratePhysicalDevices(h->instance, &count, &h->gpu) >= 0 && count, "no Vulkan device");

    /* Adds the features of this device that Fovea can use; `enabled` may already contain the
     * application's own. */
    FoveaDiag diag = foveaDiag();
    FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
    h->enabled = foveaEnabledFeatures();
    require(foveaQueryRecommendedFeatures(vkGetInstanceProcAddr, h->instance, VK_API_VERSION_1_1, h->gpu,
                                          NULL, &recommended, &diag) == FOVEA_OK,
            diag.text);
    require(foveaEnableRecommendedFeatures(&recommended, &h->enabled, &diag) == FOVEA_OK, diag.text);
    const float priority = 1; /* family 0 computes on every driver this program meets */
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                       .pNext = foveaEnabledFeatures2(&h->enabled),
                                       .queueCreateInfoCount = 1,
                                       .pQueueCreateInfos = &queue,
                                       .enabledExtensionCount = h->enabled.extension_count,
                                       .ppEnabledExtensionNames = h->enabled.extensions};
    require(vkCreateDevice(h->gpu, &device, NULL, &h->device) == VK_SUCCESS, "no Vulkan device");

    volkLoadDevice(h->device);
    vkGetDeviceQueue(h->device, 0, 0, &h->queue);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    vkCreateCommandPool(h->device, &pool, NULL, &h->commands);
    const VkCommandBufferAllocateInfo buffer = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                .commandPool = h->commands,
                                                .commandBufferCount = 1};
    vkAllocateCommandBuffers(h->device, &buffer, &h->cmd);
}

static void create_buffer(Host* h, uint64_t bytes) {
    const VkBufferCreateInfo create = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                       .size = bytes,
                                       .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    vkCreateBuffer(h->device, &create, NULL, &h->buffer);
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(h->device, h->buffer, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(h->gpu, &types);
    const VkFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while (!(needs.memoryTypeBits >> type & 1) || (types.memoryTypes[type].propertyFlags & mapped) != mapped)
        ++type; /* Vulkan promises one for a buffer */
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = needs.size,
                                           .memoryTypeIndex = type};
    require(vkAllocateMemory(h->device, &allocate, NULL, &h->memory) == VK_SUCCESS, "no device memory");
    vkBindBufferMemory(h->device, h->buffer, h->memory, 0);
    void* mapping;
    vkMapMemory(h->device, h->memory, 0, VK_WHOLE_SIZE, 0, &mapping);
    h->mapped = mapping;
}

/* The host's own pass, by the host's own means. */
typedef struct Pass {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool; /* also for the sets that Fovea takes without push descriptors */
    VkDescriptorSet set;
} Pass;

static Pass create_pass(const Host* h, uint64_t input_bytes, uint32_t fovea_sets) {
    Pass pass = {0};
    const VkDescriptorSetLayoutBinding slot = {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                               VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    const VkDescriptorSetLayoutCreateInfo slots = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1, .pBindings = &slot};
    vkCreateDescriptorSetLayout(h->device, &slots, NULL, &pass.set_layout);
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &pass.set_layout};
    vkCreatePipelineLayout(h->device, &layout, NULL, &pass.layout);
    const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = sizeof kInputsShader,
                                           .pCode = kInputsShader};
    VkComputePipelineCreateInfo create = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                          .layout = pass.layout};
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.pName = "main";
    vkCreateShaderModule(h->device, &code, NULL, &create.stage.module);
    vkCreateComputePipelines(h->device, VK_NULL_HANDLE, 1, &create, NULL, &pass.pipeline);
    vkDestroyShaderModule(h->device, create.stage.module, NULL);
    const uint32_t sets = 1 + fovea_sets;
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = sets,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    vkCreateDescriptorPool(h->device, &pool, NULL, &pass.pool);
    const VkDescriptorSetAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                                  .descriptorPool = pass.pool,
                                                  .descriptorSetCount = 1,
                                                  .pSetLayouts = &pass.set_layout};
    require(vkAllocateDescriptorSets(h->device, &allocate, &pass.set) == VK_SUCCESS, "no descriptor set");
    const VkDescriptorBufferInfo inputs = {h->buffer, 0, input_bytes};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = pass.set,
                                        .descriptorCount = 1,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = &inputs};
    vkUpdateDescriptorSets(h->device, 1, &write, 0, NULL);
    return pass;
}

static void destroy_pass(const Host* h, const Pass* pass) {
    vkDestroyDescriptorPool(h->device, pass->pool, NULL);
    vkDestroyPipeline(h->device, pass->pipeline, NULL);
    vkDestroyPipelineLayout(h->device, pass->layout, NULL);
    vkDestroyDescriptorSetLayout(h->device, pass->set_layout, NULL);
}

static void cmd_barrier(VkCommandBuffer cmd, VkPipelineStageFlags to, VkAccessFlags access) {
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask = access};
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, to, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static void begin(const Host* h) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(h->cmd, &info);
}

static void submit_and_wait(const Host* h) {
    vkEndCommandBuffer(h->cmd);
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &h->cmd};
    const VkFenceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;
    vkCreateFence(h->device, &create, NULL, &fence);
    require(vkQueueSubmit(h->queue, 1, &submit, fence) == VK_SUCCESS, "the submission failed");
    /* Five minutes: software with instrumented shaders takes its time. */
    require(vkWaitForFences(h->device, 1, &fence, VK_TRUE, UINT64_C(300000000000)) == VK_SUCCESS,
            "the device did not finish");
    vkDestroyFence(h->device, fence, NULL);
}

static void close_device(const Host* h) {
    vkDeviceWaitIdle(h->device); /* for layers, which may have submitted work after the fence */
    vkDestroyCommandPool(h->device, h->commands, NULL);
    vkDestroyBuffer(h->device, h->buffer, NULL);
    vkFreeMemory(h->device, h->memory, NULL);
    vkDestroyDevice(h->device, NULL);
    vkDestroyInstance(h->instance, NULL);
}

#endif

// What a host has anyway: a Vulkan device with a queue, a command buffer, a buffer that the processor sees,
// and a compute pass of its own.
#pragma once

#include <fovea/fovea.h>
#include <volk.h>

#include "inputs.comp.h"

#include <cstdio>
#include <cstdlib>

namespace minimal {

inline void require(bool ok, const char* what) {
    if (ok) return;
    std::fprintf(stderr, "fovea_embed_minimal: %s\n", what);
    std::exit(1);
}

struct Host {
    VkInstance instance;
    VkPhysicalDevice gpu;
    VkDevice device;
    VkQueue queue;
    VkCommandPool commands;
    VkCommandBuffer cmd;
    VkBuffer buffer;
    VkDeviceMemory memory;
    float* mapped;
};

inline Host open_device() {
    Host h{};
    require(volkInitialize() == VK_SUCCESS, "no Vulkan loader");
    const VkApplicationInfo app{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                      .pApplicationInfo = &app};
    require(vkCreateInstance(&create, nullptr, &h.instance) == VK_SUCCESS, "no Vulkan driver");
    volkLoadInstance(h.instance);
    uint32_t count = 1;
    require(vkEnumeratePhysicalDevices(h.instance, &count, &h.gpu) >= 0 && count, "no Vulkan device");
    const float priority = 1;  // family 0 computes on every driver this program meets
    const VkDeviceQueueCreateInfo queue{
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                    .queueCreateInfoCount = 1,
                                    .pQueueCreateInfos = &queue};
    require(vkCreateDevice(h.gpu, &device, nullptr, &h.device) == VK_SUCCESS, "no Vulkan device");
    volkLoadDevice(h.device);
    vkGetDeviceQueue(h.device, 0, 0, &h.queue);
    const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    vkCreateCommandPool(h.device, &pool, nullptr, &h.commands);
    const VkCommandBufferAllocateInfo buffer{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = h.commands,
                                             .commandBufferCount = 1};
    vkAllocateCommandBuffers(h.device, &buffer, &h.cmd);
    return h;
}

inline void create_buffer(Host& h, uint64_t bytes) {
    const VkBufferCreateInfo create{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                    .size = bytes,
                                    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    vkCreateBuffer(h.device, &create, nullptr, &h.buffer);
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(h.device, h.buffer, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(h.gpu, &types);
    constexpr VkFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while (!(needs.memoryTypeBits >> type & 1) ||
           (types.memoryTypes[type].propertyFlags & kMapped) != kMapped)
        ++type;  // Vulkan promises one for a buffer
    const VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = needs.size,
                                        .memoryTypeIndex = type};
    require(vkAllocateMemory(h.device, &allocate, nullptr, &h.memory) == VK_SUCCESS, "no device memory");
    vkBindBufferMemory(h.device, h.buffer, h.memory, 0);
    vkMapMemory(h.device, h.memory, 0, VK_WHOLE_SIZE, 0, reinterpret_cast<void**>(&h.mapped));
}

// The host's own pass, by the host's own means.
struct Pass {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool;  // also for the sets that Fovea takes without push descriptors
    VkDescriptorSet set;
};

inline Pass create_pass(const Host& h, uint64_t input_bytes, uint32_t fovea_sets) {
    Pass pass{};
    const VkDescriptorSetLayoutBinding slot{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                            VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    const VkDescriptorSetLayoutCreateInfo slots{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr,
                                                0, 1, &slot};
    vkCreateDescriptorSetLayout(h.device, &slots, nullptr, &pass.set_layout);
    const VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1,
                                            &pass.set_layout};
    vkCreatePipelineLayout(h.device, &layout, nullptr, &pass.layout);
    const VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0,
                                        sizeof kInputsShader, kInputsShader};
    VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    create.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, nullptr, 0,
                    VK_SHADER_STAGE_COMPUTE_BIT};
    create.stage.pName = "main";
    create.layout = pass.layout;
    vkCreateShaderModule(h.device, &code, nullptr, &create.stage.module);
    vkCreateComputePipelines(h.device, VK_NULL_HANDLE, 1, &create, nullptr, &pass.pipeline);
    vkDestroyShaderModule(h.device, create.stage.module, nullptr);
    const uint32_t sets = 1 + fovea_sets;
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    const VkDescriptorPoolCreateInfo pool{
        VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, sets, 1, &size};
    vkCreateDescriptorPool(h.device, &pool, nullptr, &pass.pool);
    const VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                               pass.pool, 1, &pass.set_layout};
    require(vkAllocateDescriptorSets(h.device, &allocate, &pass.set) == VK_SUCCESS, "no descriptor set");
    const VkDescriptorBufferInfo inputs{h.buffer, 0, input_bytes};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, pass.set, 0, 0, 1};
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &inputs;
    vkUpdateDescriptorSets(h.device, 1, &write, 0, nullptr);
    return pass;
}

inline void destroy_pass(const Host& h, const Pass& pass) {
    vkDestroyDescriptorPool(h.device, pass.pool, nullptr);
    vkDestroyPipeline(h.device, pass.pipeline, nullptr);
    vkDestroyPipelineLayout(h.device, pass.layout, nullptr);
    vkDestroyDescriptorSetLayout(h.device, pass.set_layout, nullptr);
}

inline void cmd_barrier(VkCommandBuffer cmd, VkPipelineStageFlags to, VkAccessFlags access) {
    const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                  access};
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, to, 0, 1, &barrier, 0, nullptr, 0,
                         nullptr);
}

inline void begin(const Host& h) {
    const VkCommandBufferBeginInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(h.cmd, &info);
}

inline void submit_and_wait(const Host& h) {
    vkEndCommandBuffer(h.cmd);
    const VkSubmitInfo submit{
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &h.cmd};
    const VkFenceCreateInfo create{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;
    vkCreateFence(h.device, &create, nullptr, &fence);
    require(vkQueueSubmit(h.queue, 1, &submit, fence) == VK_SUCCESS, "the submission failed");
    require(vkWaitForFences(h.device, 1, &fence, VK_TRUE, 60'000'000'000) == VK_SUCCESS,
            "the device did not finish");
    vkDestroyFence(h.device, fence, nullptr);
}

inline void close(const Host& h) {
    vkDestroyCommandPool(h.device, h.commands, nullptr);
    vkDestroyBuffer(h.device, h.buffer, nullptr);
    vkFreeMemory(h.device, h.memory, nullptr);
    vkDestroyDevice(h.device, nullptr);
    vkDestroyInstance(h.instance, nullptr);
}

}  // namespace minimal

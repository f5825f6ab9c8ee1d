/* Attention on the first Vulkan device, in one command buffer. 4 queries over 4 equal keys, causal: each row
 * of the result is the mean of the values that it may see. */
#include <vulkan/vulkan.h>

#include <fovea/fovea_vulkan.h>

#include <stdio.h>
#include <stdlib.h>

static void require(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

int main(void) {
    /* 1. Your own device. If you have one already, continue at 2. */
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                                .pApplicationInfo = &app};
    VkInstance instance;
    require(vkCreateInstance(&instance_info, NULL, &instance) == VK_SUCCESS, "no Vulkan");
    uint32_t count = 1;
    VkPhysicalDevice gpu;
    require(vkEnumeratePhysicalDevices(instance, &count, &gpu) >= 0 && count, "no Vulkan device");
    const float priority = 1; /* queue family 0: choose one with compute, as family 0 of most devices has */
    const VkDeviceQueueCreateInfo queue_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    // [enable]
    FoveaDiag diag = foveaDiag();
    FoveaRecommendedFeatures recommended = foveaRecommendedFeatures(); /* optional, for speed */
    require(foveaQueryRecommendedFeatures(vkGetInstanceProcAddr, instance, VK_API_VERSION_1_1, gpu, NULL,
                                          &recommended, &diag) == FOVEA_OK,
            diag.text);
    FoveaEnabledFeatures enabled = foveaEnabledFeatures(); /* your own features and extensions go in first */
    require(foveaEnableRecommendedFeatures(&recommended, &enabled, &diag) == FOVEA_OK, diag.text);
    const VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                            .pNext = foveaEnabledFeatures2(&enabled),
                                            .queueCreateInfoCount = 1,
                                            .pQueueCreateInfos = &queue_info,
                                            .enabledExtensionCount = enabled.extension_count,
                                            .ppEnabledExtensionNames = enabled.extensions};
    // [end enable]
    VkDevice device;
    require(vkCreateDevice(gpu, &device_info, NULL, &device) == VK_SUCCESS, "no device");

    // [wrap]
    /* 2. The context of Fovea: tell it how the device was created. */
    const FoveaVulkanDevice vulkan = {.struct_size = sizeof vulkan,
                                      .api_version = VK_API_VERSION_1_1,
                                      .instance = instance,
                                      .physical_device = gpu,
                                      .device = device,
                                      .get_instance_proc_addr = vkGetInstanceProcAddr,
                                      .enabled_features = foveaEnabledFeatures2(&enabled),
                                      .enabled_extensions = enabled.extensions,
                                      .enabled_extension_count = enabled.extension_count};
    FoveaContext context;
    require(foveaCreateContext(&vulkan, &context, &diag) == FOVEA_OK, diag.text);
    FoveaDeviceProperties properties = foveaDeviceProperties();
    foveaContextProperties(context, &properties, &diag);

    // [end wrap]
    /* [plan] 3. Plan once, ahead of the first frame. */
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = desc.heads_q = desc.heads_kv = 1;
    desc.len_q = desc.len_kv = 4;
    desc.dim_qk = desc.dim_v = 64;
    desc.flags = FOVEA_FLAG_CAUSAL;
    FoveaPlan plan;
    require(foveaPlanAttention(&properties, &desc, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    require(foveaCompilePlan(context, plan, &diag) == FOVEA_OK, diag.text);
    FoveaPlanInfo info = foveaPlanInfo();
    foveaGetPlanInfo(plan, &info, &diag);
    // [end plan]

    /* 4. Memory: q, k, v, o and the workspace, contiguous in one host-visible buffer. */
    enum { kTensorBytes = 4 * 64 * sizeof(float) };
    const VkBufferCreateInfo buffer_info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                            .size = 4 * kTensorBytes + info.workspace_bytes,
                                            .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    VkBuffer buffer;
    require(vkCreateBuffer(device, &buffer_info, NULL, &buffer) == VK_SUCCESS, "no buffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(gpu, &types);
    const VkFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while (!(needs.memoryTypeBits >> type & 1) || (types.memoryTypes[type].propertyFlags & mapped) != mapped) ++type;
    const VkMemoryAllocateInfo memory_info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = type};
    VkDeviceMemory memory;
    require(vkAllocateMemory(device, &memory_info, NULL, &memory) == VK_SUCCESS, "no memory");
    vkBindBufferMemory(device, buffer, memory, 0);
    void* mapping;
    vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapping);
    float* numbers = mapping; /* written before vkQueueSubmit, into coherent memory: that needs no barrier */
    for (int i = 0; i < 2 * 4 * 64; ++i) numbers[i] = 1; /* q and k */
    for (int i = 0; i < 4 * 64; ++i) numbers[2 * 4 * 64 + i] = (float)(i / 64); /* v: the number of the row */

    /* 5. A descriptor pool, if the device has no push descriptors. */
    VkDescriptorPool pool = VK_NULL_HANDLE;
    const uint32_t sets = (uint32_t)info.slice_count * info.dispatches_per_slice;
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    const VkDescriptorPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                                  .maxSets = sets,
                                                  .poolSizeCount = 1,
                                                  .pPoolSizes = &size};
    if (!(properties.features & FOVEA_FEATURE_PUSH_DESCRIPTORS))
        require(vkCreateDescriptorPool(device, &pool_info, NULL, &pool) == VK_SUCCESS, "no descriptor pool");

    /* 6. Record into your command buffer, between your own commands. */
    const VkCommandPoolCreateInfo commands_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandPool commands;
    vkCreateCommandPool(device, &commands_info, NULL, &commands);
    const VkCommandBufferAllocateInfo cmd_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = commands,
                                                  .commandBufferCount = 1};
    VkCommandBuffer cmd;
    vkAllocateCommandBuffers(device, &cmd_info, &cmd);
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(cmd, &begin);
    // [record]
    FoveaBuffer bindings[FOVEA_BIND_O + 1]; /* Q, K, V, O */
    for (uint32_t i = 0; i <= FOVEA_BIND_O; ++i)
        bindings[i] = (FoveaBuffer){buffer, (uint64_t)i * kTensorBytes, kTensorBytes};
    const FoveaRecord record = {.struct_size = sizeof record,
                                .binding_count = FOVEA_BIND_O + 1,
                                .cmd = cmd,
                                .bindings = bindings,
                                .workspace = {buffer, 4 * kTensorBytes, info.workspace_bytes},
                                .descriptor_pool = {pool}}; /* null with push descriptors */
    require(foveaCmdRun(plan, &record, &diag) == FOVEA_OK, diag.text);
    // [end record]
    const VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, NULL,
                         0, NULL);
    vkEndCommandBuffer(cmd);

    /* 7. Submit as ever. */
    VkQueue queue;
    vkGetDeviceQueue(device, 0, 0, &queue);
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &cmd};
    require(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS, "not submitted");
    require(vkQueueWaitIdle(queue) == VK_SUCCESS, "not finished");
    const float* o = numbers + 3 * 4 * 64;
    printf("%.2f %.2f %.2f %.2f\n", o[0], o[64], o[128], o[192]); /* 0.00 0.50 1.00 1.50 */

    foveaDestroyPlan(plan);
    foveaDestroyContext(context);
    vkDestroyDescriptorPool(device, pool, NULL);
    vkDestroyCommandPool(device, commands, NULL);
    vkDestroyBuffer(device, buffer, NULL);
    vkFreeMemory(device, memory, NULL);
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    return 0;
}

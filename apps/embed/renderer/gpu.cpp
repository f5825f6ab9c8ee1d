#include "gpu.hpp"

#include <cstdio>
#include <cstdlib>

namespace embed {

void require(bool ok, const char* what) {
    if (ok) return;
    std::fprintf(stderr, "%s: %s\n", kProgram, what);
    std::exit(1);
}
void check(VkResult result, const char* what) { require(result >= VK_SUCCESS, what); }

Gpu::Gpu(std::span<const char* const> instance_extensions, bool present, const PassLayout& passes)
    : passes_(passes) {
    require(volkInitialize() == VK_SUCCESS, "no Vulkan loader");
    const VkApplicationInfo app{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                      .pApplicationInfo = &app,
                                      .enabledExtensionCount = uint32_t(instance_extensions.size()),
                                      .ppEnabledExtensionNames = instance_extensions.data()};
    check(vkCreateInstance(&create, nullptr, &instance), "no Vulkan driver");
    volkLoadInstance(instance);
    open_device(present);
    open_allocator();
    make_layouts();
}

Gpu::~Gpu() {
    vkDestroyDescriptorPool(device, sets_, nullptr);
    vkDestroyPipelineLayout(device, layout, nullptr);
    vkDestroyDescriptorSetLayout(device, set_layout, nullptr);
    vmaDestroyAllocator(allocator_);
    vkDestroyDevice(device, nullptr);
    vkDestroyInstance(instance, nullptr);
}

// The first device with Vulkan 1.3 and a queue that draws and computes.
void Gpu::open_device(bool present) {
    uint32_t count = 16;
    VkPhysicalDevice devices[16];
    vkEnumeratePhysicalDevices(instance, &count, devices);
    bool found = false;
    for (uint32_t i = 0; i < count && !found; ++i) {
        physical = devices[i];
        vkGetPhysicalDeviceProperties(physical, &properties);
        uint32_t families = 16;
        VkQueueFamilyProperties family[16];
        vkGetPhysicalDeviceQueueFamilyProperties(physical, &families, family);
        constexpr VkQueueFlags kBoth = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
        for (queue_family = 0; queue_family < families && !found; ++queue_family)
            found = properties.apiVersion >= VK_API_VERSION_1_3 &&
                    (family[queue_family].queueFlags & kBoth) == kBoth;
    }
    require(found, "no device with Vulkan 1.3 that draws and computes");
    --queue_family;

    features13_.dynamicRendering = features13_.synchronization2 = VK_TRUE;
    features12_.timelineSemaphore = VK_TRUE;
    features12_.pNext = &features13_;
    features_.pNext = &features12_;
    // The renderer's own wishes, then all that Fovea can use of this device.
    enabled.features = &features_;
    if (present) enabled.extensions[enabled.extension_count++] = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
    FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
    FoveaDiag diag = foveaDiag();
    require(foveaQueryRecommendedFeatures(vkGetInstanceProcAddr, instance, VK_API_VERSION_1_3, physical,
                                          nullptr, &recommended, &diag) == FOVEA_OK,
            diag.text);
    require(foveaEnableRecommendedFeatures(&recommended, &enabled, &diag) == FOVEA_OK, diag.text);

    const float priority = 1;
    const VkDeviceQueueCreateInfo queues{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = queue_family,
                                         .queueCount = 1,
                                         .pQueuePriorities = &priority};
    const VkDeviceCreateInfo create{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                    .pNext = foveaEnabledFeatures2(&enabled),
                                    .queueCreateInfoCount = 1,
                                    .pQueueCreateInfos = &queues,
                                    .enabledExtensionCount = enabled.extension_count,
                                    .ppEnabledExtensionNames = enabled.extensions};
    check(vkCreateDevice(physical, &create, nullptr, &device), "the device could not be opened");
    volkLoadDevice(device);
    vkGetDeviceQueue(device, queue_family, 0, &queue);
}

void Gpu::open_allocator() {
    const VmaVulkanFunctions functions{.vkGetInstanceProcAddr = vkGetInstanceProcAddr,
                                       .vkGetDeviceProcAddr = vkGetDeviceProcAddr};
    const VmaAllocatorCreateInfo create{.physicalDevice = physical,
                                        .device = device,
                                        .pVulkanFunctions = &functions,
                                        .instance = instance,
                                        .vulkanApiVersion = VK_API_VERSION_1_3};
    check(vmaCreateAllocator(&create, &allocator_), "no allocator");
}

void Gpu::make_layouts() {
    require(passes_.buffers <= kMaxPassBuffers, "too many buffers for a pass");
    VkDescriptorSetLayoutBinding slots[kMaxPassBuffers] = {};
    for (uint32_t i = 0; i < passes_.buffers; ++i)
        slots[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, kPassStages, nullptr};
    const VkDescriptorSetLayoutCreateInfo set{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                              .bindingCount = passes_.buffers,
                                              .pBindings = slots};
    check(vkCreateDescriptorSetLayout(device, &set, nullptr, &set_layout), "no descriptor set layout");
    const VkPushConstantRange push{kPassStages, 0, passes_.push_bytes};
    const VkPipelineLayoutCreateInfo create{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                            .setLayoutCount = 1,
                                            .pSetLayouts = &set_layout,
                                            .pushConstantRangeCount = 1,
                                            .pPushConstantRanges = &push};
    check(vkCreatePipelineLayout(device, &create, nullptr, &layout), "no pipeline layout");
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, passes_.sets * passes_.buffers};
    const VkDescriptorPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                          .maxSets = passes_.sets,
                                          .poolSizeCount = 1,
                                          .pPoolSizes = &size};
    check(vkCreateDescriptorPool(device, &pool, nullptr, &sets_), "no descriptor pool");
}

Buffer Gpu::buffer(uint64_t size, bool mapped) const {
    const VkBufferCreateInfo create{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                    .size = size,
                                    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                             VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                             VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
    VmaAllocationCreateInfo where{.usage = VMA_MEMORY_USAGE_AUTO};
    if (mapped) where.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
    Buffer b{.size = size};
    VmaAllocationInfo info;
    check(vmaCreateBuffer(allocator_, &create, &where, &b.handle, &b.memory, &info),
          "no memory for a buffer");
    b.mapped = info.pMappedData;
    return b;
}
void Gpu::destroy(const Buffer& b) const { vmaDestroyBuffer(allocator_, b.handle, b.memory); }

Image Gpu::color_image(VkExtent2D extent, VkFormat format) const {
    const VkImageCreateInfo create{
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = format,
        .extent = {extent.width, extent.height, 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT};
    const VmaAllocationCreateInfo where{.usage = VMA_MEMORY_USAGE_AUTO};
    Image image;
    check(vmaCreateImage(allocator_, &create, &where, &image.handle, &image.memory, nullptr),
          "no memory for an image");
    image.view = view(image.handle, format);
    return image;
}
void Gpu::destroy(const Image& image) const {
    vkDestroyImageView(device, image.view, nullptr);
    vmaDestroyImage(allocator_, image.handle, image.memory);
}

VkImageView Gpu::view(VkImage image, VkFormat format) const {
    const VkImageViewCreateInfo create{.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                       .image = image,
                                       .viewType = VK_IMAGE_VIEW_TYPE_2D,
                                       .format = format,
                                       .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
    VkImageView made;
    check(vkCreateImageView(device, &create, nullptr, &made), "no image view");
    return made;
}

VkShaderModule Gpu::shader(std::span<const uint32_t> code) const {
    const VkShaderModuleCreateInfo create{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                          .codeSize = code.size_bytes(),
                                          .pCode = code.data()};
    VkShaderModule made;
    check(vkCreateShaderModule(device, &create, nullptr, &made), "no shader");
    return made;
}

VkPipeline Gpu::compute(std::span<const uint32_t> code) const {
    const VkShaderModule module = shader(code);
    const VkComputePipelineCreateInfo create{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, nullptr, 0,
                  VK_SHADER_STAGE_COMPUTE_BIT, module, "main", nullptr},
        .layout = layout};
    VkPipeline made;
    check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &create, nullptr, &made),
          "no compute pipeline");
    vkDestroyShaderModule(device, module, nullptr);
    return made;
}

VkPipeline Gpu::triangles(std::span<const uint32_t> vertex, std::span<const uint32_t> fragment,
                          VkFormat format) const {
    VkPipelineShaderStageCreateInfo stages[2] = {};
    for (int i = 0; i < 2; ++i) {
        stages[i].sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        stages[i].stage = i ? VK_SHADER_STAGE_FRAGMENT_BIT : VK_SHADER_STAGE_VERTEX_BIT;
        stages[i].module = shader(i ? fragment : vertex);
        stages[i].pName = "main";
    }
    const VkPipelineVertexInputStateCreateInfo input{
        VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    const VkPipelineInputAssemblyStateCreateInfo assembly{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
        .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST};
    const VkPipelineViewportStateCreateInfo viewport{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO,
        .viewportCount = 1,
        .scissorCount = 1};
    const VkPipelineRasterizationStateCreateInfo raster{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1};
    const VkPipelineMultisampleStateCreateInfo samples{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
        .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT};
    const VkPipelineColorBlendAttachmentState no_blend{.colorWriteMask = 0xf};
    const VkPipelineColorBlendStateCreateInfo blend{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO,
        .attachmentCount = 1,
        .pAttachments = &no_blend};
    constexpr VkDynamicState kStates[] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
    const VkPipelineDynamicStateCreateInfo dynamic{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO,
        .dynamicStateCount = 2,
        .pDynamicStates = kStates};
    const VkPipelineRenderingCreateInfo rendering{.sType = VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO,
                                                  .colorAttachmentCount = 1,
                                                  .pColorAttachmentFormats = &format};
    const VkGraphicsPipelineCreateInfo create{.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
                                              .pNext = &rendering,
                                              .stageCount = 2,
                                              .pStages = stages,
                                              .pVertexInputState = &input,
                                              .pInputAssemblyState = &assembly,
                                              .pViewportState = &viewport,
                                              .pRasterizationState = &raster,
                                              .pMultisampleState = &samples,
                                              .pColorBlendState = &blend,
                                              .pDynamicState = &dynamic,
                                              .layout = layout};
    VkPipeline made;
    check(vkCreateGraphicsPipelines(device, VK_NULL_HANDLE, 1, &create, nullptr, &made),
          "no graphics pipeline");
    for (const VkPipelineShaderStageCreateInfo& stage : stages)
        vkDestroyShaderModule(device, stage.module, nullptr);
    return made;
}

VkDescriptorSet Gpu::descriptor_set(std::span<const Buffer* const> buffers) const {
    require(buffers.size() == passes_.buffers, "a pass has another number of buffers");
    const VkDescriptorSetAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                               .descriptorPool = sets_,
                                               .descriptorSetCount = 1,
                                               .pSetLayouts = &set_layout};
    VkDescriptorSet set;
    check(vkAllocateDescriptorSets(device, &allocate, &set), "no descriptor set");
    VkDescriptorBufferInfo ranges[kMaxPassBuffers];
    VkWriteDescriptorSet writes[kMaxPassBuffers] = {};
    for (uint32_t i = 0; i < passes_.buffers; ++i) {
        ranges[i] = {buffers[i]->handle, 0, buffers[i]->size};
        writes[i] = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                     .dstSet = set,
                     .dstBinding = i,
                     .descriptorCount = 1,
                     .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                     .pBufferInfo = &ranges[i]};
    }
    vkUpdateDescriptorSets(device, passes_.buffers, writes, 0, nullptr);
    return set;
}

void Gpu::cmd_bind(VkCommandBuffer cmd, VkPipelineBindPoint point, VkPipeline pipeline, VkDescriptorSet set,
                   const void* push) const {
    vkCmdBindPipeline(cmd, point, pipeline);
    vkCmdBindDescriptorSets(cmd, point, layout, 0, 1, &set, 0, nullptr);
    vkCmdPushConstants(cmd, layout, kPassStages, 0, passes_.push_bytes, push);
}

void cmd_shader_barrier(VkCommandBuffer cmd, VkPipelineStageFlags2 from, VkPipelineStageFlags2 to) {
    const VkMemoryBarrier2 barrier{
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
        .srcStageMask = from,
        .srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
        .dstStageMask = to,
        .dstAccessMask =
            VK_ACCESS_2_SHADER_STORAGE_READ_BIT |
            (to & VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT ? VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT : 0)};
    const VkDependencyInfo info{
        .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &barrier};
    vkCmdPipelineBarrier2(cmd, &info);
}

}  // namespace embed

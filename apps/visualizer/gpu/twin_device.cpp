#include "gpu/twin_device.hpp"

#include "gpu/gpu_device.hpp"

#include <fovea/fovea.hpp>

#include <algorithm>

namespace fovea::visualizer {
namespace {

constexpr uint64_t kBufferBytes = 256;

}  // namespace

std::unique_ptr<TwinDevice> TwinDevice::open(const GpuDevice& device) {
    if (!(device.properties().features & FOVEA_FEATURE_PUSH_DESCRIPTORS)) return nullptr;
    std::unique_ptr<TwinDevice> twin(new TwinDevice());
    if (device.create_like(twin->device_) != VK_SUCCESS) return nullptr;
    volkLoadDeviceTable(&twin->vk_, twin->device_);
    twin->chooses_subgroup_size_ =
        device.properties().min_subgroup_size != device.properties().max_subgroup_size;
    return twin->create_objects(device) ? std::move(twin) : nullptr;
}

TwinDevice::~TwinDevice() {
    if (!device_) return;
    vk_.vkDeviceWaitIdle(device_);
    vk_.vkDestroyBuffer(device_, buffer_, nullptr);
    vk_.vkFreeMemory(device_, memory_, nullptr);
    vk_.vkDestroyCommandPool(device_, commands_, nullptr);
    vk_.vkDestroyDevice(device_, nullptr);
}

bool TwinDevice::create_objects(const GpuDevice& device) {
    vk_.vkGetDeviceQueue(device_, device.queue_family(), 0, &queue_);
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = device.queue_family();
    if (vk_.vkCreateCommandPool(device_, &pool, nullptr, &commands_) != VK_SUCCESS) return false;
    VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    buffer.size = kBufferBytes;
    buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    if (vk_.vkCreateBuffer(device_, &buffer, nullptr, &buffer_) != VK_SUCCESS) return false;
    VkMemoryRequirements needs;
    vk_.vkGetBufferMemoryRequirements(device_, buffer_, &needs);
    VkMemoryAllocateInfo memory{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    memory.allocationSize = needs.size;
    while (!(needs.memoryTypeBits >> memory.memoryTypeIndex & 1)) ++memory.memoryTypeIndex;
    if (vk_.vkAllocateMemory(device_, &memory, nullptr, &memory_) != VK_SUCCESS) return false;
    return vk_.vkBindBufferMemory(device_, buffer_, memory_, 0) == VK_SUCCESS;
}

// As the engine makes them: the driver's cache goes by what comes out of both.
bool TwinDevice::create_layouts(const Kernel& kernel, Pipeline& out) {
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (uint32_t slot = 0; slot < 32; ++slot)
        if (kernel.slot_mask >> slot & 1)
            bindings.push_back(
                {slot, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
    set.bindingCount = uint32_t(bindings.size());
    set.pBindings = bindings.data();
    if (vk_.vkCreateDescriptorSetLayout(device_, &set, nullptr, &out.set_layout) != VK_SUCCESS) return false;
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel.push_words * 4};
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &out.set_layout;
    layout.pushConstantRangeCount = range.size ? 1 : 0;
    layout.pPushConstantRanges = &range;
    return vk_.vkCreatePipelineLayout(device_, &layout, nullptr, &out.layout) == VK_SUCCESS;
}

bool TwinDevice::create_pipeline(const Kernel& kernel, Pipeline& out) {
    FoveaDispatch dispatch{};
    dispatch.shader = kernel.shader;
    dispatch.spec_count = uint32_t(kernel.spec.size());
    std::copy(kernel.spec.begin(), kernel.spec.end(), dispatch.spec);
    for (uint32_t slot = 0; slot < 32; ++slot)
        if (kernel.slot_mask >> slot & 1) dispatch.bindings[dispatch.binding_count++].slot = slot;
    const Result<std::vector<uint32_t>> words = dispatch_code(dispatch);
    if (!words) return false;
    VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.pCode = words->data();
    code.codeSize = words->size() * 4;
    VkShaderModule module = VK_NULL_HANDLE;
    if (vk_.vkCreateShaderModule(device_, &code, nullptr, &module) != VK_SUCCESS) return false;
    std::vector<VkSpecializationMapEntry> entries;
    for (uint32_t i = 0; i < kernel.spec.size(); ++i) entries.push_back({i, i * 4, 4});
    const VkSpecializationInfo constants{uint32_t(entries.size()), entries.data(), kernel.spec.size() * 4,
                                         kernel.spec.data()};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    subgroup.requiredSubgroupSize = kernel.subgroup_size;
    VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    if (kernel.subgroup_size) {
        if (chooses_subgroup_size_) info.stage.pNext = &subgroup;
        info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = &constants;
    info.layout = out.layout;
    const VkResult r = vk_.vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &out.handle);
    vk_.vkDestroyShaderModule(device_, module, nullptr);
    return r == VK_SUCCESS;
}

void TwinDevice::submit(const Kernel& kernel, const Pipeline& pipeline) {
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = commands_;
    allocate.commandBufferCount = 1;
    VkCommandBuffer cmd = VK_NULL_HANDLE;
    if (vk_.vkAllocateCommandBuffers(device_, &allocate, &cmd) != VK_SUCCESS) return;
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    if (vk_.vkBeginCommandBuffer(cmd, &begin) == VK_SUCCESS) {
        const VkDescriptorBufferInfo whole{buffer_, 0, kBufferBytes};
        std::vector<VkWriteDescriptorSet> writes;
        for (uint32_t slot = 0; slot < 32; ++slot) {
            if (!(kernel.slot_mask >> slot & 1)) continue;
            VkWriteDescriptorSet& write = writes.emplace_back();
            write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
            write.dstBinding = slot;
            write.descriptorCount = 1;
            write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            write.pBufferInfo = &whole;
        }
        vk_.vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
        vk_.vkCmdPushDescriptorSetKHR(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0,
                                      uint32_t(writes.size()), writes.data());
        const uint32_t zeros[FOVEA_MAX_PUSH_WORDS] = {};
        if (kernel.push_words)
            vk_.vkCmdPushConstants(cmd, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                   kernel.push_words * 4, zeros);
        vk_.vkCmdDispatch(cmd, 0, 1, 1);
        VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
        submit.commandBufferCount = 1;
        submit.pCommandBuffers = &cmd;
        if (vk_.vkEndCommandBuffer(cmd) == VK_SUCCESS &&
            vk_.vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS)
            vk_.vkQueueWaitIdle(queue_);
    }
    vk_.vkFreeCommandBuffers(device_, commands_, 1, &cmd);
}

void TwinDevice::dispatch_nothing(const Kernel& kernel) {
    Pipeline pipeline;
    if (create_layouts(kernel, pipeline) && create_pipeline(kernel, pipeline)) submit(kernel, pipeline);
    vk_.vkDestroyPipeline(device_, pipeline.handle, nullptr);
    vk_.vkDestroyPipelineLayout(device_, pipeline.layout, nullptr);
    vk_.vkDestroyDescriptorSetLayout(device_, pipeline.set_layout, nullptr);
}

}  // namespace fovea::visualizer

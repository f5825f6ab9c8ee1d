#include "peak_kernels.hpp"

#include <algorithm>
#include <string>

namespace fovea::visualizer {
namespace {

constexpr uint32_t kThreads = 64, kBytesPerThread = 16, kGroups = 512;
constexpr double kFlopsPerRound = 2.0 * 8 * 4 * 4 * kThreads * kGroups;  // chains, repeats, four to a vector

Error failed(const char* call, VkResult result) {
    return Error{FOVEA_VULKAN_ERROR, call,
                 std::string(call) + " failed (VkResult " + std::to_string(int(result)) + ")", result};
}

}  // namespace

PeakKernels::~PeakKernels() {
    if (!at_.device) return;
    const VkDevice d = at_.device;
    for (const VkPipeline p : pipelines_) vkDestroyPipeline(d, p, nullptr);
    vkDestroyPipelineLayout(d, layout_, nullptr);
    vkDestroyDescriptorSetLayout(d, set_layout_, nullptr);
    vkDestroyDescriptorPool(d, pool_, nullptr);
    vkDestroyQueryPool(d, queries_, nullptr);
    vkDestroyFence(d, fence_, nullptr);
    vkDestroyCommandPool(d, commands_, nullptr);
}

Result<void> PeakKernels::open(const Place& place, std::span<const uint32_t> code) {
    at_ = place;
    if (Result<void> r = create_commands(); !r) return r;
    if (Result<void> r = create_layout(); !r) return r;
    if (Result<void> r = create_pipelines(code); !r) return r;
    return create_set();
}

Result<void> PeakKernels::create_commands() {
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = at_.queue_family;
    if (VkResult r = vkCreateCommandPool(at_.device, &pool, nullptr, &commands_))
        return failed("vkCreateCommandPool", r);
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = commands_;
    allocate.commandBufferCount = 1;
    if (VkResult r = vkAllocateCommandBuffers(at_.device, &allocate, &cmd_))
        return failed("vkAllocateCommandBuffers", r);
    VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    if (VkResult r = vkCreateFence(at_.device, &fence, nullptr, &fence_)) return failed("vkCreateFence", r);
    if (at_.tick_seconds == 0) return {};
    VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = 2;
    if (VkResult r = vkCreateQueryPool(at_.device, &queries, nullptr, &queries_))
        return failed("vkCreateQueryPool", r);
    return {};
}

Result<void> PeakKernels::create_layout() {
    VkDescriptorSetLayoutBinding bindings[2] = {};
    for (uint32_t i = 0; i < 2; ++i)
        bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = 2;
    set.pBindings = bindings;
    if (VkResult r = vkCreateDescriptorSetLayout(at_.device, &set, nullptr, &set_layout_))
        return failed("vkCreateDescriptorSetLayout", r);
    const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, 4};
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = layout.pushConstantRangeCount = 1;
    layout.pSetLayouts = &set_layout_;
    layout.pPushConstantRanges = &push;
    if (VkResult r = vkCreatePipelineLayout(at_.device, &layout, nullptr, &layout_))
        return failed("vkCreatePipelineLayout", r);
    return {};
}

Result<void> PeakKernels::create_pipelines(std::span<const uint32_t> words) {
    VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.codeSize = words.size_bytes();
    code.pCode = words.data();
    VkShaderModule module = VK_NULL_HANDLE;
    VkResult r = vkCreateShaderModule(at_.device, &code, nullptr, &module);
    const VkSpecializationMapEntry entry{0, 0, 4};
    for (uint32_t kind = 0; kind < 2 && r == VK_SUCCESS; ++kind) {
        const VkSpecializationInfo constants{1, &entry, 4, &kind};
        VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
        info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
        info.stage.module = module;
        info.stage.pName = "main";
        info.stage.pSpecializationInfo = &constants;
        info.layout = layout_;
        r = vkCreateComputePipelines(at_.device, VK_NULL_HANDLE, 1, &info, nullptr, &pipelines_[kind]);
    }
    vkDestroyShaderModule(at_.device, module, nullptr);
    if (r != VK_SUCCESS) return failed("vkCreateComputePipelines", r);
    return {};
}

Result<void> PeakKernels::create_set() {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    if (VkResult r = vkCreateDescriptorPool(at_.device, &pool, nullptr, &pool_))
        return failed("vkCreateDescriptorPool", r);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    if (VkResult r = vkAllocateDescriptorSets(at_.device, &allocate, &set_))
        return failed("vkAllocateDescriptorSets", r);
    const VkDescriptorBufferInfo buffers[2] = {{at_.from, 0, at_.copy_bytes}, {at_.to, 0, at_.copy_bytes}};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set_;
    write.descriptorCount = 2;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = buffers;
    vkUpdateDescriptorSets(at_.device, 1, &write, 0, nullptr);
    return {};
}

double PeakKernels::work(Kind kind, uint32_t rounds) const {
    return kind == copies ? 2.0 * double(at_.copy_bytes) : kFlopsPerRound * rounds;
}

void PeakKernels::record(Kind kind, uint32_t rounds) const {
    if (queries_) vkCmdResetQueryPool(cmd_, queries_, 0, 2);
    vkCmdBindPipeline(cmd_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_[kind]);
    vkCmdBindDescriptorSets(cmd_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
    vkCmdPushConstants(cmd_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &rounds);
    if (queries_) vkCmdWriteTimestamp(cmd_, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries_, 0);
    vkCmdDispatch(cmd_, kind == copies ? uint32_t(at_.copy_bytes / (kThreads * kBytesPerThread)) : kGroups, 1,
                  1);
    if (queries_) vkCmdWriteTimestamp(cmd_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 1);
}

// Uses a separate command buffer, because the application's may be recording meanwhile.
Result<double> PeakKernels::run(Kind kind, uint32_t rounds) {
    if (VkResult r = vkResetCommandPool(at_.device, commands_, 0)) return failed("vkResetCommandPool", r);
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    if (VkResult r = vkBeginCommandBuffer(cmd_, &begin)) return failed("vkBeginCommandBuffer", r);
    record(kind, rounds);
    if (VkResult r = vkEndCommandBuffer(cmd_)) return failed("vkEndCommandBuffer", r);
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    info.commandBufferCount = 1;
    info.pCommandBuffers = &cmd_;
    if (VkResult r = vkQueueSubmit(at_.queue, 1, &info, fence_)) return failed("vkQueueSubmit", r);
    if (VkResult r = vkWaitForFences(at_.device, 1, &fence_, VK_TRUE, at_.wait_nanoseconds))
        return failed("vkWaitForFences", r);
    vkResetFences(at_.device, 1, &fence_);
    if (!queries_) return 0.0;
    uint64_t ticks[2] = {};
    if (VkResult r = vkGetQueryPoolResults(at_.device, queries_, 0, 2, sizeof ticks, ticks, 8,
                                           VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT))
        return failed("vkGetQueryPoolResults", r);
    return std::max(double(ticks[1] - ticks[0]) * at_.tick_seconds, 1e-9);
}

}  // namespace fovea::visualizer

#include "gpu/roof.hpp"

#include "visualizer_shaders.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

constexpr uint64_t kCopyBytes = uint64_t{32} << 20;
constexpr uint32_t kThreads = 64, kBytesPerThread = 16, kGroups = 512;
constexpr double kFlopsPerRound = 2.0 * 8 * 4 * 4 * kThreads * kGroups;  // chains, repeats, four to a vector
constexpr double kLongEnough = 0.03;                                     // seconds of one dispatch
enum Kind : uint32_t { multiply_adds, copies };

class Bench {
  public:
    explicit Bench(GpuDevice& device) : device_(device) {}
    ~Bench() {
        const VkDevice d = device_.device();
        for (const VkPipeline p : pipelines_) vkDestroyPipeline(d, p, nullptr);
        vkDestroyPipelineLayout(d, layout_, nullptr);
        vkDestroyDescriptorSetLayout(d, set_layout_, nullptr);
        vkDestroyDescriptorPool(d, pool_, nullptr);
        vkDestroyQueryPool(d, queries_, nullptr);
        vkDestroyFence(d, fence_, nullptr);
        vkDestroyCommandPool(d, commands_, nullptr);
    }
    Result<void> prepare();
    // Seconds of one dispatch by the device's own clock.
    Result<double> time(Kind kind, uint32_t rounds, uint32_t groups);

  private:
    // Uses its own command buffer, because the device's may be recording meanwhile.
    template <class Record>
    Result<void> submit(Record record) {
        if (VkResult r = vkResetCommandPool(device_.device(), commands_, 0))
            return vulkan_error("vkResetCommandPool", r);
        VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
        if (VkResult r = vkBeginCommandBuffer(cmd_, &begin)) return vulkan_error("vkBeginCommandBuffer", r);
        record(cmd_);
        if (VkResult r = vkEndCommandBuffer(cmd_)) return vulkan_error("vkEndCommandBuffer", r);
        VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
        info.commandBufferCount = 1;
        info.pCommandBuffers = &cmd_;
        if (VkResult r = vkQueueSubmit(device_.queue(), 1, &info, fence_))
            return vulkan_error("vkQueueSubmit", r);
        if (VkResult r = vkWaitForFences(device_.device(), 1, &fence_, VK_TRUE, device_.wait_nanoseconds()))
            return vulkan_error("vkWaitForFences", r);
        vkResetFences(device_.device(), 1, &fence_);
        return {};
    }
    Result<void> create_commands();
    Result<void> create_layout();
    Result<void> create_pipelines();
    Result<void> create_set();

    GpuDevice& device_;
    GpuBuffer from_, to_;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipelines_[2] = {};
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    VkQueryPool queries_ = VK_NULL_HANDLE;
    VkCommandPool commands_ = VK_NULL_HANDLE;
    VkCommandBuffer cmd_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
};

Result<void> Bench::prepare() {
    for (GpuBuffer* buffer : {&from_, &to_}) {
        Result<GpuBuffer> made = GpuBuffer::create(device_, kCopyBytes, "roof");
        if (!made) return made.error();
        *buffer = std::move(*made);
    }
    VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = 2;
    if (VkResult r = vkCreateQueryPool(device_.device(), &queries, nullptr, &queries_))
        return vulkan_error("vkCreateQueryPool", r);
    if (Result<void> r = create_commands(); !r) return r;
    if (Result<void> r = create_layout(); !r) return r;
    if (Result<void> r = create_pipelines(); !r) return r;
    return create_set();
}

Result<void> Bench::create_commands() {
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = device_.queue_family();
    if (VkResult r = vkCreateCommandPool(device_.device(), &pool, nullptr, &commands_))
        return vulkan_error("vkCreateCommandPool", r);
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = commands_;
    allocate.commandBufferCount = 1;
    if (VkResult r = vkAllocateCommandBuffers(device_.device(), &allocate, &cmd_))
        return vulkan_error("vkAllocateCommandBuffers", r);
    VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    if (VkResult r = vkCreateFence(device_.device(), &fence, nullptr, &fence_))
        return vulkan_error("vkCreateFence", r);
    return {};
}

Result<void> Bench::create_layout() {
    VkDescriptorSetLayoutBinding bindings[2] = {};
    for (uint32_t i = 0; i < 2; ++i)
        bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = 2;
    set.pBindings = bindings;
    if (VkResult r = vkCreateDescriptorSetLayout(device_.device(), &set, nullptr, &set_layout_))
        return vulkan_error("vkCreateDescriptorSetLayout", r);
    const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, 4};
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = layout.pushConstantRangeCount = 1;
    layout.pSetLayouts = &set_layout_;
    layout.pPushConstantRanges = &push;
    if (VkResult r = vkCreatePipelineLayout(device_.device(), &layout, nullptr, &layout_))
        return vulkan_error("vkCreatePipelineLayout", r);
    return {};
}

Result<void> Bench::create_pipelines() {
    VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.codeSize = kRoofComputeWordCount * 4;
    code.pCode = kRoofComputeWords;
    VkShaderModule module = VK_NULL_HANDLE;
    VkResult r = vkCreateShaderModule(device_.device(), &code, nullptr, &module);
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
        r = vkCreateComputePipelines(device_.device(), VK_NULL_HANDLE, 1, &info, nullptr, &pipelines_[kind]);
    }
    vkDestroyShaderModule(device_.device(), module, nullptr);
    if (r != VK_SUCCESS) return vulkan_error("vkCreateComputePipelines", r);
    return {};
}

Result<void> Bench::create_set() {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    if (VkResult r = vkCreateDescriptorPool(device_.device(), &pool, nullptr, &pool_))
        return vulkan_error("vkCreateDescriptorPool", r);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    if (VkResult r = vkAllocateDescriptorSets(device_.device(), &allocate, &set_))
        return vulkan_error("vkAllocateDescriptorSets", r);
    const VkDescriptorBufferInfo buffers[2] = {{from_.handle(), 0, kCopyBytes},
                                               {to_.handle(), 0, kCopyBytes}};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set_;
    write.descriptorCount = 2;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = buffers;
    vkUpdateDescriptorSets(device_.device(), 1, &write, 0, nullptr);
    return {};
}

Result<double> Bench::time(Kind kind, uint32_t rounds, uint32_t groups) {
    const Result<void> ran = submit([&](VkCommandBuffer cmd) {
        vkCmdResetQueryPool(cmd, queries_, 0, 2);
        vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_[kind]);
        vkCmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
        vkCmdPushConstants(cmd, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &rounds);
        vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries_, 0);
        vkCmdDispatch(cmd, groups, 1, 1);
        vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 1);
    });
    if (!ran) return ran.error();
    uint64_t ticks[2] = {};
    if (VkResult r = vkGetQueryPoolResults(device_.device(), queries_, 0, 2, sizeof ticks, ticks, 8,
                                           VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT))
        return vulkan_error("vkGetQueryPoolResults", r);
    return std::max(double(ticks[1] - ticks[0]) * double(device_.timestamp_period_ns()) * 1e-9, 1e-9);
}

}  // namespace

Result<Roof> measure_roof(GpuDevice& device) {
    if (!device.has_vulkan() || !device.has_timestamps())
        return Error{FOVEA_UNSUPPORTED, "roof", "the roofline needs a device with timestamps"};
    Bench bench(device);
    if (Result<void> r = bench.prepare(); !r) return r.error();
    Roof roof;
    // The first dispatches compile, warm up and find how many rounds are long enough; of several that are,
    // the fastest was disturbed least.
    constexpr int kRepeats = 4;
    uint32_t rounds = 4;
    for (int long_ones = 0; long_ones < kRepeats && rounds <= 1u << 24;) {
        const Result<double> seconds = bench.time(multiply_adds, rounds, kGroups);
        if (!seconds) return seconds.error();
        roof.flops_per_s = std::max(roof.flops_per_s, kFlopsPerRound * rounds / *seconds);
        if (*seconds >= kLongEnough)
            ++long_ones;
        else
            rounds *= 2;
    }
    for (int n = 0; n < kRepeats; ++n) {
        const Result<double> seconds =
            bench.time(copies, 0, uint32_t(kCopyBytes / (kThreads * kBytesPerThread)));
        if (!seconds) return seconds.error();
        roof.bytes_per_s = std::max(roof.bytes_per_s, 2.0 * double(kCopyBytes) / *seconds);
    }
    return roof;
}

}  // namespace fovea::visualizer

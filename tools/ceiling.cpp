#include "ceiling.hpp"

#include "runtime/vulkan_memory.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "bench_ceiling.comp.h"

namespace fovea::app {
namespace {

constexpr uint64_t kCopyBytes = uint64_t{64} << 20;  // no cache holds it
constexpr uint32_t kThreads = 64, kBytesPerThread = 16;
constexpr uint32_t kFmaGroups = 512;
constexpr double kFlopsPerRound = 2.0 * 8 * 4 * 4 * kThreads * kFmaGroups;
constexpr double kTimeout = 300;

}  // namespace

struct DeviceCeiling::State {
    std::unique_ptr<runtime::Instance> instance;
    std::unique_ptr<runtime::VulkanDevice> device;
    std::unique_ptr<runtime::VulkanQueue> queue;
    std::unique_ptr<runtime::VulkanAllocator> allocator;
    std::unique_ptr<runtime::VulkanMemory> from, to;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipeline pipelines[2] = {};  // multiply-adds, copies
    VkDescriptorPool pool = VK_NULL_HANDLE;
    VkDescriptorSet set = VK_NULL_HANDLE;
    uint32_t fma_rounds = 64;
    bool software = false;

    ~State() {
        from.reset(), to.reset();
        if (device) {
            const VkDevice d = device->handle();
            for (VkPipeline p : pipelines) call<PFN_vkDestroyPipeline>("vkDestroyPipeline")(d, p, nullptr);
            call<PFN_vkDestroyPipelineLayout>("vkDestroyPipelineLayout")(d, layout, nullptr);
            device->vk().vkDestroyDescriptorPool(d, pool, nullptr);
            call<PFN_vkDestroyDescriptorSetLayout>("vkDestroyDescriptorSetLayout")(d, set_layout, nullptr);
        }
        allocator.reset(), queue.reset(), device.reset();
    }

    template <class Function>
    Function call(const char* name) const {
        return reinterpret_cast<Function>(instance->vk().vkGetDeviceProcAddr(device->handle(), name));
    }

    Result<void> open(uint32_t number) {
        auto made = runtime::Instance::create(false);
        if (!made) return made.error();
        instance = std::move(*made);
        const std::vector<VkPhysicalDevice>& all = instance->physical_devices();
        if (number == 0 || number > all.size())
            return Error{FOVEA_INVALID_ARGUMENT, "device", "this machine does not have that Vulkan device"};
        auto opened = runtime::VulkanDevice::open(*instance, all[number - 1]);
        if (!opened) return opened.error();
        device = std::move(*opened);
        software = device->properties().device_class == FOVEA_CLASS_CPU;
        auto queued = runtime::VulkanQueue::create(*device);
        if (!queued) return queued.error();
        queue = std::move(*queued);
        auto allocated = runtime::VulkanAllocator::create(*device, *queue);
        if (!allocated) return allocated.error();
        allocator = std::move(*allocated);
        for (auto* memory : {&from, &to}) {
            auto buffer = allocator->allocate(kCopyBytes);
            if (!buffer) return buffer.error();
            *memory = std::move(*buffer);
            if (Result<void> r = (*memory)->fill_zero(); !r) return r;
        }
        return create_pipelines();
    }

    Result<void> create_pipelines() {
        const VkDevice d = device->handle();
        const VkDescriptorSetLayoutBinding bindings[2] = {
            {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
            {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
        const VkDescriptorSetLayoutCreateInfo sets{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                   nullptr, 0, 2, bindings};
        VkResult r = call<PFN_vkCreateDescriptorSetLayout>("vkCreateDescriptorSetLayout")(d, &sets, nullptr,
                                                                                          &set_layout);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreateDescriptorSetLayout");
        const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, 4};
        const VkPipelineLayoutCreateInfo layouts{
            VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &set_layout, 1, &push};
        r = call<PFN_vkCreatePipelineLayout>("vkCreatePipelineLayout")(d, &layouts, nullptr, &layout);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreatePipelineLayout");
        const VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0,
                                            sizeof kBenchCeiling, kBenchCeiling};
        VkShaderModule module = VK_NULL_HANDLE;
        r = call<PFN_vkCreateShaderModule>("vkCreateShaderModule")(d, &code, nullptr, &module);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreateShaderModule");
        const VkSpecializationMapEntry entry{0, 0, 4};
        for (uint32_t copies = 0; copies < 2 && r == VK_SUCCESS; ++copies) {
            const VkSpecializationInfo constants{1, &entry, 4, &copies};
            VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
            create.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                            nullptr,
                            0,
                            VK_SHADER_STAGE_COMPUTE_BIT,
                            module,
                            "main",
                            &constants};
            create.layout = layout;
            r = call<PFN_vkCreateComputePipelines>("vkCreateComputePipelines")(d, VK_NULL_HANDLE, 1, &create,
                                                                               nullptr, &pipelines[copies]);
        }
        call<PFN_vkDestroyShaderModule>("vkDestroyShaderModule")(d, module, nullptr);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreateComputePipelines");
        return create_set();
    }

    Result<void> create_set() {
        const VkDevice d = device->handle();
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
        const VkDescriptorPoolCreateInfo pools{
            VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, 1, 1, &size};
        VkResult r = device->vk().vkCreateDescriptorPool(d, &pools, nullptr, &pool);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreateDescriptorPool");
        const VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                                   pool, 1, &set_layout};
        r = call<PFN_vkAllocateDescriptorSets>("vkAllocateDescriptorSets")(d, &allocate, &set);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkAllocateDescriptorSets");
        const VkDescriptorBufferInfo buffers[2] = {{from->buffer(), 0, kCopyBytes},
                                                   {to->buffer(), 0, kCopyBytes}};
        VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        write.dstSet = set;
        write.descriptorCount = 2;
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = buffers;
        call<PFN_vkUpdateDescriptorSets>("vkUpdateDescriptorSets")(d, 1, &write, 0, nullptr);
        return {};
    }

    // Seconds of one dispatch, submission included.
    Result<double> time(uint32_t kind, uint32_t rounds, uint32_t groups) {
        const double begin = bench_now(software);
        const Result<void> r = queue->run_once("a ceiling", kTimeout, [&](VkCommandBuffer cmd) {
            call<PFN_vkCmdBindPipeline>("vkCmdBindPipeline")(cmd, VK_PIPELINE_BIND_POINT_COMPUTE,
                                                             pipelines[kind]);
            call<PFN_vkCmdBindDescriptorSets>("vkCmdBindDescriptorSets")(cmd, VK_PIPELINE_BIND_POINT_COMPUTE,
                                                                         layout, 0, 1, &set, 0, nullptr);
            call<PFN_vkCmdPushConstants>("vkCmdPushConstants")(cmd, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4,
                                                               &rounds);
            call<PFN_vkCmdDispatch>("vkCmdDispatch")(cmd, groups, 1, 1);
        });
        if (!r) return r.error();
        return bench_now(software) - begin;
    }
};

double bench_now(bool software) {
    if (software) return double(std::clock()) / CLOCKS_PER_SEC;
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

DeviceCeiling::DeviceCeiling(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceCeiling::DeviceCeiling(DeviceCeiling&&) noexcept = default;
DeviceCeiling::~DeviceCeiling() = default;

Result<DeviceCeiling> DeviceCeiling::open(uint32_t number) {
    auto state = std::make_unique<State>();
    if (Result<void> r = state->open(number); !r) return r.error();
    for (uint32_t kind = 0; kind < 2; ++kind)  // software drivers compile at the first dispatch
        if (Result<double> r = state->time(kind, 1, 1); !r) return r.error();
    return DeviceCeiling(std::move(state));
}

Result<double> DeviceCeiling::gflops(double seconds) {
    uint32_t& rounds = state_->fma_rounds;
    for (;;) {
        const Result<double> time = state_->time(0, rounds, kFmaGroups);
        if (!time) return time;
        if (*time >= seconds / 2 || rounds > (1u << 24)) return kFlopsPerRound * rounds / *time * 1e-9;
        rounds *= 2;
    }
}

Result<double> DeviceCeiling::gigabytes_per_second(double seconds) {
    double best = 0, spent = 0;
    for (int n = 0; n < 3 || spent < seconds; ++n) {
        const Result<double> time = state_->time(1, 0, uint32_t(kCopyBytes / (kThreads * kBytesPerThread)));
        if (!time) return time;
        spent += *time;
        best = std::max(best, 2.0 * double(kCopyBytes) / *time * 1e-9);
    }
    return best;
}

}  // namespace fovea::app

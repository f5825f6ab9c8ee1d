// The promises of an embedded library to its application (tests/PROMISES.md), on real drivers
// under validation. Bytes around its buffers, every Vulkan call failing in turn, several threads on one plan.
#include "vulkan/gpu.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <string>
#include <thread>

namespace fovea::test {
namespace {

FoveaAttentionDesc every_output() {
    Attention call;
    call.batch(2)
        .heads(4, 2)
        .lengths(19, 37)
        .dims(24, 20)
        .causal(Align::bottom_right)
        .kernel(FOVEA_KERNEL_STAGED);
    call.outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED |
                 FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS);
    call.desc.max_slice_cost = 5e4;
    return call.desc;
}

// ---- guard bands ----

constexpr std::byte kGuard{0xa5};

// Puts each output and the workspace into the middle of a larger buffer whose other bytes are known.
class Guarded {
  public:
    Guarded(const Gpu& gpu, Work& work)
        : work_(work), margin_(std::max(4096u, gpu.device->properties().storage_offset_alignment)) {
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            const bool workspace = i == FOVEA_BIND_WORKSPACE;
            const uint64_t size = workspace                          ? work.info.workspace_bytes
                                  : (work.info.output_mask >> i & 1) ? work.info.binding_bytes[i]
                                                                     : 0;
            if (!size) continue;
            memory_[i] = gpu.memory(size + 2 * margin_);
            size_[i] = size;
            const std::vector<std::byte> fill(size + 2 * margin_, kGuard);
            EXPECT_TRUE(memory_[i]->upload(fill, 0));
            FoveaBuffer& bound = workspace ? work.record.workspace : work.bindings[i];
            bound = {memory_[i]->buffer(), margin_, size};
        }
    }
    uint32_t check() const {
        uint32_t checked = 0;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!memory_[i]) continue;
            ++checked;
            std::vector<std::byte> all(size_[i] + 2 * margin_);
            EXPECT_TRUE(memory_[i]->download(all, 0));
            for (uint64_t at = 0; at < all.size(); ++at) {
                if (at == margin_) at += size_[i];
                if (all[at] == kGuard) continue;
                ADD_FAILURE() << "binding " << i << ": byte " << int64_t(at) - int64_t(margin_) << " of "
                              << size_[i] << " was written";
                break;
            }
        }
        return checked;
    }
    std::vector<float> output(FoveaBinding b) const {
        std::vector<float> out(size_[b] / 4);
        EXPECT_TRUE(memory_[b]->download(std::as_writable_bytes(std::span(out)), margin_));
        return out;
    }

  private:
    Work& work_;
    uint64_t margin_;
    std::unique_ptr<VulkanMemory> memory_[FOVEA_BIND_COUNT];
    uint64_t size_[FOVEA_BIND_COUNT] = {};
};

TEST(VulkanGuest, TouchesNothingAroundOutputsAndWorkspace) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    Work work(gpu, every_output());
    ASSERT_GT(work.info.slice_count, 1u);
    const Guarded guarded(gpu, work);
    gpu.submit([&](VkCommandBuffer cmd) { work.cmd(cmd); });
    EXPECT_GE(guarded.check(), 7u);
    expect_close(guarded.output(FOVEA_BIND_O), work.expected(FOVEA_BIND_O), 2e-6f);
    // Kernels of every kind that this device has, each with the outputs that it can give.
    for (const FoveaKernel kernel : {FOVEA_KERNEL_FLASH, FOVEA_KERNEL_DECODE, FOVEA_KERNEL_AUTO}) {
        FoveaAttentionDesc desc = every_output();
        desc.kernel = kernel;
        desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
        const FoveaDeviceProperties properties = gpu.device->properties();
        if (foveaCheckAttention(&properties, &desc, nullptr) != FOVEA_OK) continue;
        Work other(gpu, desc);
        const Guarded around(gpu, other);
        gpu.submit([&](VkCommandBuffer cmd) { other.cmd(cmd); });
        EXPECT_GE(around.check(), 2u);
        expect_close(around.output(FOVEA_BIND_O), other.expected(FOVEA_BIND_O), 2e-6f);
    }
}

// ---- every call failing in turn ----

// Sits between Fovea and the driver's own functions, in the application's getters. One call at a time returns
// an error instead of reaching the driver.
struct Interposed {
    PFN_vkGetInstanceProcAddr instance_getter;
    PFN_vkGetDeviceProcAddr device_getter;
    std::atomic<int> calls{0};
    int fail_at = 0;  // 0: none
    VkResult fail_with = VK_SUCCESS;
    const char* failed = nullptr;
    std::set<std::string> names;  // names of the calls that could fail

    bool fails(const char* name) {
        names.insert(name);
        if (++calls != fail_at) return false;
        failed = name;
        return true;
    }
};
Interposed* interposed;

template <class Function>
Function real_of_device(VkDevice device, const char* name) {
    return reinterpret_cast<Function>(interposed->device_getter(device, name));
}

// A wrapper for each function of the table that returns a VkResult.
#define FOVEA_INTERPOSE(name, parameters, arguments)                \
    VKAPI_ATTR VkResult VKAPI_CALL interposed_##name parameters {   \
        if (interposed->fails(#name)) return interposed->fail_with; \
        return real_of_device<PFN_##name>(device, #name) arguments; \
    }
FOVEA_INTERPOSE(vkCreatePipelineCache,
                (VkDevice device, const VkPipelineCacheCreateInfo* i, const VkAllocationCallbacks* a,
                 VkPipelineCache* o),
                (device, i, a, o))
FOVEA_INTERPOSE(vkGetPipelineCacheData, (VkDevice device, VkPipelineCache c, size_t* size, void* data),
                (device, c, size, data))
FOVEA_INTERPOSE(vkCreateShaderModule,
                (VkDevice device, const VkShaderModuleCreateInfo* i, const VkAllocationCallbacks* a,
                 VkShaderModule* o),
                (device, i, a, o))
FOVEA_INTERPOSE(vkCreateDescriptorSetLayout,
                (VkDevice device, const VkDescriptorSetLayoutCreateInfo* i, const VkAllocationCallbacks* a,
                 VkDescriptorSetLayout* o),
                (device, i, a, o))
FOVEA_INTERPOSE(vkCreatePipelineLayout,
                (VkDevice device, const VkPipelineLayoutCreateInfo* i, const VkAllocationCallbacks* a,
                 VkPipelineLayout* o),
                (device, i, a, o))
FOVEA_INTERPOSE(vkCreateComputePipelines,
                (VkDevice device, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo* i,
                 const VkAllocationCallbacks* a, VkPipeline* o),
                (device, c, n, i, a, o))
FOVEA_INTERPOSE(vkAllocateDescriptorSets,
                (VkDevice device, const VkDescriptorSetAllocateInfo* i, VkDescriptorSet* o), (device, i, o))
#undef FOVEA_INTERPOSE

VKAPI_ATTR VkResult VKAPI_CALL interposed_extensions(VkPhysicalDevice gpu, const char* layer, uint32_t* count,
                                                     VkExtensionProperties* out);
VkInstance interposed_instance;
VKAPI_ATTR VkResult VKAPI_CALL interposed_extensions(VkPhysicalDevice gpu, const char* layer, uint32_t* count,
                                                     VkExtensionProperties* out) {
    if (interposed->fails("vkEnumerateDeviceExtensionProperties")) return interposed->fail_with;
    const auto real = reinterpret_cast<PFN_vkEnumerateDeviceExtensionProperties>(
        interposed->instance_getter(interposed_instance, "vkEnumerateDeviceExtensionProperties"));
    return real(gpu, layer, count, out);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL interposing_device_getter(VkDevice device, const char* name) {
    const std::string_view asked = name;
#define FOVEA_INTERPOSED(function) \
    if (asked == #function) return reinterpret_cast<PFN_vkVoidFunction>(interposed_##function);
    FOVEA_INTERPOSED(vkCreatePipelineCache)
    FOVEA_INTERPOSED(vkGetPipelineCacheData)
    FOVEA_INTERPOSED(vkCreateShaderModule)
    FOVEA_INTERPOSED(vkCreateDescriptorSetLayout)
    FOVEA_INTERPOSED(vkCreatePipelineLayout)
    FOVEA_INTERPOSED(vkCreateComputePipelines)
    FOVEA_INTERPOSED(vkAllocateDescriptorSets)
#undef FOVEA_INTERPOSED
    return interposed->device_getter(device, name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL interposing_instance_getter(VkInstance instance, const char* name) {
    interposed_instance = instance;
    if (std::string_view(name) == "vkEnumerateDeviceExtensionProperties")
        return reinterpret_cast<PFN_vkVoidFunction>(interposed_extensions);
    return interposed->instance_getter(instance, name);
}

// From a context to a recorded command buffer and a saved cache; stops at the first error.
FoveaResult live(const Gpu& gpu, Work& work, Diag& diag) {
    FoveaVulkanDevice host = gpu.device->host();
    host.get_instance_proc_addr = interposing_instance_getter;
    host.get_device_proc_addr = interposing_device_getter;
    FoveaContext context = nullptr;
    FoveaPlan plan = nullptr;
    const auto body = [&]() -> FoveaResult {
        FoveaResult r = foveaCreateContext(&host, &context, &diag);
        if (r) return r;
        FoveaDeviceProperties properties{};
        properties.struct_size = sizeof properties;
        foveaContextProperties(context, &properties, nullptr);
        if ((r = foveaPlanAttention(&properties, &work.desc, nullptr, &plan, &diag))) return r;
        if ((r = foveaCompilePlan(context, plan, &diag))) return r;
        const Result<runtime::Submission> cmd = gpu.queue->begin(60);
        EXPECT_TRUE(cmd) << cmd.error().text;
        FoveaRecord record = work.record;
        record.cmd = cmd->cmd;
        if ((r = foveaCmdRun(plan, &record, &diag))) return r;
        size_t size = 0;
        if ((r = foveaGetPipelineCacheData(context, nullptr, &size, &diag))) return r;
        std::vector<char> cache(size);
        return foveaGetPipelineCacheData(context, cache.data(), &size, &diag);
    };
    const FoveaResult code = body();
    // The commands recorded are given up before the plan that they need.
    if (const Result<runtime::Submission> cleared = gpu.queue->begin(60); !cleared)
        ADD_FAILURE() << cleared.error().text;
    foveaDestroyPlan(plan);
    foveaDestroyContext(context);
    return code;
}

TEST(VulkanGuest, EveryVulkanCallMayFailAndNothingLeaks) {
    DeviceWishes wishes;
    wishes.device_fault = false;  // a device that is lost in play only must not be asked why
    for (const bool push : {true, false}) {
        wishes.push_descriptors = push;
        Gpu gpu(wishes);
        ASSERT_TRUE(gpu.ok());
        // Small, because each life compiles its pipelines anew.
        Work work(gpu, Attention().batch(1).heads(2).lengths(5, 9).dims(8).kernel(FOVEA_KERNEL_STAGED).desc);
        const FoveaVulkanDevice host = gpu.device->host();
        Interposed between{host.get_instance_proc_addr, host.get_device_proc_addr};
        interposed = &between;
        Diag diag;
        ASSERT_EQ(live(gpu, work, diag), FOVEA_OK) << diag.text;
        const int total = between.calls;
        EXPECT_GE(between.names.size(),
                  gpu.device->properties().features & FOVEA_FEATURE_PUSH_DESCRIPTORS ? 7u : 8u);
        for (int n = 1; n <= total; ++n) {
            between.calls = 0;
            between.fail_at = n;
            between.fail_with = n % 2 ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_ERROR_DEVICE_LOST;
            const FoveaResult got = live(gpu, work, diag);
            EXPECT_EQ(got, n % 2 ? FOVEA_OUT_OF_HOST_MEMORY : FOVEA_DEVICE_LOST)
                << between.failed << ", call " << n << " of " << total << ": " << diag.text;
            EXPECT_STREQ(diag.field, between.failed);
            if (work.record.descriptor_pool.pool)
                gpu.device->vk().vkResetDescriptorPool(gpu.device->handle(), work.record.descriptor_pool.pool,
                                                       0);
        }
        std::printf("%d calls failed in turn, %zu functions, %s\n", total, between.names.size(),
                    push ? "push descriptors where the device has them" : "descriptor pools");
    }  // the validation layer complains of what is left when the device goes
}

// ---- threads ----

TEST(VulkanGuest, TwoThreadsRecordOnePlan) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    Work work(gpu, every_output());
    constexpr int kTimes =
        200;  // ten thousand times without a driver: Guest.TwoThreadsRecordOnePlanTenThousandTimes
    const auto& vk = gpu.device->vk();
    struct Thread {
        VkCommandPool pool = VK_NULL_HANDLE;
        VkCommandBuffer cmd = VK_NULL_HANDLE;
        VkDescriptorPool descriptor_pool = VK_NULL_HANDLE;
        uint32_t refused = 0;
        std::thread thread;
    } threads[2];
    for (Thread& t : threads) {
        VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        pool.queueFamilyIndex = gpu.device->queue_family();
        ASSERT_EQ(vk.vkCreateCommandPool(gpu.device->handle(), &pool, nullptr, &t.pool), VK_SUCCESS);
        VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = t.pool;
        allocate.commandBufferCount = 1;
        ASSERT_EQ(vk.vkAllocateCommandBuffers(gpu.device->handle(), &allocate, &t.cmd), VK_SUCCESS);
        if (work.record.descriptor_pool.pool) t.descriptor_pool = work.create_descriptor_pool(1);
        t.thread = std::thread([&] {
            FoveaRecord record = work.record;
            record.cmd = t.cmd;
            record.descriptor_pool.pool = t.descriptor_pool;
            const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
            for (int i = 0; i < kTimes; ++i) {
                vk.vkResetCommandPool(gpu.device->handle(), t.pool, 0);
                if (t.descriptor_pool) vk.vkResetDescriptorPool(gpu.device->handle(), t.descriptor_pool, 0);
                vk.vkBeginCommandBuffer(t.cmd, &begin);
                t.refused += foveaCmdRun(work.plan.get(), &record, nullptr) != FOVEA_OK;
                vk.vkEndCommandBuffer(t.cmd);
            }
        });
    }
    for (Thread& t : threads) t.thread.join();
    std::vector<float> first;
    for (Thread& t : threads) {
        EXPECT_EQ(t.refused, 0u);
        VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
        submit.commandBufferCount = 1;
        submit.pCommandBuffers = &t.cmd;
        ASSERT_EQ(vk.vkQueueSubmit(gpu.device->queue(), 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
        ASSERT_EQ(gpu.call<PFN_vkDeviceWaitIdle>("vkDeviceWaitIdle")(gpu.device->handle()), VK_SUCCESS);
        const std::vector<float> o = work.output(FOVEA_BIND_O);
        if (first.empty()) expect_close(o, work.expected(FOVEA_BIND_O), 2e-6f);
        if (!first.empty()) {
            EXPECT_TRUE(same_bits(o, first));
        }
        first = o;
        vk.vkDestroyDescriptorPool(gpu.device->handle(), t.descriptor_pool, nullptr);
        vk.vkDestroyCommandPool(gpu.device->handle(), t.pool, nullptr);
    }
}

}  // namespace
}  // namespace fovea::test

// One device of the driver under test, under validation unless a test plants faults in the driver: the core
// checks, synchronization and shader accesses. A test with a validation message fails, unless it asks for
// one.
#pragma once

#include "runtime/vulkan_memory.hpp"

#include <fovea/fovea_vulkan.h>
#include <fovea/fovea.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace fovea::test {

using runtime::DeviceWishes;
using runtime::VulkanMemory;

class Gpu {
  public:
    explicit Gpu(const DeviceWishes& wishes = {}, bool validation = true) { open(wishes, validation); }
    ~Gpu() { close(); }
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    // Everything but the instance goes; then no message may be left.
    void close() {
        if (queue) queue->settle(300);
        allocator.reset();
        queue.reset();
        device.reset();
        if (!instance) return;
        for (const std::string& message : instance->take_messages()) ADD_FAILURE() << message;
        instance.reset();
    }
    // For a test with a bug planted in it: the number of messages so far, which are then forgotten.
    std::vector<std::string> take_messages() { return instance->take_messages(); }

    template <class Function>
    Function call(const char* name) const {
        return reinterpret_cast<Function>(instance->vk().vkGetDeviceProcAddr(device->handle(), name));
    }
    std::unique_ptr<VulkanMemory> memory(uint64_t size_bytes) const {
        Result<std::unique_ptr<VulkanMemory>> made = allocator->allocate(size_bytes);
        EXPECT_TRUE(made) << made.error().text;
        return std::move(*made);
    }
    void submit(const std::function<void(VkCommandBuffer)>& record) const {
        const Result<void> r = queue->run_once("a test", 300, record);
        EXPECT_TRUE(r) << r.error().text;
    }

    std::unique_ptr<runtime::Instance> instance;
    std::unique_ptr<runtime::VulkanDevice> device;
    std::unique_ptr<runtime::VulkanQueue> queue;
    std::unique_ptr<runtime::VulkanAllocator> allocator;
    // The device's functions, to put others in their place.
    runtime::DeviceCalls& calls() { return const_cast<runtime::DeviceCalls&>(device->vk()); }
    bool ok() const { return allocator != nullptr; }

  private:
    void open(const DeviceWishes& wishes, bool validation) {
        Result<std::unique_ptr<runtime::Instance>> made = runtime::Instance::create(validation);
        if (!made) return fail(made.error());
        instance = std::move(*made);
        Result<std::unique_ptr<runtime::VulkanDevice>> opened =
            runtime::VulkanDevice::open(*instance, instance->physical_devices()[0], wishes);
        if (!opened) return fail(opened.error());
        device = std::move(*opened);
        Result<std::unique_ptr<runtime::VulkanQueue>> queued = runtime::VulkanQueue::create(*device);
        if (!queued) return fail(queued.error());
        queue = std::move(*queued);
        Result<std::unique_ptr<runtime::VulkanAllocator>> allocated =
            runtime::VulkanAllocator::create(*device, *queue);
        if (!allocated) return fail(allocated.error());
        allocator = std::move(*allocated);
    }
    void fail(const Error& error) { ADD_FAILURE() << error.text; }
};

inline std::vector<float> random_floats(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> out(count);
    for (float& x : out) x = float(random() >> 8) / float(1 << 23) - 1;
    return out;
}

// One attention call with its data, on the device and by the float64 reference.
struct Work {
    FoveaAttentionDesc desc;
    FoveaPlanInfo info{};
    Plan plan;
    std::vector<std::byte> host[FOVEA_BIND_COUNT];
    std::unique_ptr<VulkanMemory> memory[FOVEA_BIND_COUNT];
    std::unique_ptr<VulkanMemory> workspace;
    FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
    FoveaRecord record{};

    Work(const Gpu& gpu_, const FoveaAttentionDesc& d, FoveaContext context = nullptr) : desc(d), gpu(gpu_) {
        Diag diag;
        FoveaPlan handle = nullptr;
        const FoveaDeviceProperties properties = gpu.device->properties();
        EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &handle, &diag), FOVEA_OK) << diag.text;
        plan = Plan(handle);
        EXPECT_EQ(foveaCompilePlan(context ? context : gpu.device->context(), handle, &diag), FOVEA_OK)
            << diag.text;
        info = plan.info();
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1)) continue;
            host[i].resize(info.binding_bytes[i]);
            memory[i] = gpu.memory(info.binding_bytes[i]);
            bindings[i] = {memory[i]->buffer(), 0, info.binding_bytes[i]};
            if (info.output_mask >> i & 1) continue;
            const std::vector<float> values = random_floats(host[i].size() / 4, 7 + i);
            memcpy(host[i].data(), values.data(), values.size() * 4);
            EXPECT_TRUE(memory[i]->upload(host[i], 0));
        }
        if (info.workspace_bytes) {
            workspace = gpu.memory(info.workspace_bytes);
            record.workspace = {workspace->buffer(), 0, info.workspace_bytes};
        }
        record.struct_size = sizeof record;
        record.binding_count = FOVEA_BIND_COUNT;
        record.bindings = bindings;
        record.slice_count = info.slice_count;
        if (!(properties.features & FOVEA_FEATURE_PUSH_DESCRIPTORS))
            record.descriptor_pool.pool = create_descriptor_pool(8);
    }
    ~Work() {
        gpu.device->vk().vkDestroyDescriptorPool(gpu.device->handle(), record.descriptor_pool.pool, nullptr);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    // The slices that `record` names; without push descriptors in several calls if there are many.
    void cmd(VkCommandBuffer buffer) {
        gpu.queue->cmd_full_barrier(buffer);
        FoveaRecord part = record;
        part.cmd = buffer;
        const uint64_t most = record.descriptor_pool.pool
                                  ? FOVEA_MAX_DESCRIPTOR_SETS / info.dispatches_per_slice
                                  : record.slice_count;
        for (uint64_t left = record.slice_count; left > 0; left -= part.slice_count) {
            part.slice_count = std::min(left, most);
            Diag diag;
            EXPECT_EQ(foveaCmdRun(plan.get(), &part, &diag), FOVEA_OK) << diag.text;
            part.first_slice += part.slice_count;
            if (left > part.slice_count) foveaCmdSliceBarrier(plan.get(), buffer);
        }
        gpu.queue->cmd_full_barrier(buffer);
    }
    std::vector<float> output(FoveaBinding binding) const {
        std::vector<float> out(info.binding_bytes[binding] / 4);
        EXPECT_TRUE(memory[binding]->download(std::as_writable_bytes(std::span(out)), 0));
        return out;
    }
    // By the float64 loops, from the same bytes.
    std::vector<float> expected(FoveaBinding binding) {
        FoveaAttentionDesc reference = desc;
        reference.kernel = FOVEA_KERNEL_REFERENCE;
        reference.max_slice_cost = 0;
        Result<Plan> cpu = plan_cpu(reference);
        EXPECT_TRUE(cpu) << cpu.error().text;
        FoveaHostBuffer buffers[FOVEA_BIND_COUNT] = {};
        std::vector<std::byte> out[FOVEA_BIND_COUNT];
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            out[i] = host[i];
            buffers[i] = {out[i].data(), out[i].size()};
        }
        std::vector<double> room(cpu->info().workspace_bytes / 8 + 64);
        void* aligned = room.data();
        size_t space = room.size() * 8;
        std::align(64, cpu->info().workspace_bytes, aligned, space);
        FoveaCpuRun run{};
        run.struct_size = sizeof run;
        run.binding_count = FOVEA_BIND_COUNT;
        run.bindings = buffers;
        run.workspace = {aligned, space};
        const Result<void> r = cpu->run_cpu(run);
        EXPECT_TRUE(r) << r.error().text;
        std::vector<float> values(out[binding].size() / 4);
        memcpy(values.data(), out[binding].data(), values.size() * 4);
        return values;
    }

    // Room for recording every slice `repeats` times.
    VkDescriptorPool create_descriptor_pool(uint32_t repeats) const {
        const auto sets = static_cast<uint32_t>(info.slice_count * info.dispatches_per_slice) * repeats;
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        sets * FOVEA_MAX_DISPATCH_BINDINGS};
        const VkDescriptorPoolCreateInfo create{
            VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, sets, 1, &size};
        VkDescriptorPool pool = VK_NULL_HANDLE;
        EXPECT_EQ(gpu.device->vk().vkCreateDescriptorPool(gpu.device->handle(), &create, nullptr, &pool),
                  VK_SUCCESS);
        return pool;
    }

  private:
    const Gpu& gpu;
};

inline void expect_close(const std::vector<float>& got, const std::vector<float>& expected, float tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], tolerance) << "element " << i;
}
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

}  // namespace fovea::test

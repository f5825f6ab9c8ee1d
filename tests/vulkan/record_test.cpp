// Plans recorded into a host's command buffers on a real driver: the numbers, slices in any order and cut,
// both ways to bind, timestamps.
#include "vulkan/dispatch_player.hpp"
#include "vulkan/gpu.hpp"

#include "runtime/backend.hpp"

#include <cmath>
#include <thread>

namespace fovea::test {
namespace {

FoveaAttentionDesc sliced(double max_slice_cost = 2e5, FoveaKernel kernel = FOVEA_KERNEL_AUTO) {
    Attention call;
    call.kernel(kernel);
    call.batch(2).heads(4, 2).lengths(77, 131).dims(40, 24).causal(Align::bottom_right);
    call.outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE);
    call.desc.max_slice_cost = max_slice_cost;
    return call.desc;
}

std::vector<float> run(const Gpu& gpu, const FoveaAttentionDesc& desc) {
    Work work(gpu, desc);
    gpu.submit([&](VkCommandBuffer cmd) { work.cmd(cmd); });
    return work.output(FOVEA_BIND_O);
}

TEST(VulkanRecord, AgreesWithTheReference) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    Work work(gpu, sliced());
    EXPECT_GT(work.info.slice_count, 3u);
    gpu.submit([&](VkCommandBuffer cmd) { work.cmd(cmd); });
    expect_close(work.output(FOVEA_BIND_O), work.expected(FOVEA_BIND_O), 2e-6f);
    expect_close(work.output(FOVEA_BIND_LSE), work.expected(FOVEA_BIND_LSE), 4e-6f);
}

TEST(VulkanRecord, SliceOrderAndSizeDoNotChangeBits) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    for (const FoveaKernel kernel : {FOVEA_KERNEL_STAGED, FOVEA_KERNEL_FLASH}) {
        SCOPED_TRACE(kernel_name(kernel));
        const std::vector<float> whole = run(gpu, sliced(1e12, kernel));
        for (const double cost : {4e4, 2e5, 1e6})
            EXPECT_TRUE(same_bits(run(gpu, sliced(cost, kernel)), whole)) << cost;

        Work work(gpu, sliced(2e5, kernel));
        for (uint64_t seed = 1; seed <= 5; ++seed) {
            ASSERT_TRUE(work.memory[FOVEA_BIND_O]->fill_zero());
            gpu.submit([&](VkCommandBuffer cmd) {
                work.record.slice_count = 1;
                for (const uint64_t slice : runtime::slice_order(work.info.slice_count, seed)) {
                    work.record.first_slice = slice;
                    work.cmd(cmd);
                }
            });
            EXPECT_TRUE(same_bits(work.output(FOVEA_BIND_O), whole)) << "seed " << seed;
        }
    }
}

TEST(VulkanRecord, SlicesMaySpreadOverCommandBuffersAndRepeat) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    const std::vector<float> whole = run(gpu, sliced(1e12));
    Work work(gpu, sliced());
    const uint64_t half = work.info.slice_count / 2;
    const auto part = [&](uint64_t first, uint64_t count) {
        gpu.submit([&](VkCommandBuffer cmd) {
            work.record.first_slice = first;
            work.record.slice_count = count;
            work.cmd(cmd);
        });
    };
    part(half, work.info.slice_count - half);
    part(0, half);
    part(half / 2, 1);
    EXPECT_TRUE(same_bits(work.output(FOVEA_BIND_O), whole));
}

TEST(VulkanRecord, OneCallPutsTheSlicesOwnBarriers) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    const std::vector<float> whole = run(gpu, sliced(1e12));
    Work work(gpu, sliced());
    work.record.slice_count = 1;
    gpu.submit([&](VkCommandBuffer cmd) {
        gpu.queue->cmd_full_barrier(cmd);
        work.record.cmd = cmd;
        for (uint64_t s = 0; s < work.info.slice_count; ++s) {
            if (s > 0) foveaCmdSliceBarrier(work.plan.get(), cmd);
            work.record.first_slice = s;
            EXPECT_EQ(foveaCmdRun(work.plan.get(), &work.record, nullptr), FOVEA_OK);
        }
        gpu.queue->cmd_full_barrier(cmd);
    });
    EXPECT_TRUE(same_bits(work.output(FOVEA_BIND_O), whole));
}

TEST(VulkanRecord, PushedAndAllocatedDescriptorsGiveTheSameBits) {
    DeviceWishes wishes;
    wishes.push_descriptors = false;
    Gpu pushing, allocating(wishes);  // a driver without push descriptors allocates both times
    ASSERT_TRUE(pushing.ok() && allocating.ok());
    EXPECT_FALSE(allocating.device->properties().features & FOVEA_FEATURE_PUSH_DESCRIPTORS);
    const std::vector<float> pushed = run(pushing, sliced());

    EXPECT_TRUE(same_bits(run(allocating, sliced()), pushed));
}

TEST(VulkanRecord, FencesServeWhereTimelinesAreMissing) {
    DeviceWishes wishes;
    wishes.timeline_semaphores = false;
    Gpu gpu(wishes), with_timeline;
    ASSERT_TRUE(gpu.ok() && with_timeline.ok());
    EXPECT_FALSE(gpu.device->has_timeline());
    EXPECT_TRUE(same_bits(run(gpu, sliced()), run(with_timeline, sliced())));
}

TEST(VulkanRecord, TimestampsAdvance) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    if (!gpu.device->timestamp_bits()) GTEST_SKIP() << "the queue has no timestamps";
    Work work(gpu, sliced());
    const auto count = static_cast<uint32_t>(work.info.slice_count * 2);
    const VkQueryPoolCreateInfo create{
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, count + 3, 0};
    const runtime::DeviceCalls& vk = gpu.device->vk();
    VkQueryPool pool = VK_NULL_HANDLE;
    ASSERT_EQ(vk.vkCreateQueryPool(gpu.device->handle(), &create, nullptr, &pool), VK_SUCCESS);
    work.record.timestamps = pool;
    work.record.first_query = 3;
    gpu.submit([&](VkCommandBuffer cmd) {
        vk.vkCmdResetQueryPool(cmd, pool, 0, count + 3);
        work.cmd(cmd);
    });
    std::vector<uint64_t> ticks(count);
    const VkResult read = vk.vkGetQueryPoolResults(gpu.device->handle(), pool, 3, count, count * 8,
                                                   ticks.data(), 8, VK_QUERY_RESULT_64_BIT);
    vk.vkDestroyQueryPool(gpu.device->handle(), pool, nullptr);
    ASSERT_EQ(read, VK_SUCCESS);
    for (uint32_t i = 0; i < count; i += 2) EXPECT_LE(ticks[i], ticks[i + 1]) << "slice " << i / 2;
    EXPECT_LT(ticks.front(), ticks.back());
}

// One before each slice and one after each of its dispatches, of which the plan's data say how many there
// are; nothing is written beyond them, and the slice still takes as long as its dispatches together.
TEST(VulkanRecord, TimestampsOfEachDispatchAdvance) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    if (!gpu.device->timestamp_bits()) GTEST_SKIP() << "the queue has no timestamps";
    Work work(gpu, sliced(2e5, FOVEA_KERNEL_STAGED));
    uint32_t count = 0;
    std::vector<uint32_t> begins;  // the query before each slice
    for (uint64_t slice = 0; slice < work.info.slice_count; ++slice) {
        std::vector<FoveaDispatch> dispatches(work.info.dispatches_per_slice);
        uint32_t here = work.info.dispatches_per_slice;
        ASSERT_EQ(foveaGetDispatches(work.plan.get(), slice, dispatches.data(), &here, nullptr), FOVEA_OK);
        begins.push_back(count);
        count += here + 1;
    }
    ASSERT_GT(count, 2 * work.info.slice_count) << "a slice of one dispatch tells nothing";
    const VkQueryPoolCreateInfo create{
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, count + 2, 0};
    const runtime::DeviceCalls& vk = gpu.device->vk();
    VkQueryPool pool = VK_NULL_HANDLE;
    ASSERT_EQ(vk.vkCreateQueryPool(gpu.device->handle(), &create, nullptr, &pool), VK_SUCCESS);
    work.record.timestamps = pool;
    work.record.first_query = 1;
    work.record.dispatch_timestamps = 1;
    gpu.submit([&](VkCommandBuffer cmd) {
        vk.vkCmdResetQueryPool(cmd, pool, 0, count + 2);
        work.cmd(cmd);
    });
    std::vector<uint64_t> ticks(2 * (count + 2));  // each with whether it was written
    vk.vkGetQueryPoolResults(gpu.device->handle(), pool, 0, count + 2, ticks.size() * 8, ticks.data(), 16,
                             VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
    vk.vkDestroyQueryPool(gpu.device->handle(), pool, nullptr);
    EXPECT_EQ(ticks[1], 0u) << "written before the first query";
    EXPECT_EQ(ticks[2 * (count + 1) + 1], 0u) << "written behind the last query";
    for (uint32_t i = 1; i <= count; ++i) {
        ASSERT_NE(ticks[2 * i + 1], 0u) << "query " << i;
        const bool begins_slice = std::find(begins.begin(), begins.end(), i - 1) != begins.end();
        EXPECT_TRUE(begins_slice || ticks[2 * (i - 1)] <= ticks[2 * i]) << "query " << i;
    }
}

TEST(VulkanRecord, AHostsOwnPlayerOfTheDispatchesGivesTheSameBits) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    const std::vector<float> recorded = run(gpu, sliced());
    Work work(gpu, sliced());
    DispatchPlayer player(gpu, work);
    gpu.submit([&](VkCommandBuffer cmd) {
        gpu.queue->cmd_full_barrier(cmd);
        player.play(cmd);
        gpu.queue->cmd_full_barrier(cmd);
    });
    EXPECT_TRUE(same_bits(work.output(FOVEA_BIND_O), recorded));
}

TEST(VulkanRecord, PlansForLesserPropertiesRunToo) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    Work work(gpu, sliced());
    FoveaDeviceProperties floor = gpu.device->properties();
    floor.features &= FOVEA_FEATURE_PUSH_DESCRIPTORS;
    floor.max_workgroup_invocations = 128;
    floor.max_shared_bytes = 16384;
    floor.max_push_bytes = 128;
    FoveaPlan handle = nullptr;
    Diag diag;
    ASSERT_EQ(foveaPlanAttention(&floor, &work.desc, nullptr, &handle, &diag), FOVEA_OK) << diag.text;
    work.plan = Plan(handle);
    ASSERT_EQ(foveaCompilePlan(gpu.device->context(), handle, &diag), FOVEA_OK) << diag.text;
    const FoveaPlanInfo info = work.plan.info();
    const std::unique_ptr<VulkanMemory> workspace = gpu.memory(info.workspace_bytes);
    work.record.workspace = {workspace->buffer(), 0, info.workspace_bytes};
    work.record.slice_count = info.slice_count;
    gpu.submit([&](VkCommandBuffer cmd) { work.cmd(cmd); });
    expect_close(work.output(FOVEA_BIND_O), work.expected(FOVEA_BIND_O), 2e-6f);
}

TEST(VulkanRecord, ThreadsMayRecordOnePlan) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    Work work(gpu, sliced());
    const runtime::DeviceCalls& vk = gpu.device->vk();
    const auto record_often = [&] {
        VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        create.queueFamilyIndex = gpu.device->queue_family();
        VkCommandPool pool = VK_NULL_HANDLE;
        ASSERT_EQ(vk.vkCreateCommandPool(gpu.device->handle(), &create, nullptr, &pool), VK_SUCCESS);
        VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = pool;
        allocate.commandBufferCount = 1;
        FoveaRecord own = work.record;
        ASSERT_EQ(vk.vkAllocateCommandBuffers(gpu.device->handle(), &allocate, &own.cmd), VK_SUCCESS);
        // Each thread needs a separate descriptor_pool.
        if (work.record.descriptor_pool.pool) own.descriptor_pool.pool = work.create_descriptor_pool(1);
        for (int i = 0; i < 20; ++i) {
            const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
            ASSERT_EQ(vk.vkBeginCommandBuffer(own.cmd, &begin), VK_SUCCESS);
            ASSERT_EQ(foveaCmdRun(work.plan.get(), &own, nullptr), FOVEA_OK);
            ASSERT_EQ(vk.vkEndCommandBuffer(own.cmd), VK_SUCCESS);
            ASSERT_EQ(vk.vkResetCommandPool(gpu.device->handle(), pool, 0), VK_SUCCESS);
            if (own.descriptor_pool.pool) {
                ASSERT_EQ(vk.vkResetDescriptorPool(gpu.device->handle(), own.descriptor_pool.pool, 0),
                          VK_SUCCESS);
            }
        }
        if (own.descriptor_pool.pool)
            vk.vkDestroyDescriptorPool(gpu.device->handle(), own.descriptor_pool.pool, nullptr);
        vk.vkDestroyCommandPool(gpu.device->handle(), pool, nullptr);
    };
    std::thread other(record_often);
    record_often();
    other.join();
}

}  // namespace
}  // namespace fovea::test

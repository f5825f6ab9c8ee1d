// The promises of an embedded library to its application (tests/PROMISES.md), on the fake Vulkan
// table. Threads, a thousand create-destroy cycles, the functions it requests, and the reason of a loss.
#include "unit/fake_host.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

namespace fovea::test {
namespace {

// A command buffer's functions without books and locks, so that the thread sanitizer sees the library's own
// order only. Each thread sums up what it recorded.
thread_local uint64_t recorded_dispatches, recorded_sum;

void add(uint64_t value) { recorded_sum = (recorded_sum ^ value) * 0x100000001b3ull; }
VKAPI_ATTR void VKAPI_CALL quiet_bind(VkCommandBuffer, VkPipelineBindPoint, VkPipeline pipeline) {
    add((uint64_t)pipeline);
}
VKAPI_ATTR void VKAPI_CALL quiet_push_constants(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags,
                                                uint32_t, uint32_t size_bytes, const void* words) {
    for (uint32_t i = 0; i < size_bytes / 4; ++i) add(static_cast<const uint32_t*>(words)[i]);
}
VKAPI_ATTR void VKAPI_CALL quiet_push_set(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, uint32_t,
                                          uint32_t count, const VkWriteDescriptorSet* writes) {
    for (uint32_t i = 0; i < count; ++i) add(writes[i].pBufferInfo->offset + writes[i].pBufferInfo->range);
}
VKAPI_ATTR void VKAPI_CALL quiet_dispatch(VkCommandBuffer, uint32_t x, uint32_t y, uint32_t z) {
    ++recorded_dispatches;
    add(x + 1000ull * y + 1000000ull * z);
}
VKAPI_ATTR void VKAPI_CALL quiet_barrier(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags,
                                         VkDependencyFlags, uint32_t, const VkMemoryBarrier*, uint32_t,
                                         const VkBufferMemoryBarrier*, uint32_t,
                                         const VkImageMemoryBarrier*) {
    add(7);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL quiet_getter(VkDevice device, const char* name) {
    const std::string_view asked = name;
    if (asked == "vkCmdBindPipeline") return reinterpret_cast<PFN_vkVoidFunction>(quiet_bind);
    if (asked == "vkCmdPushConstants") return reinterpret_cast<PFN_vkVoidFunction>(quiet_push_constants);
    if (asked == "vkCmdPushDescriptorSetKHR") return reinterpret_cast<PFN_vkVoidFunction>(quiet_push_set);
    if (asked == "vkCmdDispatch") return reinterpret_cast<PFN_vkVoidFunction>(quiet_dispatch);
    if (asked == "vkCmdPipelineBarrier") return reinterpret_cast<PFN_vkVoidFunction>(quiet_barrier);
    return FakeVulkan::device_getter()(device, name);
}

struct Planned {
    FoveaContext context = nullptr;
    FoveaPlan plan = nullptr;
    FoveaPlanInfo info{};
    explicit Planned(const FakeHost& host) {
        Diag diag;
        EXPECT_EQ(foveaCreateContext(&host.host, &context, &diag), FOVEA_OK) << diag.text;
        const FoveaDeviceProperties properties = host.properties(context);
        const FoveaAttentionDesc desc = sliced_attention();
        EXPECT_EQ(foveaPlanAttention(&properties, &desc, host.allocator(), &plan, &diag), FOVEA_OK)
            << diag.text;
        EXPECT_EQ(foveaCompilePlan(context, plan, &diag), FOVEA_OK) << diag.text;
        info.struct_size = sizeof info;
        foveaGetPlanInfo(plan, &info, nullptr);
    }
    ~Planned() {
        foveaDestroyPlan(plan);
        foveaDestroyContext(context);
    }
};

TEST(Guest, TwoThreadsRecordOnePlanTenThousandTimes) {
    FakeHost host;
    host.host.get_device_proc_addr = quiet_getter;
    const Planned planned(host);
    FakeBindings bindings(planned.info);
    bindings.record.cmd = host.vulkan.command_buffer();
    struct Total {
        uint64_t dispatches = 0, sum = 0, different = 0;
        uint32_t refused = 0;
    } totals[2];
    std::vector<std::thread> threads;
    for (Total& total : totals) {
        threads.emplace_back([&] {
            recorded_dispatches = 0;
            for (int i = 0; i < 10000; ++i) {
                recorded_sum = 0;
                total.refused += foveaCmdRun(planned.plan, &bindings.record, nullptr) != FOVEA_OK;
                if (i == 0) total.sum = recorded_sum;
                total.different += recorded_sum != total.sum;
            }
            total.dispatches = recorded_dispatches;
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Total& total : totals) {
        EXPECT_EQ(total.refused, 0u);
        EXPECT_EQ(total.different, 0u);
        EXPECT_GE(total.dispatches, 10000 * planned.info.slice_count);
    }
    EXPECT_EQ(totals[0].sum, totals[1].sum);
    EXPECT_EQ(totals[0].dispatches, totals[1].dispatches);
}

TEST(Guest, LivesAThousandTimesAndLeavesNothing) {
    FakeHost host;
    for (int i = 0; i < 1000; ++i) {
        {
            const Planned planned(host);
            FakeBindings bindings(planned.info);
            bindings.record.cmd = host.vulkan.command_buffer();
            ASSERT_EQ(foveaCmdRun(planned.plan, &bindings.record, nullptr), FOVEA_OK);
        }
        ASSERT_EQ(host.vulkan.live_objects(), 0u) << i;
        ASSERT_EQ(host.vulkan.live_allocations(), 0u) << i;
        ASSERT_EQ(host.memory.live(), 0u) << i;
        host.vulkan.forget_calls();
    }
    EXPECT_EQ(host.memory.mistakes(), 0u);
    EXPECT_EQ(host.vulkan.mistakes(), std::vector<std::string>{});
}

// Everything that the library ever asks the getters for. No image, sampler, event, render pass, vertex input,
// copy or fill: so nothing of what VK_KHR_portability_subset lets a driver (MoltenVK) leave out is within its
// reach.
std::set<std::string>* asked_names;
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL noting_device_getter(VkDevice device, const char* name) {
    asked_names->insert(name);
    return FakeVulkan::device_getter()(device, name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL noting_instance_getter(VkInstance instance, const char* name) {
    asked_names->insert(name);
    return FakeVulkan::instance_getter()(instance, name);
}

TEST(Guest, AsksOnlyForWhatEveryDriverHas) {
    std::set<std::string> asked;
    asked_names = &asked;
    FakeDevice device;
    device.debug_utils = device.device_fault = true;
    device.extensions.push_back("VK_KHR_portability_subset");
    device.extensions.push_back("VK_EXT_device_fault");
    FakeHost host(device);
    host.host.get_instance_proc_addr = noting_instance_getter;
    host.host.get_device_proc_addr = noting_device_getter;
    { const Planned planned(host); }
    const std::set<std::string> expected = {
        "vkAllocateDescriptorSets",
        "vkCmdBeginDebugUtilsLabelEXT",
        "vkCmdBindDescriptorSets",
        "vkCmdBindPipeline",
        "vkCmdDispatch",
        "vkCmdEndDebugUtilsLabelEXT",
        "vkCmdPipelineBarrier",
        "vkCmdPipelineBarrier2",  // asked for to learn of the version, and not called
        "vkCmdPushConstants",
        "vkCmdPushDescriptorSetKHR",
        "vkCmdWriteTimestamp",
        "vkCreateComputePipelines",
        "vkCreateDescriptorSetLayout",
        "vkCreatePipelineCache",
        "vkCreatePipelineLayout",
        "vkCreateShaderModule",
        "vkDestroyDescriptorSetLayout",
        "vkDestroyPipeline",
        "vkDestroyPipelineCache",
        "vkDestroyPipelineLayout",
        "vkDestroyShaderModule",
        "vkEnumerateDeviceExtensionProperties",
        "vkGetDeviceFaultInfoEXT",
        "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV",
        "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
        "vkGetPhysicalDeviceFeatures2",
        "vkGetPhysicalDeviceProperties",
        "vkGetPhysicalDeviceProperties2",
        "vkGetPhysicalDeviceQueueFamilyProperties",
        "vkGetPipelineCacheData",
        "vkResetQueryPool",  // as above
        "vkSetDebugUtilsObjectNameEXT",
        "vkUpdateDescriptorSets"};
    EXPECT_EQ(asked, expected);
}

// As little as Vulkan 1.1 on a portable driver promises: no float16, no push descriptors, no subgroup
// control.
TEST(Guest, WorksOnAPortableDriverOfTheFloor) {
    FakeDevice device;
    device.api_version = VK_API_VERSION_1_1;
    device.max_invocations = 128;
    device.max_shared_bytes = 16384;
    device.storage_16bit = device.float16 = device.subgroup_size_control = device.memory_model =
        device.coopmat = false;
    device.extensions = {"VK_KHR_portability_subset"};
    FakeHost host(device, false);
    host.host.enabled_extension_count = 0;
    const Planned planned(host);
    FakeBindings bindings(planned.info);
    bindings.record.cmd = host.vulkan.command_buffer();
    bindings.record.descriptor_pool.pool = (VkDescriptorPool)0x66;
    Diag diag;
    EXPECT_EQ(foveaCmdRun(planned.plan, &bindings.record, &diag), FOVEA_OK) << diag.text;
    EXPECT_EQ(host.vulkan.mistakes(), std::vector<std::string>{});
}

TEST(Guest, PassesOnWhatTheDriverSaysOfALoss) {
    for (const bool enabled : {true, false}) {
        FakeDevice device;
        device.device_fault = true;
        device.extensions.push_back("VK_EXT_device_fault");
        FakeHost host(device);
        if (!enabled) host.host.enabled_extension_count = 0;
        host.vulkan.fail_call(3, VK_ERROR_DEVICE_LOST);
        FoveaContext context = nullptr;
        Diag diag;
        FoveaResult code = FOVEA_OK;
        for (uint32_t n = 1; n < 8 && code == FOVEA_OK; ++n) {
            host.vulkan.fail_call(n, VK_ERROR_DEVICE_LOST);
            code = foveaCreateContext(&host.host, &context, &diag);
            if (code == FOVEA_OK) foveaDestroyContext(context);
            // Calls of before there is a device's table say nothing more.
            if (std::string(diag.text).find("vkCreatePipelineCache") == std::string::npos) code = FOVEA_OK;
        }
        ASSERT_EQ(code, FOVEA_DEVICE_LOST);
        const bool told =
            std::string(diag.text).find("the driver says: page fault at a fake address") != std::string::npos;
        EXPECT_EQ(told, enabled) << diag.text;
        EXPECT_EQ(host.vulkan.count("vkGetDeviceFaultInfoEXT"), enabled ? 1u : 0u);
    }
}

}  // namespace
}  // namespace fovea::test

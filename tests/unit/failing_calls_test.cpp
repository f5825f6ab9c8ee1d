// Every call that can fail fails in turn: each time an error comes back, nothing leaks, nothing is half
// recorded.
#include "unit/fake_host.hpp"

#include <gtest/gtest.h>

namespace fovea::test {
namespace {

struct Outcome {
    FoveaResult code = FOVEA_OK;
    Diag diag;
    uint32_t commands_when_refused = 0;
};

// From nothing to a recorded plan and a saved cache; stops at the first error and cleans up.
Outcome run_all(FakeHost& host, bool push_descriptors) {
    Outcome out;
    FoveaContext context = nullptr;
    FoveaPlan plan = nullptr;
    const auto body = [&]() -> FoveaResult {
        FoveaRecommendedFeatures recommended{};
        recommended.struct_size = sizeof recommended;
        FoveaResult r = foveaQueryRecommendedFeatures(FakeVulkan::instance_getter(), host.vulkan.instance(),
                                                      VK_API_VERSION_1_3, host.vulkan.physical_device(),
                                                      host.allocator(), &recommended, &out.diag);
        if (r) return r;
        if ((r = foveaCreateContext(&host.host, &context, &out.diag))) return r;
        const FoveaDeviceProperties properties = host.properties(context);
        const FoveaAttentionDesc desc = sliced_attention();
        if ((r = foveaPlanAttention(&properties, &desc, host.allocator(), &plan, &out.diag))) return r;
        if ((r = foveaCompilePlan(context, plan, &out.diag))) return r;
        FoveaPlanInfo info{};
        info.struct_size = sizeof info;
        foveaGetPlanInfo(plan, &info, nullptr);
        FakeBindings bindings(info);
        bindings.record.cmd = host.vulkan.command_buffer();
        if (!push_descriptors) bindings.record.descriptor_pool.pool = (VkDescriptorPool)0x66;
        const uint32_t before = host.vulkan.count("vkCmd");
        if ((r = foveaCmdRun(plan, &bindings.record, &out.diag))) {
            out.commands_when_refused = host.vulkan.count("vkCmd") - before;
            return r;
        }
        char cache[4096];
        size_t size = 0;
        if ((r = foveaGetPipelineCacheData(context, nullptr, &size, &out.diag))) return r;
        return foveaGetPipelineCacheData(context, cache, &size, &out.diag);
    };
    out.code = body();
    foveaDestroyPlan(plan);
    foveaDestroyContext(context);
    return out;
}

void expect_clean(FakeHost& host, const std::string& where) {
    EXPECT_EQ(host.vulkan.live_objects(), 0u) << where;
    EXPECT_EQ(host.vulkan.live_allocations(), 0u) << where;
    EXPECT_EQ(host.memory.live(), 0u) << where;
    EXPECT_EQ(host.memory.mistakes(), 0u) << where;
    EXPECT_EQ(host.vulkan.mistakes(), std::vector<std::string>{}) << where;
}

FoveaResult expected_code(VkResult result, const std::string& call) {
    if (call == "vkAllocateDescriptorSets" && result == VK_ERROR_FRAGMENTED_POOL) return FOVEA_LIMIT_EXCEEDED;
    switch (result) {
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            return FOVEA_OUT_OF_HOST_MEMORY;
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            return FOVEA_OUT_OF_DEVICE_MEMORY;
        case VK_ERROR_DEVICE_LOST:
            return FOVEA_DEVICE_LOST;
        default:
            return FOVEA_VULKAN_ERROR;
    }
}

class FailingCalls : public ::testing::TestWithParam<bool> {};

TEST_P(FailingCalls, EachGivesAnErrorAndLeaksNothing) {
    const bool push = GetParam();
    uint32_t total = 0;
    {
        FakeHost host({}, push);
        const Outcome out = run_all(host, push);
        ASSERT_EQ(out.code, FOVEA_OK) << out.diag.text;
        total = host.vulkan.failable_calls();
        expect_clean(host, "no failure");
    }
    ASSERT_GT(total, 10u);
    for (const VkResult result :
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST,
          VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_FRAGMENTED_POOL}) {
        for (uint32_t n = 1; n <= total; ++n) {
            FakeHost host({}, push);
            host.vulkan.fail_call(n, result);
            const Outcome out = run_all(host, push);
            const std::string where = "call " + std::to_string(n) + " of " + std::to_string(total) + " (" +
                                      out.diag.field + ") returns " + std::to_string(result);
            EXPECT_EQ(out.code, expected_code(result, push ? ""
                                                      : out.diag.field == std::string("descriptor_pool.pool")
                                                          ? "vkAllocateDescriptorSets"
                                                          : ""))
                << where;
            if (out.code == FOVEA_VULKAN_ERROR) {
                EXPECT_EQ(out.diag.vk_result, result) << where;
            }
            EXPECT_EQ(out.commands_when_refused, 0u) << where;
            expect_clean(host, where);
        }
    }
}

TEST_P(FailingCalls, EachHostAllocationMayFail) {
    const bool push = GetParam();
    uint32_t total = 0;
    {
        FakeHost host({}, push);
        ASSERT_EQ(run_all(host, push).code, FOVEA_OK);
        total = host.memory.allocations();
    }
    ASSERT_GT(total, 3u);
    for (uint32_t n = 1; n <= total; ++n) {
        FakeHost host({}, push);
        host.memory.fail_allocation(n);
        const Outcome out = run_all(host, push);
        EXPECT_EQ(out.code, FOVEA_OUT_OF_HOST_MEMORY) << "allocation " << n << ": " << out.diag.text;
        expect_clean(host, "allocation " + std::to_string(n));
    }
}

INSTANTIATE_TEST_SUITE_P(Descriptors, FailingCalls, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Pushed" : "FromAPool"; });

TEST(DeviceLoss, IsRememberedByTheContext) {
    FakeHost host;
    FoveaContext context = nullptr;
    Diag diag;
    ASSERT_EQ(foveaCreateContext(&host.host, &context, &diag), FOVEA_OK);
    const FoveaDeviceProperties properties = host.properties(context);
    FoveaAttentionDesc desc = sliced_attention();
    FoveaPlan good = nullptr, late = nullptr;
    ASSERT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &good, &diag), FOVEA_OK) << diag.text;
    ASSERT_EQ(foveaCompilePlan(context, good, &diag), FOVEA_OK);
    desc.q_type = FOVEA_F16;  // another shader
    ASSERT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &late, &diag), FOVEA_OK);
    host.vulkan.fail_call(1, VK_ERROR_DEVICE_LOST);
    EXPECT_EQ(foveaCompilePlan(context, late, &diag), FOVEA_DEVICE_LOST);
    host.vulkan.forget_calls();

    EXPECT_EQ(foveaCompilePlan(context, late, &diag), FOVEA_DEVICE_LOST);
    EXPECT_EQ(foveaCompilePlan(context, good, &diag), FOVEA_DEVICE_LOST);
    FoveaPlanInfo info{};
    info.struct_size = sizeof info;
    foveaGetPlanInfo(good, &info, nullptr);
    FakeBindings bindings(info);
    bindings.record.cmd = host.vulkan.command_buffer();
    EXPECT_EQ(foveaCmdRun(good, &bindings.record, &diag), FOVEA_DEVICE_LOST);
    foveaCmdSliceBarrier(good, bindings.record.cmd);
    size_t size = 0;
    EXPECT_EQ(foveaGetPipelineCacheData(context, nullptr, &size, &diag), FOVEA_DEVICE_LOST);
    EXPECT_EQ(host.vulkan.calls(), std::vector<std::string>{});

    FoveaDeviceProperties again{};
    again.struct_size = sizeof again;
    EXPECT_EQ(foveaContextProperties(context, &again, &diag), FOVEA_OK);
    foveaDestroyPlan(good);
    foveaDestroyPlan(late);
    foveaDestroyContext(context);
    EXPECT_EQ(host.vulkan.live_objects(), 0u);
    EXPECT_EQ(host.memory.live(), 0u);
}

}  // namespace
}  // namespace fovea::test

// The Vulkan calls of a recorded plan, their order, and its barriers.
#include "unit/fake_host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace fovea::test {
namespace {

class Record : public ::testing::Test {
  protected:
    void open(const FoveaAttentionDesc& desc, bool push_descriptors = true, const FakeDevice& device = {}) {
        host = std::make_unique<FakeHost>(device, push_descriptors);
        ASSERT_EQ(foveaCreateContext(&host->host, &context, &diag), FOVEA_OK) << diag.text;
        const FoveaDeviceProperties properties = host->properties(context);
        ASSERT_EQ(foveaPlanAttention(&properties, &desc, host->allocator(), &plan, &diag), FOVEA_OK)
            << diag.text;
        ASSERT_EQ(foveaCompilePlan(context, plan, &diag), FOVEA_OK) << diag.text;
        info.struct_size = sizeof info;
        ASSERT_EQ(foveaGetPlanInfo(plan, &info, &diag), FOVEA_OK);
        bindings = std::make_unique<FakeBindings>(info);
        bindings->record.cmd = host->vulkan.command_buffer();
        host->vulkan.forget_calls();
    }
    void TearDown() override {
        foveaDestroyPlan(plan);
        foveaDestroyContext(context);
        if (!host) return;
        EXPECT_EQ(host->vulkan.live_objects(), 0u);
        EXPECT_EQ(host->vulkan.live_allocations(), 0u);
        EXPECT_EQ(host->memory.live(), 0u);
        EXPECT_EQ(host->memory.mistakes(), 0u);
        EXPECT_EQ(host->vulkan.mistakes(), std::vector<std::string>{});
    }
    FoveaResult record() { return foveaCmdRun(plan, &bindings->record, &diag); }
    uint32_t dispatches_of(uint64_t slice) {
        FoveaDispatch out[16];
        uint32_t count = 16;
        EXPECT_EQ(foveaGetDispatches(plan, slice, out, &count, &diag), FOVEA_OK) << diag.text;
        return count;
    }

    std::unique_ptr<FakeHost> host;
    std::unique_ptr<FakeBindings> bindings;
    FoveaContext context = nullptr;
    FoveaPlan plan = nullptr;
    FoveaPlanInfo info{};
    Diag diag;
};

TEST_F(Record, CallsOnlyCommands) {
    open(sliced_attention());
    ASSERT_EQ(record(), FOVEA_OK) << diag.text;
    const std::string allowed[] = {"vkCmdBindPipeline", "vkCmdPushDescriptorSetKHR", "vkCmdPushConstants",
                                   "vkCmdDispatch", "vkCmdPipelineBarrier compute->compute"};
    for (const std::string& call : host->vulkan.calls()) {
        EXPECT_TRUE(std::any_of(std::begin(allowed), std::end(allowed), [&](const std::string& a) {
            return call.starts_with(a);
        })) << call;
    }
}

TEST_F(Record, AllocatesNothing) {
    open(sliced_attention());
    const uint32_t before = host->memory.allocations();
    const size_t allocations = host->vulkan.live_allocations();
    ASSERT_EQ(record(), FOVEA_OK);
    EXPECT_EQ(host->memory.allocations(), before);
    EXPECT_EQ(host->vulkan.live_allocations(), allocations);
}

TEST_F(Record, PutsBarriersBetweenItsDispatchesAndSharingSlicesOnly) {
    open(sliced_attention());
    ASSERT_GT(info.slice_count, 2u);
    ASSERT_EQ(record(), FOVEA_OK) << diag.text;
    uint32_t dispatches = 0, dependent = 0;
    for (uint64_t s = 0; s < info.slice_count; ++s) {
        FoveaDispatch out[16];
        uint32_t count = 16;
        ASSERT_EQ(foveaGetDispatches(plan, s, out, &count, &diag), FOVEA_OK);
        ASSERT_GT(count, 0u);
        EXPECT_LE(count, info.dispatches_per_slice);
        dispatches += count;
        for (uint32_t i = 1; i < count; ++i) dependent += out[i].barrier_before;
    }
    const uint64_t between = info.slices_share_workspace ? info.slice_count - 1 : 0;
    EXPECT_EQ(host->vulkan.count("vkCmdDispatch"), dispatches);
    EXPECT_EQ(host->vulkan.count("vkCmdPipelineBarrier"), dependent + between);
    const std::vector<std::string> calls = host->vulkan.calls();
    EXPECT_EQ(calls.front(), "vkCmdBindPipeline");
    EXPECT_TRUE(calls.back().starts_with("vkCmdDispatch"));
}

TEST_F(Record, RecordsTheSlicesAskedFor) {
    open(sliced_attention());
    bindings->record.first_slice = 1;
    bindings->record.slice_count = 1;
    ASSERT_EQ(record(), FOVEA_OK);
    EXPECT_EQ(host->vulkan.count("vkCmdDispatch"), dispatches_of(1));
    host->vulkan.forget_calls();
    bindings->record.slice_count = 0;  // the rest
    ASSERT_EQ(record(), FOVEA_OK);
    uint32_t rest = 0;
    for (uint64_t s = 1; s < info.slice_count; ++s) rest += dispatches_of(s);
    EXPECT_EQ(host->vulkan.count("vkCmdDispatch"), rest);
    host->vulkan.forget_calls();
    bindings->record.first_slice = info.slice_count;  // none left
    ASSERT_EQ(record(), FOVEA_OK);
    EXPECT_TRUE(host->vulkan.calls().empty());
}

TEST_F(Record, WritesTwoTimestampsForEachSlice) {
    open(sliced_attention());
    bindings->record.timestamps = (VkQueryPool)0x55;
    bindings->record.first_query = 10;
    ASSERT_EQ(record(), FOVEA_OK);
    EXPECT_EQ(host->vulkan.count("vkCmdWriteTimestamp"), 2 * info.slice_count);
    const std::vector<std::string> calls = host->vulkan.calls();
    EXPECT_EQ(calls.front(), "vkCmdWriteTimestamp 10");
    EXPECT_EQ(calls.back(), "vkCmdWriteTimestamp " + std::to_string(10 + 2 * info.slice_count - 1));
}

TEST_F(Record, WritesATimestampAfterEachDispatchWhereTheseAreAskedFor) {
    open(sliced_attention());
    bindings->record.timestamps = (VkQueryPool)0x55;
    bindings->record.first_query = 10;
    bindings->record.dispatch_timestamps = 1;
    ASSERT_EQ(record(), FOVEA_OK);
    uint64_t dispatches = 0;
    for (uint64_t s = 0; s < info.slice_count; ++s) dispatches += dispatches_of(s);
    EXPECT_EQ(host->vulkan.count("vkCmdWriteTimestamp"), info.slice_count + dispatches);
    const std::vector<std::string> calls = host->vulkan.calls();
    EXPECT_EQ(calls.front(), "vkCmdWriteTimestamp 10");
    EXPECT_EQ(calls.back(), "vkCmdWriteTimestamp " + std::to_string(10 + info.slice_count + dispatches - 1));
}

TEST_F(Record, TakesSetsFromThePoolBeforeTheFirstCommand) {
    open(sliced_attention(), false);
    bindings->record.descriptor_pool.pool = (VkDescriptorPool)0x66;
    ASSERT_EQ(record(), FOVEA_OK) << diag.text;
    const std::vector<std::string> calls = host->vulkan.calls();
    const uint32_t dispatches = host->vulkan.count("vkCmdDispatch");
    EXPECT_EQ(host->vulkan.count("vkAllocateDescriptorSets"), dispatches);
    EXPECT_EQ(host->vulkan.count("vkUpdateDescriptorSets"), dispatches);
    EXPECT_EQ(host->vulkan.count("vkCmdBindDescriptorSets"), dispatches);
    EXPECT_EQ(host->vulkan.count("vkCmdPushDescriptorSet"), 0u);
    // Calls that may fail come first; the rest, writing a set and recording its dispatch, cannot fail.
    const auto is_command = [](const std::string& c) { return c.starts_with("vkCmd"); };
    const auto cannot_fail = [&](const std::string& c) {
        return is_command(c) || c.starts_with("vkUpdateDescriptorSets");
    };
    const auto first = std::find_if(calls.begin(), calls.end(), is_command);
    EXPECT_TRUE(std::all_of(first, calls.end(), cannot_fail));
    // Each set is written once, before the command that binds it.
    uint32_t written = 0, bound = 0;
    for (const std::string& call : calls) {
        written += call.starts_with("vkUpdateDescriptorSets");
        bound += call.starts_with("vkCmdBindDescriptorSets");
        ASSERT_LE(bound, written);
    }
}

TEST_F(Record, LabelsAndNamesWhereDebugUtilsAreEnabled) {
    FakeDevice device;
    device.debug_utils = true;
    open(sliced_attention(), true, device);
    ASSERT_EQ(record(), FOVEA_OK);
    EXPECT_EQ(host->vulkan.count("vkCmdBeginDebugUtilsLabelEXT fovea"), 1u);
    EXPECT_EQ(host->vulkan.count("vkCmdEndDebugUtilsLabelEXT"), 1u);
    const FoveaDeviceProperties properties = host->properties(context);
    FoveaPlan second = nullptr;
    const FoveaAttentionDesc other = Attention().batch(1).heads(1).lengths(5, 7).dims(3).desc;
    ASSERT_EQ(foveaPlanAttention(&properties, &other, nullptr, &second, &diag), FOVEA_OK) << diag.text;
    ASSERT_EQ(foveaCompilePlan(context, second, &diag), FOVEA_OK);
    EXPECT_EQ(host->vulkan.count("vkCreateComputePipelines"),
              host->vulkan.count("vkSetDebugUtilsObjectNameEXT "));
    foveaDestroyPlan(second);
}

TEST_F(Record, SliceBarrierIsTheDocumentedOne) {
    open(sliced_attention());
    foveaCmdSliceBarrier(plan, host->vulkan.command_buffer());
    EXPECT_EQ(host->vulkan.calls(), std::vector<std::string>{"vkCmdPipelineBarrier compute->compute"});
}

TEST_F(Record, PlansShareTheContextsPipelines) {
    open(sliced_attention());
    const FoveaDeviceProperties properties = host->properties(context);
    const FoveaAttentionDesc desc = sliced_attention();
    FoveaPlan again = nullptr;
    ASSERT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &again, &diag), FOVEA_OK);
    ASSERT_EQ(foveaCompilePlan(context, again, &diag), FOVEA_OK);
    ASSERT_EQ(foveaCompilePlan(context, again, &diag), FOVEA_OK);
    EXPECT_TRUE(host->vulkan.calls().empty());
    foveaDestroyPlan(again);
}

TEST_F(Record, ManyThreadsCompileAndRecordAtOnce) {
    open(sliced_attention());
    const FoveaDeviceProperties properties = host->properties(context);
    FoveaAttentionDesc desc = sliced_attention();
    desc.q_type = desc.o_type = FOVEA_F16;  // other pipelines than those that are there already
    std::vector<std::thread> threads;
    std::vector<FoveaResult> results(8, FOVEA_OK);
    for (FoveaResult& result : results) {
        threads.emplace_back([&] {
            FoveaPlan own = nullptr;
            result = foveaPlanAttention(&properties, &desc, nullptr, &own, nullptr);
            if (result == FOVEA_OK) result = foveaCompilePlan(context, own, nullptr);
            for (int i = 0; i < 100 && result == FOVEA_OK; ++i)
                result = foveaCmdRun(plan, &bindings->record, nullptr);
            if (result == FOVEA_OK) result = foveaCmdRun(own, &bindings->record, nullptr);
            foveaDestroyPlan(own);
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const FoveaResult result : results) EXPECT_EQ(result, FOVEA_OK);
}

TEST_F(Record, RefusesAnotherContextAndForeignProperties) {
    open(sliced_attention());
    FakeHost second;
    FoveaContext other = nullptr;
    ASSERT_EQ(foveaCreateContext(&second.host, &other, &diag), FOVEA_OK);
    EXPECT_EQ(foveaCompilePlan(other, plan, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "context");

    FoveaDeviceProperties larger = second.properties(other);
    larger.max_workgroup_invocations *= 4;
    const FoveaAttentionDesc desc = sliced_attention();
    FoveaPlan foreign = nullptr;
    ASSERT_EQ(foveaPlanAttention(&larger, &desc, nullptr, &foreign, &diag), FOVEA_OK);
    EXPECT_EQ(foveaCompilePlan(other, foreign, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "properties.max_workgroup_invocations");
    foveaDestroyPlan(foreign);

    FoveaDeviceProperties smaller = second.properties(other);
    smaller.max_workgroup_invocations = 128;
    smaller.features = 0;
    ASSERT_EQ(foveaPlanAttention(&smaller, &desc, nullptr, &foreign, &diag), FOVEA_OK);
    EXPECT_EQ(foveaCompilePlan(other, foreign, &diag), FOVEA_OK) << diag.text;
    foveaDestroyPlan(foreign);
    foveaDestroyContext(other);
}

TEST_F(Record, RefusesMatricesOfAShapeThatTheDeviceDoesNotUse) {
    Attention call;
    call.batch(1).heads(2).lengths(64, 64).dims(32, 32).precision(FOVEA_PRECISION_F16_INPUTS);
    call.kernel(FOVEA_KERNEL_FLASH_COOPMAT);
    open(call.desc);
    FoveaDeviceProperties properties = host->properties(context);
    ASSERT_EQ(properties.coopmat_m, 16u);
    properties.coopmat_m = 8;
    FoveaPlan foreign = nullptr;
    ASSERT_EQ(foveaPlanAttention(&properties, &call.desc, nullptr, &foreign, &diag), FOVEA_OK) << diag.text;
    EXPECT_EQ(foveaCompilePlan(context, foreign, &diag), FOVEA_UNSUPPORTED);
    EXPECT_STREQ(diag.field, "properties.coopmat_m");
    foveaDestroyPlan(foreign);
}

// A look at each of them would take hours.
TEST_F(Record, RefusesPlansOfMoreSlicesThanItCanLookAt) {
    Attention call;
    call.batch(1).heads(1024).lengths(1 << 16, 64).dims(64).kernel(FOVEA_KERNEL_FLASH);
    open(sliced_attention());
    const FoveaDeviceProperties properties = host->properties(context);
    FoveaPlan many = nullptr;
    call.desc.max_slice_cost = 3e5;
    ASSERT_EQ(foveaPlanAttention(&properties, &call.desc, nullptr, &many, &diag), FOVEA_OK) << diag.text;
    FoveaPlanInfo cut = foveaPlanInfo();
    foveaGetPlanInfo(many, &cut, nullptr);
    ASSERT_GT(cut.slice_count, 1u << 20);
    EXPECT_EQ(foveaCompilePlan(context, many, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "max_slice_cost");
    foveaDestroyPlan(many);
}

}  // namespace
}  // namespace fovea::test

// Each bad argument of foveaCmdRun: rejected by code and field, with nothing recorded.
#include "unit/fake_host.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace fovea::test {
namespace {

struct Refusal {
    const char* name;
    std::function<void(FakeBindings&)> spoil;
    FoveaResult code;
    const char* field;
};

std::vector<Refusal> refusals(const FoveaPlanInfo& info) {
    const uint64_t slices = info.slice_count;
    return {
        {"no command buffer", [](auto& b) { b.record.cmd = nullptr; }, FOVEA_INVALID_ARGUMENT, "cmd"},
        {"no struct size", [](auto& b) { b.record.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
        {"no bindings", [](auto& b) { b.record.bindings = nullptr; }, FOVEA_INVALID_ARGUMENT, "bindings"},
        {"too few bindings", [](auto& b) { b.record.binding_count = 2; }, FOVEA_INVALID_ARGUMENT,
         "bindings[V]"},
        {"Q missing", [](auto& b) { b.bindings[FOVEA_BIND_Q] = {}; }, FOVEA_INVALID_ARGUMENT, "bindings[Q]"},
        {"O missing", [](auto& b) { b.bindings[FOVEA_BIND_O] = {}; }, FOVEA_INVALID_ARGUMENT, "bindings[O]"},
        {"mask missing", [](auto& b) { b.bindings[FOVEA_BIND_MASK] = {}; }, FOVEA_INVALID_ARGUMENT,
         "bindings[MASK]"},
        {"K too small", [](auto& b) { b.bindings[FOVEA_BIND_K].size -= 1; }, FOVEA_INVALID_ARGUMENT,
         "bindings[K].size"},
        {"V empty", [](auto& b) { b.bindings[FOVEA_BIND_V].size = 0; }, FOVEA_INVALID_ARGUMENT,
         "bindings[V].size"},
        {"V whole size", [](auto& b) { b.bindings[FOVEA_BIND_V].size = VK_WHOLE_SIZE; },
         FOVEA_INVALID_ARGUMENT, "bindings[V].size"},
        {"Q misaligned", [](auto& b) { b.bindings[FOVEA_BIND_Q].offset = 128; }, FOVEA_INVALID_ARGUMENT,
         "bindings[Q].offset"},
        {"O misaligned", [](auto& b) { b.bindings[FOVEA_BIND_O].offset = 4; }, FOVEA_INVALID_ARGUMENT,
         "bindings[O].offset"},
        {"Q wraps", [](auto& b) { b.bindings[FOVEA_BIND_Q].offset = UINT64_MAX - 255; }, FOVEA_SIZE_OVERFLOW,
         "bindings[Q].size"},
        {"no workspace", [](auto& b) { b.record.workspace = {}; }, FOVEA_INVALID_ARGUMENT, "workspace"},
        {"workspace too small", [](auto& b) { b.record.workspace.size -= 1; }, FOVEA_INVALID_ARGUMENT,
         "workspace.size"},
        {"workspace misaligned", [](auto& b) { b.record.workspace.offset = 16; }, FOVEA_INVALID_ARGUMENT,
         "workspace.offset"},
        {"workspace whole size", [](auto& b) { b.record.workspace.size = VK_WHOLE_SIZE; },
         FOVEA_INVALID_ARGUMENT, "workspace.size"},
        {"O is Q", [](auto& b) { b.bindings[FOVEA_BIND_O].buffer = b.bindings[FOVEA_BIND_Q].buffer; },
         FOVEA_INVALID_ARGUMENT, "bindings[O]"},
        {"O within V",
         [](auto& b) {
             b.bindings[FOVEA_BIND_O].buffer = b.bindings[FOVEA_BIND_V].buffer;
             b.bindings[FOVEA_BIND_O].offset = 256;
         },
         FOVEA_INVALID_ARGUMENT, "bindings[O]"},
        {"LSE is O", [](auto& b) { b.bindings[FOVEA_BIND_LSE].buffer = b.bindings[FOVEA_BIND_O].buffer; },
         FOVEA_INVALID_ARGUMENT, "bindings[O]"},
        {"workspace is K", [](auto& b) { b.record.workspace.buffer = b.bindings[FOVEA_BIND_K].buffer; },
         FOVEA_INVALID_ARGUMENT, "workspace"},
        {"first slice past the end", [=](auto& b) { b.record.first_slice = slices + 1; },
         FOVEA_INVALID_ARGUMENT, "first_slice"},
        {"too many slices",
         [=](auto& b) {
             b.record.first_slice = 1;
             b.record.slice_count = slices;
         },
         FOVEA_INVALID_ARGUMENT, "slice_count"},
        {"slices wrap",
         [](auto& b) {
             b.record.first_slice = 1;
             b.record.slice_count = UINT64_MAX;
         },
         FOVEA_INVALID_ARGUMENT, "slice_count"},
        {"a bias that the plan does not have",
         [](auto& b) { b.bindings[FOVEA_BIND_BIAS] = b.bindings[FOVEA_BIND_MASK]; }, FOVEA_INVALID_ARGUMENT,
         "bindings[BIAS]"},
        {"a sequence table without its flag",
         [](auto& b) { b.bindings[FOVEA_BIND_SEQUENCES] = b.bindings[FOVEA_BIND_MASK]; },
         FOVEA_INVALID_ARGUMENT, "bindings[SEQUENCES]"},
        {"weights that were not asked for",
         [](auto& b) {
             b.bindings[FOVEA_BIND_WEIGHTS] = {(VkBuffer)0x999, 0, 1 << 20};
         },
         FOVEA_INVALID_ARGUMENT, "bindings[WEIGHTS]"},
        {"queries wrap",
         [](auto& b) {
             b.record.timestamps = (VkQueryPool)0x55;
             b.record.first_query = UINT32_MAX - 1;
         },
         FOVEA_SIZE_OVERFLOW, "first_query"},
        {"kind of timestamps", [](auto& b) { b.record.dispatch_timestamps = 2; }, FOVEA_INVALID_ARGUMENT,
         "dispatch_timestamps"},
    };
}

FoveaAttentionDesc refusal_attention() {
    FoveaAttentionDesc desc = sliced_attention();
    desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    desc.mask.present = 1;
    desc.mask.type = FOVEA_U8;
    return desc;
}

struct Fixture {
    FakeHost host;
    FoveaContext context = nullptr;
    FoveaPlan plan = nullptr;
    FoveaPlanInfo info{};

    Fixture(const FakeDevice& device, bool push_descriptors, bool compile = true)
        : host(device, push_descriptors) {
        Diag diag;
        EXPECT_EQ(foveaCreateContext(&host.host, &context, &diag), FOVEA_OK) << diag.text;
        const FoveaDeviceProperties properties = host.properties(context);
        const FoveaAttentionDesc desc = refusal_attention();
        EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, &diag), FOVEA_OK) << diag.text;
        if (compile) {
            EXPECT_EQ(foveaCompilePlan(context, plan, &diag), FOVEA_OK) << diag.text;
        }
        info.struct_size = sizeof info;
        foveaGetPlanInfo(plan, &info, nullptr);
        host.vulkan.forget_calls();
    }
    ~Fixture() {
        foveaDestroyPlan(plan);
        foveaDestroyContext(context);
    }
};

TEST(RecordRefusal, NamesTheFieldAndRecordsNothing) {
    Fixture f({}, true);
    ASSERT_GT(f.info.workspace_bytes, 0u);
    ASSERT_GT(f.info.slice_count, 1u);
    Diag diag;
    for (const Refusal& refusal : refusals(f.info)) {
        FakeBindings bindings(f.info);
        bindings.record.cmd = f.host.vulkan.command_buffer();
        ASSERT_EQ(foveaCmdRun(f.plan, &bindings.record, &diag), FOVEA_OK) << diag.text;
        f.host.vulkan.forget_calls();
        refusal.spoil(bindings);
        EXPECT_EQ(foveaCmdRun(f.plan, &bindings.record, &diag), refusal.code) << refusal.name;
        EXPECT_STREQ(diag.field, refusal.field) << refusal.name << ": " << diag.text;
        EXPECT_EQ(f.host.vulkan.calls(), std::vector<std::string>{}) << refusal.name;
    }
}

// Two queries for each slice: the last number that fits 32 bits is the last that is taken.
TEST(RecordRefusal, TimestampsMayReachTheLastQuery) {
    Fixture f({}, true);
    const auto slices = uint32_t(f.info.slice_count);
    ASSERT_GT(slices, 1u);
    for (const uint32_t room : {2 * slices + 1, 2 * slices, 2 * slices - 1, slices, 0u}) {
        FakeBindings bindings(f.info);
        bindings.record.cmd = f.host.vulkan.command_buffer();
        bindings.record.timestamps = (VkQueryPool)0x55;
        bindings.record.first_query = UINT32_MAX - room;
        Diag diag;
        EXPECT_EQ(foveaCmdRun(f.plan, &bindings.record, &diag),
                  room < 2 * slices ? FOVEA_SIZE_OVERFLOW : FOVEA_OK)
            << room << " queries are left for " << slices << " slices";
    }
}

TEST(RecordRefusal, RoomBehindAnOutputMayHoldSomethingElse) {
    Fixture f({}, true);
    FakeBindings bindings(f.info);
    bindings.record.cmd = f.host.vulkan.command_buffer();
    // Two outputs and the workspace in one buffer, each said to reach to its end.
    const uint64_t total = 1ull << 30;
    uint64_t offset = 0;
    for (FoveaBuffer* b :
         {&bindings.bindings[FOVEA_BIND_O], &bindings.bindings[FOVEA_BIND_LSE], &bindings.record.workspace}) {
        const uint64_t used = b->size;
        *b = {FakeBindings::handle(200), offset, total - offset};
        offset += (used + 255) / 256 * 256;
    }
    Diag diag;
    EXPECT_EQ(foveaCmdRun(f.plan, &bindings.record, &diag), FOVEA_OK) << diag.text;
}

TEST(RecordRefusal, PlanNotCompiled) {
    Fixture f({}, true, false);
    FakeBindings bindings(f.info);
    bindings.record.cmd = f.host.vulkan.command_buffer();
    Diag diag;
    EXPECT_EQ(foveaCmdRun(f.plan, &bindings.record, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "plan");
    foveaCmdSliceBarrier(f.plan, bindings.record.cmd);
    EXPECT_TRUE(f.host.vulkan.calls().empty());
}

TEST(RecordRefusal, PlanForTheCpu) {
    Fixture f({}, true);
    FoveaAttentionDesc desc = refusal_attention();
    desc.kernel = FOVEA_KERNEL_AUTO;
    Result<Plan> plan = plan_cpu(desc);
    ASSERT_TRUE(plan) << plan.error().text;
    FakeBindings bindings(f.info);
    bindings.record.cmd = f.host.vulkan.command_buffer();
    Diag diag;
    EXPECT_EQ(foveaCmdRun(plan->get(), &bindings.record, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaCompilePlan(f.context, plan->get(), &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "plan");
}

TEST(RecordRefusal, NoTimestampsOnThisDevice) {
    FakeDevice device;
    device.timestamp_bits = 0;
    Fixture f(device, true);
    FakeBindings bindings(f.info);
    bindings.record.cmd = f.host.vulkan.command_buffer();
    bindings.record.timestamps = (VkQueryPool)0x55;
    Diag diag;
    EXPECT_EQ(foveaCmdRun(f.plan, &bindings.record, &diag), FOVEA_UNSUPPORTED);
    EXPECT_STREQ(diag.field, "timestamps");
    EXPECT_TRUE(f.host.vulkan.calls().empty());
}

TEST(RecordRefusal, NoPoolWithoutPushDescriptors) {
    Fixture f({}, false);
    FakeBindings bindings(f.info);
    bindings.record.cmd = f.host.vulkan.command_buffer();
    Diag diag;
    EXPECT_EQ(foveaCmdRun(f.plan, &bindings.record, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "descriptor_pool.pool");
    bindings.record.descriptor_pool.pool = (VkDescriptorPool)0x66;
    f.host.vulkan.fail_call(2, VK_ERROR_OUT_OF_POOL_MEMORY);
    EXPECT_EQ(foveaCmdRun(f.plan, &bindings.record, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "descriptor_pool.pool");
    EXPECT_EQ(f.host.vulkan.count("vkCmd"), 0u);
}

TEST(RecordRefusal, MoreDispatchesThanOneCallTakesFromAPool) {
    FakeHost host({}, false);
    FoveaContext context = nullptr;
    Diag diag;
    ASSERT_EQ(foveaCreateContext(&host.host, &context, &diag), FOVEA_OK);
    const FoveaDeviceProperties properties = host.properties(context);
    FoveaAttentionDesc desc = sliced_attention();
    desc.len_q = 4096;
    desc.max_slice_cost = 6500;
    FoveaPlan plan = nullptr;
    ASSERT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, &diag), FOVEA_OK) << diag.text;
    ASSERT_EQ(foveaCompilePlan(context, plan, &diag), FOVEA_OK);
    FoveaPlanInfo info{};
    info.struct_size = sizeof info;
    foveaGetPlanInfo(plan, &info, nullptr);
    ASSERT_GT(info.slice_count * info.dispatches_per_slice, uint64_t{FOVEA_MAX_DESCRIPTOR_SETS});
    FakeBindings bindings(info);
    bindings.record.cmd = host.vulkan.command_buffer();
    bindings.record.descriptor_pool.pool = (VkDescriptorPool)0x66;
    EXPECT_EQ(foveaCmdRun(plan, &bindings.record, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "slice_count");
    EXPECT_EQ(host.vulkan.count("vkCmd"), 0u);
    foveaDestroyPlan(plan);
    foveaDestroyContext(context);
}

}  // namespace
}  // namespace fovea::test

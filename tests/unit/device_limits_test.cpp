// A device at the minimum of each limit that a pipeline layout, a descriptor, a dispatch or a timestamp
// needs: rejected by the limit's name, or served.
#include "unit/fake_host.hpp"

#include <gtest/gtest.h>

#include <string>

namespace fovea::test {
namespace {

struct Limit {
    const char* field;
    uint32_t FakeDevice::*member;
    uint32_t least;  // minimum for a context
};

TEST(DeviceLimits, ContextsTakeTheLeastAndRefuseOneLess) {
    const Limit limits[] = {
        {"maxStorageBufferRange", &FakeDevice::max_storage_range, 256},
        {"maxPushConstantsSize", &FakeDevice::max_push_bytes, 128},
        {"maxBoundDescriptorSets", &FakeDevice::max_bound_sets, 1},
        {"maxPerStageDescriptorStorageBuffers", &FakeDevice::max_stage_buffers, 4},
        {"maxPerStageResources", &FakeDevice::max_stage_resources, 4},
        {"maxDescriptorSetStorageBuffers", &FakeDevice::max_set_buffers, 4},
        {"maxComputeSharedMemorySize", &FakeDevice::max_shared_bytes, 16384},
        {"maxComputeWorkGroupInvocations", &FakeDevice::max_invocations, 128},
    };
    for (const Limit& limit : limits) {
        for (const bool enough : {true, false}) {
            FakeDevice device;
            device.*limit.member = limit.least - !enough;
            const FakeHost host(device);
            FoveaContext context = nullptr;
            Diag diag;
            EXPECT_EQ(foveaCreateContext(&host.host, &context, &diag), enough ? FOVEA_OK : FOVEA_UNSUPPORTED)
                << limit.field << ": " << diag.text;
            if (!enough) {
                EXPECT_STREQ(diag.field, limit.field);
            }
            foveaDestroyContext(context);
        }
    }
}

TEST(DeviceLimits, WorkgroupsAndAlignmentsAreRefusedByName) {
    const struct {
        const char* field;
        void (*edit)(FakeDevice&);
    } cases[] = {
        {"maxComputeWorkGroupCount[0]", [](FakeDevice& d) { d.max_group_counts[0] = 0; }},
        {"maxComputeWorkGroupCount[1]", [](FakeDevice& d) { d.max_group_counts[1] = 0; }},
        {"maxComputeWorkGroupCount[2]", [](FakeDevice& d) { d.max_group_counts[2] = 0; }},
        {"maxComputeWorkGroupSize[0]", [](FakeDevice& d) { d.max_group_sizes[0] = 127; }},
        {"maxComputeWorkGroupSize[1]", [](FakeDevice& d) { d.max_group_sizes[1] = 0; }},
        {"maxComputeWorkGroupSize[2]", [](FakeDevice& d) { d.max_group_sizes[2] = 0; }},
        {"minStorageBufferOffsetAlignment", [](FakeDevice& d) { d.offset_alignment = 512; }},
        {"minStorageBufferOffsetAlignment", [](FakeDevice& d) { d.offset_alignment = 24; }},
    };
    for (const auto& c : cases) {
        FakeDevice device;
        c.edit(device);
        const FakeHost host(device);
        FoveaContext context = nullptr;
        Diag diag;
        EXPECT_EQ(foveaCreateContext(&host.host, &context, &diag), FOVEA_UNSUPPORTED) << c.field;
        EXPECT_STREQ(diag.field, c.field);
        EXPECT_EQ(context, nullptr);
    }
}

FoveaDeviceProperties properties_of(const FakeHost& host, FoveaContext& context) {
    Diag diag;
    EXPECT_EQ(foveaCreateContext(&host.host, &context, &diag), FOVEA_OK) << diag.text;
    return host.properties(context);
}

// The smallest of the four limits that bound a shader's storage buffers is the one that counts.
TEST(DeviceLimits, EveryLimitOfStorageBuffersCounts) {
    uint32_t FakeDevice::*const members[] = {&FakeDevice::max_stage_buffers, &FakeDevice::max_stage_resources,
                                             &FakeDevice::max_set_buffers, &FakeDevice::max_push_descriptors};
    for (uint32_t FakeDevice::*member : members) {
        FakeDevice device;
        device.*member = 5;
        for (const bool push : {true, false}) {
            const FakeHost host(device, push);
            FoveaContext context = nullptr;
            const uint32_t expected = member == &FakeDevice::max_push_descriptors && !push ? 16u : 5u;
            EXPECT_EQ(properties_of(host, context).max_storage_buffers, expected);
            foveaDestroyContext(context);
        }
    }
}

// A call that has every optional input at once.
FoveaAttentionDesc everything(FoveaKernel kernel) {
    FoveaAttentionDesc call = Attention().batch(2).heads(2).lengths(40, 50).dims(32).kernel(kernel).desc;
    call.flags |= FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS | FOVEA_FLAG_VARLEN, call.align = FOVEA_ALIGN_TOP_LEFT;
    call.mask.present = call.bias.present = call.dropout_mask.present = 1;
    call.mask.type = call.dropout_mask.type = FOVEA_U8;
    call.dropout_p = 0.5f;
    call.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    return call;
}

// One limit after another, from the specification's minimum up: each plan is rejected by the limit's name, or
// made of shaders that keep to it and compiled.
TEST(DeviceLimits, PlansKeepToTheNumberOfStorageBuffersOrAreRefusedByName) {
    uint32_t served[2][FOVEA_KERNEL_FLASH + 1] = {};  // the least number of buffers that was enough
    for (uint32_t buffers = 4; buffers <= 16; ++buffers) {
        FakeDevice device;
        device.max_stage_buffers = buffers;
        const FakeHost host(device);
        FoveaContext context = nullptr;
        const FoveaDeviceProperties properties = properties_of(host, context);
        for (const FoveaKernel kernel : {FOVEA_KERNEL_AUTO, FOVEA_KERNEL_FLASH, FOVEA_KERNEL_STAGED}) {
            for (const bool all : {false, true}) {
                const FoveaAttentionDesc call =
                    all ? everything(kernel)
                        : Attention().batch(1).heads(2).lengths(40, 50).dims(32).kernel(kernel).desc;
                FoveaPlan handle = nullptr;
                Diag diag;
                const FoveaResult code = foveaPlanAttention(&properties, &call, nullptr, &handle, &diag);
                const Plan plan(handle);
                uint32_t& least = served[all][kernel];
                if (code != FOVEA_OK) {
                    EXPECT_EQ(least, 0u) << "fewer buffers were enough";
                    EXPECT_EQ(code, FOVEA_LIMIT_EXCEEDED) << diag.text;
                    EXPECT_STREQ(diag.field, "properties.max_storage_buffers");
                    EXPECT_NE(std::string(diag.text).find("is " + std::to_string(buffers)), std::string::npos)
                        << diag.text;
                    continue;
                }
                least = least ? least : buffers;
                FoveaDispatch dispatches[16];
                uint32_t count = 16;
                ASSERT_EQ(foveaGetDispatches(handle, 0, dispatches, &count, &diag), FOVEA_OK);
                for (uint32_t i = 0; i < count; ++i) EXPECT_LE(dispatches[i].binding_count, buffers);
                EXPECT_EQ(foveaCompilePlan(context, handle, &diag), FOVEA_OK) << diag.text;
            }
        }
        foveaDestroyContext(context);
    }
    for (const FoveaKernel kernel : {FOVEA_KERNEL_AUTO, FOVEA_KERNEL_FLASH, FOVEA_KERNEL_STAGED})
        EXPECT_EQ(served[false][kernel], 4u) << foveaKernelName(kernel);
    EXPECT_EQ(served[true][FOVEA_KERNEL_FLASH], 6u);  // not gathered: q, k, v, o, lse, parameters
    EXPECT_EQ(served[true][FOVEA_KERNEL_STAGED], 5u);
    EXPECT_EQ(served[true][FOVEA_KERNEL_AUTO], 5u);
}

// A kernel that was planned and found to bind too much must not affect the plan of the next.
TEST(DeviceLimits, TheNextKernelIsPlannedAsIfItHadBeenAskedFor) {
    FakeDevice device;
    device.max_stage_buffers = 5;  // one fewer than flash binds
    const FakeHost host(device);
    FoveaContext context = nullptr;
    const FoveaDeviceProperties properties = properties_of(host, context);
    const auto plan_of = [&](FoveaKernel kernel) {
        Result<Plan> plan = plan_attention(properties, everything(kernel));
        EXPECT_TRUE(plan) << plan.error().text;
        return std::move(*plan);
    };
    const Plan chosen = plan_of(FOVEA_KERNEL_AUTO), named = plan_of(FOVEA_KERNEL_STAGED);
    ASSERT_EQ(chosen.info().kernel, FOVEA_KERNEL_STAGED);
    EXPECT_NE(chosen.explain().find("properties.max_storage_buffers is 5"), std::string::npos)
        << chosen.explain();
    EXPECT_EQ(chosen.info().workspace_bytes, named.info().workspace_bytes);
    EXPECT_EQ(chosen.info().slice_count, named.info().slice_count);
    FoveaDispatch a[16] = {}, b[16] = {};
    uint32_t a_count = 16, b_count = 16;
    ASSERT_EQ(foveaGetDispatches(chosen.get(), 0, a, &a_count, nullptr), FOVEA_OK);
    ASSERT_EQ(foveaGetDispatches(named.get(), 0, b, &b_count, nullptr), FOVEA_OK);
    ASSERT_EQ(a_count, b_count);
    EXPECT_EQ(memcmp(a, b, sizeof(FoveaDispatch) * a_count), 0);
    foveaDestroyContext(context);
}

// A plan made with properties of another device, or without the number, meets the device's own when it is
// compiled.
TEST(DeviceLimits, CompilingRefusesMoreBuffersThanTheDeviceTakes) {
    FakeDevice device;
    device.max_stage_buffers = 4;
    const FakeHost host(device);
    FoveaContext context = nullptr;
    FoveaDeviceProperties properties = properties_of(host, context);
    properties.max_storage_buffers = 0;
    const Result<Plan> plan = plan_attention(properties, Attention()
                                                             .batch(1)
                                                             .heads(2)
                                                             .lengths(40, 50)
                                                             .dims(32)
                                                             .kernel(FOVEA_KERNEL_FLASH)
                                                             .outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE));
    ASSERT_TRUE(plan) << plan.error().text;
    Diag diag;
    EXPECT_EQ(foveaCompilePlan(context, plan->get(), &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "properties.max_storage_buffers");
    EXPECT_EQ(host.vulkan.count("vkCreatePipelineLayout"), 0u);
    foveaDestroyContext(context);
}

// The version of the instance shows in what the device's getter gives.
TEST(DeviceLimits, AVersionAboveTheInstancesIsRefused) {
    FakeDevice device;
    device.api_version = VK_API_VERSION_1_3;
    for (const uint32_t instance : {VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3}) {
        for (const uint32_t said :
             {VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3, VK_API_VERSION_1_4}) {
            device.instance_version = instance;
            FakeHost host(device);
            host.host.api_version = said;
            FoveaContext context = nullptr;
            Diag diag;
            const FoveaResult code = foveaCreateContext(&host.host, &context, &diag);
            // A version beyond the device's own cannot be detected, and is not used.
            const bool seen = std::min<uint32_t>(said, device.api_version) > instance;
            EXPECT_EQ(code, seen ? FOVEA_INVALID_ARGUMENT : FOVEA_OK) << diag.text;
            if (seen) {
                EXPECT_STREQ(diag.field, "api_version");
            }
            foveaDestroyContext(context);
        }
    }
}

TEST(DeviceLimits, UnknownFeaturesInPropertiesAreRefused) {
    const FakeHost host;
    FoveaContext context = nullptr;
    FoveaDeviceProperties properties = properties_of(host, context);
    properties.features |= 1u << 30;
    Diag diag;
    FoveaPlan plan = nullptr;
    const FoveaAttentionDesc call = Attention().batch(1).heads(2).lengths(40, 50).dims(32).desc;
    EXPECT_EQ(foveaPlanAttention(&properties, &call, nullptr, &plan, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "properties.features");
    foveaDestroyContext(context);
}

}  // namespace
}  // namespace fovea::test

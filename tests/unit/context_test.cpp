// Contexts on the fake Vulkan table: what a device must have, what the properties say, what is cleaned up.
#include "unit/fake_host.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace fovea::test {
namespace {

struct Created {
    FoveaResult code;
    Diag diag;
    FoveaContext context = nullptr;
};
Created create(const FakeHost& host) {
    Created out;
    out.code = foveaCreateContext(&host.host, &out.context, &out.diag);
    return out;
}

TEST(Context, ReportsWhatTheHostEnabled) {
    FakeHost host;
    const Created made = create(host);
    ASSERT_EQ(made.code, FOVEA_OK) << made.diag.text;
    const FoveaDeviceProperties properties = host.properties(made.context);
    EXPECT_EQ(properties.backend, FOVEA_BACKEND_VULKAN);
    EXPECT_EQ(properties.device_class, FOVEA_CLASS_INTEGRATED);
    EXPECT_EQ(properties.features, FOVEA_FEATURE_F16_STORAGE | FOVEA_FEATURE_F16_ARITHMETIC |
                                       FOVEA_FEATURE_SUBGROUP_ARITHMETIC | FOVEA_FEATURE_SUBGROUP_SHUFFLE |
                                       FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL | FOVEA_FEATURE_COOPMAT |
                                       FOVEA_FEATURE_PUSH_DESCRIPTORS | FOVEA_FEATURE_TIMESTAMPS);
    EXPECT_EQ(properties.max_workgroup_invocations, 256u);
    EXPECT_EQ(properties.min_subgroup_size, 16u);
    EXPECT_EQ(properties.max_subgroup_size, 64u);
    EXPECT_EQ(properties.storage_offset_alignment, 256u);
    EXPECT_EQ(properties.core_count, 20u);
    // 16x16x16 with f32 sums comes before the larger one, and before the one with f16 sums.
    EXPECT_EQ(properties.coopmat_m, 16u);
    EXPECT_EQ(properties.coopmat_k, 16u);
    foveaDestroyContext(made.context);
    EXPECT_EQ(host.vulkan.live_objects(), 0u);
    EXPECT_EQ(host.vulkan.live_allocations(), 0u);
    EXPECT_EQ(host.memory.live(), 0u);
    EXPECT_EQ(host.vulkan.mistakes(), std::vector<std::string>{});
}

TEST(Context, TakesNoMatricesWhoseSumsAreRounded) {
    FakeDevice device;
    device.matrix_shapes = {{8, 8, 8, VK_COMPONENT_TYPE_FLOAT32_KHR},
                            {16, 16, 16, VK_COMPONENT_TYPE_FLOAT16_KHR}};
    FakeHost host(device);
    FoveaContext context = nullptr;
    ASSERT_EQ(foveaCreateContext(&host.host, &context, nullptr), FOVEA_OK);
    EXPECT_EQ(host.properties(context).coopmat_m, 8u);
    foveaDestroyContext(context);
}

// bfloat16 operands count in the shape that float16 has here, if the application enabled them.
TEST(Context, TakesBfloat16InTheShapeOfFloat16) {
    const auto features_with = [](uint32_t rows, bool enabled, VkComponentTypeKHR sum) {
        FakeDevice device;
        device.extensions.push_back("VK_KHR_shader_bfloat16");
        device.bfloat16 = true;
        device.matrix_shapes.push_back({rows, 16, 16, sum, VK_COMPONENT_TYPE_BFLOAT16_KHR});
        FakeHost host(device);
        if (!enabled) --host.host.enabled_extension_count;  // it is the last
        FoveaContext context = nullptr;
        EXPECT_EQ(foveaCreateContext(&host.host, &context, nullptr), FOVEA_OK);
        const FoveaDeviceProperties properties = host.properties(context);
        foveaDestroyContext(context);
        EXPECT_EQ(properties.coopmat_m, 16u);
        const uint32_t bit = FOVEA_FEATURE_BF16_INPUTS;
        return std::pair{(properties.features & bit) != 0, (properties.features_not_enabled & bit) != 0};
    };
    constexpr auto kF32 = VK_COMPONENT_TYPE_FLOAT32_KHR;
    EXPECT_EQ(features_with(16, true, kF32), std::pair(true, false));
    EXPECT_EQ(features_with(16, false, kF32), std::pair(false, true));
    EXPECT_EQ(features_with(8, true, kF32), std::pair(false, false));
    EXPECT_EQ(features_with(16, true, VK_COMPONENT_TYPE_BFLOAT16_KHR), std::pair(false, false));
}

TEST(Context, TakesTheFlexibleMatricesOfTheSmallestWorkgroup) {
    FakeDevice device;
    device.extensions.push_back("VK_NV_cooperative_matrix2");
    device.coopmat2 = true;
    for (const bool workgroups : {false, true}) {
        device.workgroup_matrices = workgroups;
        FakeHost host(device);
        const Created made = create(host);
        ASSERT_EQ(made.code, FOVEA_OK) << made.diag.text;
        const FoveaDeviceProperties properties = host.properties(made.context);
        EXPECT_TRUE(properties.features & FOVEA_FEATURE_COOPMAT2);
        EXPECT_EQ(properties.coopmat2_threads, workgroups ? 128u : 0u);
        EXPECT_EQ(properties.coopmat2_m, workgroups ? 32u : 16u);
        EXPECT_EQ(properties.coopmat2_n, workgroups ? 16u : 8u);
        EXPECT_EQ(properties.coopmat2_k, 16u);
        EXPECT_EQ(properties.coopmat2_max_side, 1024u);
        EXPECT_EQ(properties.coopmat2_reserved_bytes, 512u);
        foveaDestroyContext(made.context);
        EXPECT_EQ(host.memory.live(), 0u);
    }
    FakeHost silent(device);
    silent.host.enabled_extension_count = 0;
    const Created made = create(silent);
    ASSERT_EQ(made.code, FOVEA_OK) << made.diag.text;
    const FoveaDeviceProperties properties = silent.properties(made.context);
    EXPECT_FALSE(properties.features & FOVEA_FEATURE_COOPMAT2);
    EXPECT_EQ(properties.coopmat2_m + properties.coopmat2_max_side + properties.coopmat2_reserved_bytes, 0u);
    foveaDestroyContext(made.context);
}

TEST(Context, CountsOnlyWhatWasEnabled) {
    FakeHost host;
    host.host.enabled_features = nullptr;
    host.host.enabled_extension_count = 0;
    const Created made = create(host);
    ASSERT_EQ(made.code, FOVEA_OK) << made.diag.text;
    const FoveaDeviceProperties properties = host.properties(made.context);
    EXPECT_EQ(properties.features, FOVEA_FEATURE_SUBGROUP_ARITHMETIC | FOVEA_FEATURE_SUBGROUP_SHUFFLE |
                                       FOVEA_FEATURE_TIMESTAMPS | FOVEA_FEATURE_DEVICE_ATOMICS);
    EXPECT_EQ(properties.coopmat_m, 0u);
    foveaDestroyContext(made.context);
}

TEST(Context, DoesNotBelieveInFeaturesThatTheDeviceLacks) {
    FakeDevice device;
    FakeHost host(device);
    // The host says it enabled float16, but the device has none: the chain was built by mistake.
    FakeDevice lacking = device;
    lacking.float16 = lacking.storage_16bit = lacking.coopmat = false;
    FakeHost other(lacking);
    other.host.enabled_features = host.host.enabled_features;
    const Created made = create(other);
    ASSERT_EQ(made.code, FOVEA_OK);
    EXPECT_EQ(other.properties(made.context).features &
                  (FOVEA_FEATURE_F16_ARITHMETIC | FOVEA_FEATURE_F16_STORAGE | FOVEA_FEATURE_COOPMAT),
              0u);
    foveaDestroyContext(made.context);
}

// A struct in the chain counts only if its extension was enabled or its core version is reached.
TEST(Context, CountsNoFeatureWithoutItsExtensionOrVersion) {
    FakeDevice device;
    device.api_version = VK_API_VERSION_1_1;
    device.extensions.push_back("VK_KHR_shader_float16_int8");
    FakeHost host(device);
    host.host.api_version = VK_API_VERSION_1_1;
    host.host.enabled_extension_count = 0;
    const Created made = create(host);
    ASSERT_EQ(made.code, FOVEA_OK) << made.diag.text;
    const uint32_t features = host.properties(made.context).features;
    EXPECT_FALSE(features & FOVEA_FEATURE_F16_ARITHMETIC);
    EXPECT_FALSE(features & FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL);
    EXPECT_FALSE(features & FOVEA_FEATURE_COOPMAT);
    EXPECT_FALSE(features & FOVEA_FEATURE_PUSH_DESCRIPTORS);
    foveaDestroyContext(made.context);
}

TEST(Context, ReadsFeaturesFromCoreVersionStructs) {
    FakeHost host;
    VkPhysicalDeviceVulkan12Features core12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    core12.shaderFloat16 = VK_TRUE;
    VkPhysicalDeviceVulkan11Features core11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &core12};
    core11.storageBuffer16BitAccess = VK_TRUE;
    const VkPhysicalDeviceFeatures2 root{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &core11};
    host.host.enabled_features = &root;
    const Created made = create(host);
    ASSERT_EQ(made.code, FOVEA_OK);
    const uint32_t features = host.properties(made.context).features;
    EXPECT_TRUE(features & FOVEA_FEATURE_F16_STORAGE);
    EXPECT_TRUE(features & FOVEA_FEATURE_F16_ARITHMETIC);
    EXPECT_FALSE(features & FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL);
    foveaDestroyContext(made.context);
}

struct BadHost {
    const char* name;
    std::function<void(FakeDevice&)> device;
    std::function<void(FoveaVulkanDevice&)> host;
    FoveaResult code;
    const char* field;
};

TEST(Context, RefusesWithTheReason) {
    static const char* const kNullName[] = {nullptr};
    const BadHost table[] = {
        {"no instance", {}, [](auto& h) { h.instance = nullptr; }, FOVEA_INVALID_ARGUMENT, "instance"},
        {"no device", {}, [](auto& h) { h.device = nullptr; }, FOVEA_INVALID_ARGUMENT, "device"},
        {"no physical device",
         {},
         [](auto& h) { h.physical_device = nullptr; },
         FOVEA_INVALID_ARGUMENT,
         "physical_device"},
        {"no getter",
         {},
         [](auto& h) { h.get_instance_proc_addr = nullptr; },
         FOVEA_INVALID_ARGUMENT,
         "get_instance_proc_addr"},
        {"flags", {}, [](auto& h) { h.flags = 1; }, FOVEA_INVALID_ARGUMENT, "flags"},
        {"no size", {}, [](auto& h) { h.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
        {"no names",
         {},
         [](auto& h) { h.enabled_extensions = nullptr; },
         FOVEA_INVALID_ARGUMENT,
         "enabled_extensions"},
        {"null name",
         {},
         [](auto& h) {
             h.enabled_extensions = kNullName;
             h.enabled_extension_count = 1;
         },
         FOVEA_INVALID_ARGUMENT,
         "enabled_extensions"},
        {"host 1.0",
         {},
         [](auto& h) { h.api_version = VK_API_VERSION_1_0; },
         FOVEA_UNSUPPORTED,
         "api_version"},
        {"device 1.0",
         [](auto& d) { d.api_version = VK_API_VERSION_1_0; },
         {},
         FOVEA_UNSUPPORTED,
         "apiVersion"},
        {"64 invocations",
         [](auto& d) { d.max_invocations = 64; },
         {},
         FOVEA_UNSUPPORTED,
         "maxComputeWorkGroupInvocations"},
        {"8 KiB",
         [](auto& d) { d.max_shared_bytes = 8192; },
         {},
         FOVEA_UNSUPPORTED,
         "maxComputeSharedMemorySize"},
        {"64 B push", [](auto& d) { d.max_push_bytes = 64; }, {}, FOVEA_UNSUPPORTED, "maxPushConstantsSize"},
        {"no compute",
         [](auto& d) { d.queue_flags = VK_QUEUE_TRANSFER_BIT; },
         {},
         FOVEA_UNSUPPORTED,
         "queueFlags"},
    };
    for (const BadHost& bad : table) {
        FakeDevice device;
        if (bad.device) bad.device(device);
        FakeHost host(device);
        if (bad.host) bad.host(host.host);
        const Created made = create(host);
        EXPECT_EQ(made.code, bad.code) << bad.name << ": " << made.diag.text;
        EXPECT_STREQ(made.diag.field, bad.field) << bad.name;
        EXPECT_EQ(made.context, nullptr) << bad.name;
        EXPECT_EQ(host.memory.live(), 0u) << bad.name;
        EXPECT_EQ(host.vulkan.live_objects(), 0u) << bad.name;
    }
}

TEST(Context, RefusesHalfAnAllocator) {
    FakeHost host;
    const FoveaHostAllocator half{nullptr, host.allocator()->allocate, nullptr};
    host.host.host_allocator = &half;
    const Created made = create(host);
    EXPECT_EQ(made.code, FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(made.diag.field, "allocator.release");
}

TEST(Context, NamesEachFunctionThatTheGettersLack) {
    const char* const needed[] = {"vkGetPhysicalDeviceProperties",
                                  "vkGetPhysicalDeviceFeatures2",
                                  "vkEnumerateDeviceExtensionProperties",
                                  "vkCreatePipelineCache",
                                  "vkCreateComputePipelines",
                                  "vkDestroyPipeline",
                                  "vkCmdDispatch",
                                  "vkCmdPipelineBarrier",
                                  "vkCmdPushDescriptorSetKHR"};
    for (const char* name : needed) {
        FakeHost host;
        host.vulkan.hide(name);
        const Created made = create(host);
        EXPECT_EQ(made.code, FOVEA_UNSUPPORTED) << name;
        EXPECT_STREQ(made.diag.field, name);
        EXPECT_EQ(host.memory.live(), 0u) << name;
        EXPECT_EQ(host.vulkan.live_objects(), 0u) << name;
    }
}

TEST(Context, AsksTheInstanceForTheDeviceGetter) {
    FakeHost host;
    host.host.get_device_proc_addr = nullptr;
    const Created made = create(host);
    EXPECT_EQ(made.code, FOVEA_OK) << made.diag.text;
    foveaDestroyContext(made.context);
    host.vulkan.hide("vkGetDeviceProcAddr");
    EXPECT_EQ(create(host).code, FOVEA_INVALID_ARGUMENT);
}

// A plan may ask for less than the device has and never for more; offsets in steps of more bytes, never of
// fewer.
TEST(Context, CompilesAPlanForALesserDeviceAndNoPlanForAGreaterOne) {
    FakeDevice lenient;
    lenient.offset_alignment = 64;
    lenient.max_group_counts[0] += 2, lenient.max_group_counts[1] += 1;  // each axis has its own
    FakeHost host(lenient);
    const Created made = create(host);
    ASSERT_EQ(made.code, FOVEA_OK) << made.diag.text;
    const FoveaDeviceProperties device = host.properties(made.context);
    const struct {
        const char* field;
        std::function<void(FoveaDeviceProperties&, bool)> change;  // to more than the device has, or to less
    } kLimits[] = {
        {"properties.max_workgroup_invocations",
         [](auto& f, bool more) {
             f.max_workgroup_invocations = more ? f.max_workgroup_invocations + 1 : 128;
         }},
        {"properties.max_shared_bytes",
         [](auto& f, bool more) { f.max_shared_bytes = more ? f.max_shared_bytes + 1 : 16384; }},
        {"properties.max_push_bytes",
         [](auto& f, bool more) { f.max_push_bytes = more ? f.max_push_bytes + 1 : 128; }},
        {"properties.max_workgroup_count[0]",
         [](auto& f, bool more) { f.max_workgroup_count[0] += more ? 1 : uint32_t(-1); }},
        {"properties.max_workgroup_count[1]",
         [](auto& f, bool more) { f.max_workgroup_count[1] += more ? 1 : uint32_t(-1); }},
        {"properties.max_workgroup_count[2]",
         [](auto& f, bool more) { f.max_workgroup_count[2] += more ? 1 : uint32_t(-1); }},
        {"properties.max_storage_range",
         [](auto& f, bool more) { f.max_storage_range += more ? 1 : uint64_t(-4); }},
        {"properties.storage_offset_alignment",
         [](auto& f, bool more) {
             f.storage_offset_alignment =
                 more ? f.storage_offset_alignment / 2 : 2 * f.storage_offset_alignment;
         }},
    };
    for (const auto& limit : kLimits) {
        for (const bool more : {false, true}) {
            SCOPED_TRACE(std::string(limit.field) + (more ? " beyond the device" : " within the device"));
            FoveaDeviceProperties properties = device;
            limit.change(properties, more);
            const Result<Plan> plan = plan_attention(properties, sliced_attention());
            ASSERT_TRUE(plan) << plan.error().text;
            Diag diag;
            EXPECT_EQ(foveaCompilePlan(made.context, plan->get(), &diag),
                      more ? FOVEA_LIMIT_EXCEEDED : FOVEA_OK)
                << diag.text;
            if (more) {
                EXPECT_STREQ(diag.field, limit.field);
            }
        }
    }
    for (const uint32_t bit : {FOVEA_FEATURE_COOPMAT2, FOVEA_FEATURE_DEVICE_ATOMICS}) {
        FoveaDeviceProperties properties = device;
        ASSERT_FALSE(properties.features & bit);
        properties.features |= bit;
        const Result<Plan> plan = plan_attention(properties, sliced_attention());
        ASSERT_TRUE(plan) << plan.error().text;
        Diag diag;
        EXPECT_EQ(foveaCompilePlan(made.context, plan->get(), &diag), FOVEA_UNSUPPORTED);
        EXPECT_STREQ(diag.field, "properties.features");
    }
    foveaDestroyContext(made.context);
}

TEST(Context, UsesTheHostsPipelineCacheAndLeavesItAlone) {
    FakeHost host;
    host.host.pipeline_cache = (VkPipelineCache)0x77;
    const Created made = create(host);
    ASSERT_EQ(made.code, FOVEA_OK);
    EXPECT_EQ(host.vulkan.count("vkCreatePipelineCache"), 0u);
    foveaDestroyContext(made.context);
    EXPECT_EQ(host.vulkan.count("vkDestroyPipelineCache"), 0u);
    EXPECT_EQ(host.vulkan.mistakes(), std::vector<std::string>{});
}

TEST(Context, NullsAreHarmless) {
    foveaDestroyContext(nullptr);
    foveaCmdSliceBarrier(nullptr, nullptr);
    EXPECT_EQ(foveaPipelineCacheWasAccepted(nullptr), 0u);
    Diag diag;
    FoveaDeviceProperties properties{};
    size_t size = 0;
    EXPECT_EQ(foveaCreateContext(nullptr, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaContextProperties(nullptr, &properties, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaGetPipelineCacheData(nullptr, nullptr, &size, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaCompilePlan(nullptr, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaCmdRun(nullptr, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
}

TEST(RecommendedFeatures, ListsWhatIsThereAndWhatItBuys) {
    FakeHost host;
    FoveaRecommendedFeatures recommended{};
    recommended.struct_size = sizeof recommended;
    Diag diag;
    ASSERT_EQ(foveaQueryRecommendedFeatures(FakeVulkan::instance_getter(), host.vulkan.instance(),
                                            VK_API_VERSION_1_3, host.vulkan.physical_device(),
                                            host.allocator(), &recommended, &diag),
              FOVEA_OK)
        << diag.text;
    EXPECT_EQ(host.memory.live(), 0u);
    ASSERT_LE(recommended.count, uint32_t{FOVEA_MAX_RECOMMENDED_FEATURES});
    bool push = false, coopmat2 = false;
    for (uint32_t i = 0; i < recommended.count; ++i) {
        const FoveaRecommendedFeature& n = recommended.items[i];
        EXPECT_TRUE(n.extension || n.feature);
        EXPECT_NE(n.benefit, nullptr);
        EXPECT_EQ(n.required, 0u);
        const std::string extension = n.extension ? n.extension : "";
        push |= extension == "VK_KHR_push_descriptor" && n.available;
        coopmat2 |= extension == "VK_NV_cooperative_matrix2" && n.available;
    }
    EXPECT_TRUE(push);
    EXPECT_FALSE(coopmat2);
}

TEST(RecommendedFeatures, PushDescriptorsOfTheCoreNeedNoExtension) {
    for (const bool extension : {true, false}) {
        FakeDevice device;
        device.api_version = device.instance_version = VK_API_VERSION_1_4;
        device.core_push = true;
        if (!extension) device.extensions.erase(device.extensions.begin());
        FakeHost host(device);
        FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
        Diag diag;
        ASSERT_EQ(foveaQueryRecommendedFeatures(FakeVulkan::instance_getter(), host.vulkan.instance(),
                                                VK_API_VERSION_1_4, host.vulkan.physical_device(),
                                                host.allocator(), &recommended, &diag),
                  FOVEA_OK)
            << diag.text;
        const auto names = [&](const char* name) {
            return std::count_if(recommended.items, recommended.items + recommended.count,
                                 [&](const FoveaRecommendedFeature& item) {
                                     const char* own = item.extension ? item.extension : item.feature;
                                     return strcmp(own, name) == 0 && item.available;
                                 });
        };
        EXPECT_EQ(names("VK_KHR_push_descriptor"), extension);
        EXPECT_EQ(names("pushDescriptor"), !extension);
    }
}

TEST(RecommendedFeatures, RefusesBelowTheFloorAndNulls) {
    FakeDevice device;
    device.max_shared_bytes = 16383;
    FakeHost host(device);
    FoveaRecommendedFeatures recommended{};
    recommended.struct_size = sizeof recommended;
    Diag diag;
    const auto query = [&](VkInstance instance, VkPhysicalDevice physical_device) {
        return foveaQueryRecommendedFeatures(FakeVulkan::instance_getter(), instance, VK_API_VERSION_1_3,
                                             physical_device, nullptr, &recommended, &diag);
    };
    EXPECT_EQ(query(host.vulkan.instance(), host.vulkan.physical_device()), FOVEA_UNSUPPORTED);
    EXPECT_STREQ(diag.text, "fake device: maxComputeSharedMemorySize is 16383; at least 16384 is needed");
    EXPECT_EQ(query(nullptr, host.vulkan.physical_device()), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "instance");
    EXPECT_EQ(query(host.vulkan.instance(), nullptr), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "physical_device");
}

}  // namespace
}  // namespace fovea::test

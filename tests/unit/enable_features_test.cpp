// foveaEnableRecommendedFeatures: everything available is on, in the host's own structs where it has them,
// and a context made of the outcome has all the features that the device could give.
#include "support/number_types.hpp"
#include "unit/fake_host.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace fovea::test {
namespace {

FakeDevice rich_device() {
    FakeDevice device;
    device.extensions.insert(device.extensions.end(),
                             {"VK_NV_cooperative_matrix2", "VK_EXT_device_fault", "VK_KHR_portability_subset",
                              "VK_KHR_shader_bfloat16"});
    device.coopmat2 = device.workgroup_matrices = device.device_fault = device.memory_model_device_scope =
        device.bfloat16 = true;
    device.matrix_shapes.push_back(
        {16, 16, 16, VK_COMPONENT_TYPE_FLOAT32_KHR, VK_COMPONENT_TYPE_BFLOAT16_KHR});
    return device;
}

FoveaRecommendedFeatures needs_of(FakeHost& host, uint32_t api_version = VK_API_VERSION_1_3) {
    FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
    Diag diag;
    EXPECT_EQ(
        foveaQueryRecommendedFeatures(FakeVulkan::instance_getter(), host.vulkan.instance(), api_version,
                                      host.vulkan.physical_device(), nullptr, &recommended, &diag),
        FOVEA_OK)
        << diag.text;
    return recommended;
}

FoveaDeviceProperties properties_with(FakeHost& host, const FoveaEnabledFeatures& on,
                                      uint32_t api_version = VK_API_VERSION_1_3) {
    host.host.api_version = api_version;
    FoveaEnabledFeatures copy = on;  // has no pointer into what it was copied from
    host.host.enabled_features = foveaEnabledFeatures2(&copy);
    host.host.enabled_extensions = on.extensions;
    host.host.enabled_extension_count = on.extension_count;
    FoveaContext context = nullptr;
    Diag diag;
    EXPECT_EQ(foveaCreateContext(&host.host, &context, &diag), FOVEA_OK) << diag.text;
    const FoveaDeviceProperties properties = host.properties(context);
    foveaDestroyContext(context);
    return properties;
}

// Valid usage of VkDeviceCreateInfo: no struct twice, and no struct together with the core one that contains
// it.
std::set<VkStructureType> types_in(const VkPhysicalDeviceFeatures2* features) {
    std::set<VkStructureType> types;
    for (auto* item = static_cast<const VkBaseInStructure*>(features->pNext); item; item = item->pNext)
        EXPECT_TRUE(types.insert(item->sType).second) << "struct " << item->sType << " twice";
    return types;
}

TEST(EnableFeatures, TurnsOnAllThatTheDeviceHas) {
    FakeHost host(rich_device());
    const FoveaRecommendedFeatures recommended = needs_of(host);
    FoveaEnabledFeatures on = foveaEnabledFeatures();
    Diag diag;
    ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, &diag), FOVEA_OK) << diag.text;
    const FoveaDeviceProperties properties = properties_with(host, on);
    EXPECT_EQ(properties.features,
              FOVEA_FEATURE_F16_STORAGE | FOVEA_FEATURE_F16_ARITHMETIC | FOVEA_FEATURE_SUBGROUP_ARITHMETIC |
                  FOVEA_FEATURE_SUBGROUP_SHUFFLE | FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL |
                  FOVEA_FEATURE_COOPMAT | FOVEA_FEATURE_COOPMAT2 | FOVEA_FEATURE_PUSH_DESCRIPTORS |
                  FOVEA_FEATURE_TIMESTAMPS | FOVEA_FEATURE_DEVICE_ATOMICS | FOVEA_FEATURE_BF16_INPUTS);
    EXPECT_EQ(properties.features_not_enabled, 0u);
    const std::set<std::string> names(on.extensions, on.extensions + on.extension_count);
    EXPECT_EQ(names, (std::set<std::string>{"VK_KHR_push_descriptor", "VK_KHR_cooperative_matrix",
                                            "VK_NV_cooperative_matrix2", "VK_EXT_device_fault",
                                            "VK_KHR_portability_subset", "VK_KHR_shader_bfloat16"}));
    EXPECT_EQ(names.size(), on.extension_count);
    types_in(foveaEnabledFeatures2(&on));
    const uint32_t extensions = on.extension_count, room = on.room_used;
    ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, &diag), FOVEA_OK)
        << "a second time: " << diag.text;
    EXPECT_EQ(on.extension_count, extensions);
    EXPECT_EQ(on.room_used, room);
}

// A host compiled when 16 items were all: it gets those that it has room for, what is required among them.
TEST(EnableFeatures, AnOlderHostIsGivenNoMoreThanItHasRoomFor) {
    FakeHost host(rich_device());
    constexpr uint32_t kItems = 16;
    struct {
        FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
    } old;
    old.recommended.struct_size =
        uint32_t(offsetof(FoveaRecommendedFeatures, items) + kItems * sizeof(FoveaRecommendedFeature));
    Diag diag;
    ASSERT_EQ(foveaQueryRecommendedFeatures(FakeVulkan::instance_getter(), host.vulkan.instance(),
                                            VK_API_VERSION_1_3, host.vulkan.physical_device(), nullptr,
                                            &old.recommended, &diag),
              FOVEA_OK)
        << diag.text;
    EXPECT_EQ(old.recommended.count, kItems);
    EXPECT_EQ(old.recommended.items[kItems].benefit, nullptr) << "behind the host's struct";
    uint32_t required = 0;
    for (uint32_t i = 0; i < old.recommended.count; ++i) required += old.recommended.items[i].required;
    EXPECT_EQ(required, 1u);
    FoveaEnabledFeatures on = foveaEnabledFeatures();
    ASSERT_EQ(foveaEnableRecommendedFeatures(&old.recommended, &on, &diag), FOVEA_OK) << diag.text;
    const FoveaDeviceProperties properties = properties_with(host, on);
    EXPECT_EQ(properties.features_not_enabled, uint32_t{FOVEA_FEATURE_BF16_INPUTS});
    FoveaAttentionDesc desc = Attention().batch(1).heads(2).lengths(64, 64).dims(64).desc;
    desc.precision = FOVEA_PRECISION_BF16_INPUTS;
    desc.kernel = FOVEA_KERNEL_FLASH_COOPMAT;
    const Result<Plan> plan = plan_attention(properties, desc);
    ASSERT_FALSE(plan);
    EXPECT_NE(plan.error().text.find("the application did not enable shaderBFloat16Type and "
                                     "shaderBFloat16CooperativeMatrix"),
              std::string::npos)
        << plan.error().text;
}

TEST(EnableFeatures, NamesExtensionsWhereTheVersionHasThemNot) {
    FakeDevice device = rich_device();
    device.api_version = device.instance_version = VK_API_VERSION_1_1;
    device.extensions.insert(
        device.extensions.end(),
        {"VK_KHR_shader_float16_int8", "VK_KHR_vulkan_memory_model", "VK_EXT_subgroup_size_control"});
    FakeHost host(device);
    const FoveaRecommendedFeatures recommended = needs_of(host, VK_API_VERSION_1_1);
    FoveaEnabledFeatures on = foveaEnabledFeatures();
    ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, nullptr), FOVEA_OK);
    const FoveaDeviceProperties properties = properties_with(host, on, VK_API_VERSION_1_1);
    EXPECT_TRUE(properties.features & FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL);
    EXPECT_TRUE(properties.features & FOVEA_FEATURE_COOPMAT);
    EXPECT_FALSE(properties.features & FOVEA_FEATURE_COOPMAT2) << "its modules need Vulkan 1.3";
    const std::set<std::string> names(on.extensions, on.extensions + on.extension_count);
    EXPECT_TRUE(names.contains("VK_KHR_shader_float16_int8"));
    EXPECT_TRUE(names.contains("VK_EXT_subgroup_size_control"));
    EXPECT_TRUE(names.contains("VK_KHR_vulkan_memory_model"));
}

TEST(EnableFeatures, KeepsWhatTheHostEnabledAndUsesItsStructs) {
    FakeHost host(rich_device());
    const FoveaRecommendedFeatures recommended = needs_of(host);
    VkPhysicalDeviceVulkan13Features core13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    core13.dynamicRendering = VK_TRUE;
    VkPhysicalDeviceVulkan12Features core12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &core13};
    core12.timelineSemaphore = VK_TRUE;
    VkPhysicalDevice16BitStorageFeatures sixteen{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
                                                 &core12};
    sixteen.storagePushConstant16 = VK_TRUE;
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &sixteen};
    features.features.samplerAnisotropy = VK_TRUE;
    FoveaEnabledFeatures on = foveaEnabledFeatures();
    on.features = &features;
    on.extensions[on.extension_count++] = "VK_KHR_swapchain";
    on.extensions[on.extension_count++] = "VK_KHR_push_descriptor";
    Diag diag;
    ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, &diag), FOVEA_OK) << diag.text;
    EXPECT_EQ(on.features, &features);
    EXPECT_TRUE(features.features.samplerAnisotropy && core13.dynamicRendering && core12.timelineSemaphore &&
                sixteen.storagePushConstant16);
    EXPECT_TRUE(sixteen.storageBuffer16BitAccess && core12.shaderFloat16 && core12.vulkanMemoryModel &&
                core12.vulkanMemoryModelDeviceScope && core13.subgroupSizeControl &&
                core13.computeFullSubgroups && core13.maintenance4);
    const std::set<VkStructureType> types = types_in(foveaEnabledFeatures2(&on));
    for (const VkStructureType held : {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
                                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
                                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
                                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES})
        EXPECT_FALSE(types.contains(held)) << held << " beside the core struct that holds it";
    EXPECT_TRUE(types.contains(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR));
    EXPECT_STREQ(on.extensions[0], "VK_KHR_swapchain");
    EXPECT_EQ(std::count_if(on.extensions, on.extensions + on.extension_count,
                            [](const char* name) { return !strcmp(name, "VK_KHR_push_descriptor"); }),
              1);
    EXPECT_EQ(properties_with(host, on).features_not_enabled, 0u);
}

// Every pointer of a chain leads into the copy itself or to what the host owns, once the original is gone.
TEST(EnableFeatures, ACopyIsWhole) {
    FakeHost host(rich_device());
    const FoveaRecommendedFeatures recommended = needs_of(host);
    VkPhysicalDeviceVulkan12Features core12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2 own{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &core12};
    own.features.samplerAnisotropy = VK_TRUE;
    for (VkPhysicalDeviceFeatures2* features : {static_cast<VkPhysicalDeviceFeatures2*>(nullptr), &own}) {
        FoveaEnabledFeatures copy;
        {
            FoveaEnabledFeatures on = foveaEnabledFeatures();
            on.features = features;
            ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, nullptr), FOVEA_OK);
            foveaEnabledFeatures2(&on);
            copy = on;
            memset(static_cast<void*>(&on), 0xab, sizeof on);
        }
        const VkPhysicalDeviceFeatures2* found = foveaEnabledFeatures2(&copy);
        ASSERT_NE(found, nullptr);
        EXPECT_EQ(found->features.samplerAnisotropy, features ? VK_TRUE : VK_FALSE);
        const auto* begin = reinterpret_cast<const char*>(&copy);
        size_t items = 0;
        for (auto* item = reinterpret_cast<const VkBaseInStructure*>(found); item;
             item = item->pNext, ++items) {
            const auto* at = reinterpret_cast<const char*>(item);
            ASSERT_TRUE((at >= begin && at < begin + sizeof copy) || at == reinterpret_cast<char*>(&core12));
        }
        EXPECT_GT(items, 4u);
        EXPECT_EQ(core12.pNext, nullptr);
        EXPECT_EQ(properties_with(host, copy).features_not_enabled, 0u);
    }
    EXPECT_EQ(foveaEnabledFeatures2(nullptr), nullptr);
    FoveaEnabledFeatures untouched = foveaEnabledFeatures();
    EXPECT_EQ(foveaEnabledFeatures2(&untouched), nullptr);
}

TEST(EnableFeatures, ADeviceWithNothingNeedsNothing) {
    FakeDevice device;
    device.api_version = device.instance_version = VK_API_VERSION_1_1;
    device.extensions.clear();
    device.storage_16bit = device.float16 = device.subgroup_size_control = device.memory_model =
        device.coopmat = false;
    FakeHost host(device);
    const FoveaRecommendedFeatures recommended = needs_of(host, VK_API_VERSION_1_1);
    FoveaEnabledFeatures on = foveaEnabledFeatures();
    ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, nullptr), FOVEA_OK);
    EXPECT_EQ(on.extension_count, 0u);
    ASSERT_NE(foveaEnabledFeatures2(&on), nullptr);
    EXPECT_EQ(foveaEnabledFeatures2(&on)->pNext, nullptr);
}

TEST(EnableFeatures, RefusesByNameAndChangesNothing) {
    FakeHost host(rich_device());
    const FoveaRecommendedFeatures recommended = needs_of(host);
    VkPhysicalDeviceFeatures2 wrong{};
    wrong.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    const struct {
        const char* field;
        FoveaResult code;
        void (*edit)(FoveaEnabledFeatures&);
    } cases[] = {
        {"struct_size", FOVEA_ABI_MISMATCH, [](FoveaEnabledFeatures& on) { on.struct_size = 8; }},
        {"extension_count", FOVEA_LIMIT_EXCEEDED, [](FoveaEnabledFeatures& on) { on.extension_count = 65; }},
        {"extensions", FOVEA_INVALID_ARGUMENT, [](FoveaEnabledFeatures& on) { on.extension_count = 1; }},
        {"room_used", FOVEA_INVALID_ARGUMENT, [](FoveaEnabledFeatures& on) { on.room_used = 500; }},
        {"room_used", FOVEA_LIMIT_EXCEEDED, [](FoveaEnabledFeatures& on) { on.room_used = 120; }},
        {"room_first", FOVEA_INVALID_ARGUMENT, [](FoveaEnabledFeatures& on) { on.room_first = 1; }},
        {"extension_count", FOVEA_LIMIT_EXCEEDED,
         [](FoveaEnabledFeatures& on) {
             for (const char*& name : on.extensions) name = "VK_a_name";
             on.extension_count = 63;
         }},
    };
    for (const auto& c : cases) {
        FoveaEnabledFeatures on = foveaEnabledFeatures();
        c.edit(on);
        const FoveaEnabledFeatures before = on;
        Diag diag;
        EXPECT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, &diag), c.code) << c.field;
        EXPECT_STREQ(diag.field, c.field);
        EXPECT_EQ(memcmp(&on, &before, sizeof on), 0) << c.field;
    }
    FoveaEnabledFeatures on = foveaEnabledFeatures();
    on.features = &wrong;
    Diag diag;
    EXPECT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "features.sType");
    EXPECT_EQ(foveaEnableRecommendedFeatures(nullptr, &on, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaEnableRecommendedFeatures(&recommended, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
    FoveaRecommendedFeatures unknown = recommended;
    unknown.items[0] = {nullptr, "aFeatureOfTomorrow", 0, 1, ""};
    on.features = nullptr;
    EXPECT_EQ(foveaEnableRecommendedFeatures(&unknown, &on, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "recommended.items");
    EXPECT_EQ(on.features, nullptr);
}

// The last word of the host's room serves, and one word less is rejected with nothing written.
TEST(EnableFeatures, FillsItsRoomToTheLastWord) {
    FakeHost host(rich_device());
    const FoveaRecommendedFeatures recommended = needs_of(host);
    VkPhysicalDeviceFeatures2 own{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    for (VkPhysicalDeviceFeatures2* features : {static_cast<VkPhysicalDeviceFeatures2*>(nullptr), &own}) {
        own.pNext = nullptr;
        FoveaEnabledFeatures on = foveaEnabledFeatures();
        on.features = features;
        ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, nullptr), FOVEA_OK);
        const uint32_t words = on.room_used;
        for (const uint32_t less : {0u, 1u}) {
            own.pNext = nullptr;
            FoveaEnabledFeatures tight = foveaEnabledFeatures();
            tight.features = features;
            tight.room_used = FOVEA_ENABLED_ROOM_WORDS - words + less;
            const FoveaEnabledFeatures before = tight;
            Diag diag;
            EXPECT_EQ(foveaEnableRecommendedFeatures(&recommended, &tight, &diag),
                      less ? FOVEA_LIMIT_EXCEEDED : FOVEA_OK)
                << diag.text;
            if (less) {
                EXPECT_EQ(memcmp(&tight, &before, sizeof tight), 0);
                EXPECT_EQ(own.pNext, nullptr);
            } else {
                EXPECT_EQ(tight.room_used, FOVEA_ENABLED_ROOM_WORDS);
            }
        }
    }
}

TEST(KernelsOfVulkan, AreCompiledForFlexibleMatricesOfTheDeviceOnly) {
    FakeHost host(rich_device());
    const FoveaRecommendedFeatures recommended = needs_of(host);
    FoveaEnabledFeatures on = foveaEnabledFeatures();
    ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, nullptr), FOVEA_OK);
    const FoveaDeviceProperties properties = properties_with(host, on);
    ASSERT_TRUE(properties.features & FOVEA_FEATURE_COOPMAT2);
    FoveaContext context = nullptr;
    host.host.enabled_features = foveaEnabledFeatures2(&on);
    ASSERT_EQ(foveaCreateContext(&host.host, &context, nullptr), FOVEA_OK);
    const FoveaAttentionDesc desc = Attention().batch(1).heads(2).lengths(64, 64).dims(32).desc;
    void (*const edits[])(FoveaDeviceProperties&) = {
        [](FoveaDeviceProperties& f) { f.coopmat2_m *= 2; },
        [](FoveaDeviceProperties& f) { f.coopmat2_n *= 2; },
        [](FoveaDeviceProperties& f) { f.coopmat2_k *= 2; },
        [](FoveaDeviceProperties& f) { f.coopmat2_threads += 64; },
        [](FoveaDeviceProperties& f) { f.coopmat2_max_side *= 2; },
    };
    for (const auto& edit : edits) {
        FoveaDeviceProperties other = properties;
        edit(other);
        FoveaPlan foreign = nullptr;
        Diag diag;
        ASSERT_EQ(foveaPlanAttention(&other, &desc, nullptr, &foreign, &diag), FOVEA_OK) << diag.text;
        EXPECT_EQ(foveaCompilePlan(context, foreign, &diag), FOVEA_UNSUPPORTED) << &edit - edits;
        EXPECT_STREQ(diag.field, "properties.coopmat2_m");
        foveaDestroyPlan(foreign);
    }
    foveaDestroyContext(context);
}

// Compares the header's statements about FoveaDtype's quantized types and row statistics with the kernels.
TEST(KernelsOfVulkan, ReadQuantizedCachesAndGiveRowStatisticsAsTheHeaderSays) {
    FakeHost host(rich_device());
    const FoveaRecommendedFeatures recommended = needs_of(host);
    FoveaEnabledFeatures on = foveaEnabledFeatures();
    ASSERT_EQ(foveaEnableRecommendedFeatures(&recommended, &on, nullptr), FOVEA_OK);
    const FoveaDeviceProperties properties = properties_with(host, on);
    const struct {
        FoveaKernel kernel;
        bool quantized, stats;
    } kernels[] = {{FOVEA_KERNEL_STAGED, false, true},
                   {FOVEA_KERNEL_FLASH, true, true},
                   {FOVEA_KERNEL_FLASH_COOPMAT, true, true},
                   {FOVEA_KERNEL_FLASH_COOPMAT2, true, false}};
    const auto plan = [&](FoveaKernel kernel, FoveaDtype type, uint32_t outputs) {
        FoveaAttentionDesc call = Attention().batch(1).heads(2).lengths(64, 64).dims(64).kernel(kernel).desc;
        call.k_type = call.v_type = type;
        call.outputs = outputs;
        call.precision = FOVEA_PRECISION_F16_INPUTS;
        return plan_attention(properties, call);
    };
    for (const auto& k : kernels) {
        SCOPED_TRACE(kernel_name(k.kernel));
        for (const FoveaDtype type : quantized_types()) {
            const Result<Plan> made = plan(k.kernel, type, FOVEA_OUTPUT_O);
            EXPECT_EQ(bool(made), k.quantized) << (made ? "" : made.error().text);
        }
        const Result<Plan> made = plan(k.kernel, FOVEA_F16, FOVEA_OUTPUT_O | FOVEA_OUTPUT_ROW_STATS);
        EXPECT_EQ(bool(made), k.stats) << (made ? "" : made.error().text);
    }
}

// The reason is the host where it is the host, and the device where it is the device.
TEST(EnableFeatures, ReasonsSayWhoLacksWhat) {
    const auto reason = [](const FoveaDeviceProperties& properties, FoveaKernel kernel) {
        FoveaAttentionDesc call = Attention().batch(1).heads(2).lengths(64, 64).dims(64).kernel(kernel).desc;
        call.precision = FOVEA_PRECISION_F16_INPUTS;
        const Result<Plan> plan = plan_attention(properties, call);
        return plan ? plan->explain() : plan.error().text;
    };
    const std::string host_did_not = "the application did not enable";
    FakeHost host;
    const FoveaEnabledFeatures nothing = foveaEnabledFeatures();
    const FoveaDeviceProperties off = properties_with(host, nothing);
    EXPECT_TRUE(off.features_not_enabled & FOVEA_FEATURE_COOPMAT);
    EXPECT_NE(reason(off, FOVEA_KERNEL_FLASH_COOPMAT).find(host_did_not), std::string::npos);
    EXPECT_NE(reason(off, FOVEA_KERNEL_FLASH).find(host_did_not + " subgroupSizeControl"), std::string::npos)
        << reason(off, FOVEA_KERNEL_FLASH);
    // Types that a device without 16-bit stores writes by atomics, and one without either refuses.
    const auto refusal_of_f16 = [](FoveaDeviceProperties properties) {
        properties.features &= ~FOVEA_FEATURE_DEVICE_ATOMICS;
        const Result<Plan> plan = plan_attention(
            properties, Attention().batch(1).heads(2).lengths(64, 64).dims(64).types(FOVEA_F16).desc);
        return plan ? std::string("accepted") : plan.error().text;
    };
    EXPECT_NE(refusal_of_f16(off).find(host_did_not + " storageBuffer16BitAccess"), std::string::npos)
        << refusal_of_f16(off);
    FakeDevice poor;
    poor.coopmat = poor.subgroup_size_control = poor.storage_16bit = false;
    FakeHost lacking(poor);
    const FoveaDeviceProperties none = properties_with(lacking, nothing);
    EXPECT_NE(reason(none, FOVEA_KERNEL_FLASH_COOPMAT).find("the device does not support"),
              std::string::npos);
    EXPECT_NE(reason(none, FOVEA_KERNEL_FLASH).find("the device does not support"), std::string::npos);
    EXPECT_NE(refusal_of_f16(none).find("the device needs storageBuffer16BitAccess"), std::string::npos);
    EXPECT_EQ(refusal_of_f16(none).find(host_did_not), std::string::npos) << refusal_of_f16(none);
}

}  // namespace
}  // namespace fovea::test

// Contexts and plans on a real driver: properties, pipeline cache, several devices at once.
#include "vulkan/gpu.hpp"

#include <fovea/runtime.hpp>

namespace fovea::test {
namespace {

FoveaAttentionDesc small_attention() {
    Attention call;
    call.batch(1).heads(4, 2).lengths(37, 53).dims(24, 20).causal(Align::bottom_right);
    return call.desc;
}

TEST(VulkanDevice, PropertiesAgreeWithTheDevicesLimits) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    const FoveaDeviceProperties properties = gpu.device->properties();
    const VkPhysicalDeviceLimits& limits = gpu.device->limits();
    EXPECT_EQ(properties.max_workgroup_invocations, limits.maxComputeWorkGroupInvocations);
    EXPECT_EQ(properties.max_storage_range, limits.maxStorageBufferRange);
    EXPECT_EQ(properties.storage_offset_alignment, limits.minStorageBufferOffsetAlignment);
    EXPECT_GT(properties.subgroup_size, 0u);
    EXPECT_LE(properties.min_subgroup_size, properties.max_subgroup_size);
    EXPECT_EQ(properties.vendor_id, gpu.device->vulkan_properties().vendorID);
    EXPECT_EQ((properties.features & FOVEA_FEATURE_COOPMAT) != 0, properties.coopmat_m != 0);
}

TEST(VulkanDevice, CacheBlobOfTheDriverComesBack) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    Diag diag;
    std::string blob;
    {
        Work work(gpu, small_attention());
        size_t size = 0;
        ASSERT_EQ(foveaGetPipelineCacheData(gpu.device->context(), nullptr, &size, &diag), FOVEA_OK)
            << diag.text;
        blob.resize(size);
        ASSERT_EQ(foveaGetPipelineCacheData(gpu.device->context(), blob.data(), &size, &diag), FOVEA_OK)
            << diag.text;
        blob.resize(size);
    }
    std::vector<float> first;
    for (const bool spoiled : {false, true}) {
        if (spoiled) blob[blob.size() / 2] ^= 1;
        FoveaVulkanDevice host = gpu.device->host();
        host.pipeline_cache_data = blob.data();
        host.pipeline_cache_size = blob.size();
        FoveaContext context = nullptr;
        ASSERT_EQ(foveaCreateContext(&host, &context, &diag), FOVEA_OK) << diag.text;
        EXPECT_EQ(foveaPipelineCacheWasAccepted(context), spoiled ? 0u : 1u);
        {
            Work work(gpu, small_attention(), context);
            gpu.submit([&](VkCommandBuffer cmd) { work.cmd(cmd); });
            if (first.empty()) first = work.output(FOVEA_BIND_O);
            EXPECT_TRUE(same_bits(first, work.output(FOVEA_BIND_O)));
        }
        foveaDestroyContext(context);
    }
}

TEST(VulkanDevice, TwoDevicesInOneProcess) {
    Gpu one, two;
    ASSERT_TRUE(one.ok() && two.ok());
    Work a(one, small_attention()), b(two, small_attention());
    one.submit([&](VkCommandBuffer cmd) { a.cmd(cmd); });
    two.submit([&](VkCommandBuffer cmd) { b.cmd(cmd); });
    EXPECT_TRUE(same_bits(a.output(FOVEA_BIND_O), b.output(FOVEA_BIND_O)));
    Diag diag;
    EXPECT_EQ(foveaCompilePlan(two.device->context(), a.plan.get(), &diag), FOVEA_INVALID_ARGUMENT);
}

TEST(VulkanDevice, ContextsComeAndGo) {
    Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    const FoveaVulkanDevice host = gpu.device->host();
    for (int i = 0; i < 1000; ++i) {
        FoveaContext context = nullptr;
        ASSERT_EQ(foveaCreateContext(&host, &context, nullptr), FOVEA_OK);
        foveaDestroyContext(context);
    }
}

TEST(VulkanDevice, IsListedAsUsable) {
    const std::vector<DeviceInfo> devices = list_devices(1);
    ASSERT_GE(devices.size(), 2u);
    EXPECT_EQ(devices[0].properties.backend, FOVEA_BACKEND_CPU);
    EXPECT_EQ(devices[1].number, 1u);
    EXPECT_TRUE(devices[1].usable) << devices[1].refusal;
    EXPECT_FALSE(devices[1].name.empty());
    EXPECT_NE(devices[1].driver.find("Vulkan 1."), std::string::npos) << devices[1].driver;
}

}  // namespace
}  // namespace fovea::test

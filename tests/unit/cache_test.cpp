// The wrapped pipeline cache: what goes to a host's disk comes back only if it is exactly what was written.
#include "unit/fake_host.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

namespace fovea::test {
namespace {

std::string cache_of(FoveaContext context) {
    Diag diag;
    size_t size = 0;
    EXPECT_EQ(foveaGetPipelineCacheData(context, nullptr, &size, &diag), FOVEA_OK) << diag.text;
    std::string data(size, '\0');
    EXPECT_EQ(foveaGetPipelineCacheData(context, data.data(), &size, &diag), FOVEA_OK) << diag.text;
    data.resize(size);
    return data;
}

// Was the blob handed to the driver?
bool accepted(const std::string& blob, const FakeDevice& device = {}) {
    FakeHost host(device);
    host.host.pipeline_cache_data = blob.data();
    host.host.pipeline_cache_size = blob.size();
    FoveaContext context = nullptr;
    EXPECT_EQ(foveaCreateContext(&host.host, &context, nullptr), FOVEA_OK);
    const bool accepted = foveaPipelineCacheWasAccepted(context) != 0;
    EXPECT_EQ(accepted, !host.vulkan.last_initial_cache_data().empty());
    foveaDestroyContext(context);
    return accepted;
}

std::string written_blob() {
    FakeHost host;
    host.vulkan.set_cache_payload(std::string(300, 'x') + std::string(3, '\0'));
    FoveaContext context = nullptr;
    EXPECT_EQ(foveaCreateContext(&host.host, &context, nullptr), FOVEA_OK);
    EXPECT_EQ(foveaPipelineCacheWasAccepted(context), 0u);
    std::string blob = cache_of(context);
    foveaDestroyContext(context);
    return blob;
}

TEST(PipelineCache, ComesBackUnchanged) {
    const std::string blob = written_blob();
    EXPECT_TRUE(accepted(blob));
    EXPECT_FALSE(accepted(std::string()));
}

TEST(PipelineCache, IgnoresAnyChangedByteAndAnyTruncation) {
    const std::string blob = written_blob();
    for (size_t i = 0; i < blob.size(); ++i) {
        for (const int flip : {0x01, 0x80, 0xff}) {
            std::string bad = blob;
            bad[i] = static_cast<char>(bad[i] ^ flip);
            EXPECT_FALSE(accepted(bad)) << "byte " << i << " ^ " << flip;
        }
        EXPECT_FALSE(accepted(blob.substr(0, i))) << "first " << i << " bytes";
    }
    EXPECT_FALSE(accepted(blob + '\0'));
    EXPECT_FALSE(accepted(blob + blob));
}

TEST(PipelineCache, IgnoresRandomFlips) {
    const std::string blob = written_blob();
    std::mt19937 random(1);
    for (int i = 0; i < 1000; ++i) {
        std::string bad = blob;
        for (uint32_t n = random() % 8 + 1; n; --n) bad[random() % bad.size()] ^= static_cast<char>(random());
        if (bad != blob) {
            EXPECT_FALSE(accepted(bad)) << "round " << i;
        }
    }
}

TEST(PipelineCache, IgnoresAnotherDeviceOrDriver) {
    const std::string blob = written_blob();
    FakeDevice other;
    other.driver_version += 1;
    EXPECT_FALSE(accepted(blob, other));
    other = {};
    other.device_id += 1;
    EXPECT_FALSE(accepted(blob, other));
    other = {};
    other.vendor_id += 1;
    EXPECT_FALSE(accepted(blob, other));
    other = {};
    other.cache_uuid[15] = 1;
    EXPECT_FALSE(accepted(blob, other));
}

// Ours says that nothing was changed since it was written; the driver's own says whose cache it is.
TEST(PipelineCache, IgnoresWhatTheDriversOwnHeaderDoesNotFit) {
    FakeHost host;
    host.vulkan.misname_cache_header();
    FoveaContext context = nullptr;
    ASSERT_EQ(foveaCreateContext(&host.host, &context, nullptr), FOVEA_OK);
    const std::string blob = cache_of(context);
    foveaDestroyContext(context);
    EXPECT_FALSE(accepted(blob));
}

TEST(PipelineCache, SaysWhatRoomItNeeds) {
    FakeHost host;
    FoveaContext context = nullptr;
    ASSERT_EQ(foveaCreateContext(&host.host, &context, nullptr), FOVEA_OK);
    Diag diag;
    size_t size = 0;
    ASSERT_EQ(foveaGetPipelineCacheData(context, nullptr, &size, &diag), FOVEA_OK);
    std::string data(size, '\0');
    const size_t needed = size;
    size = needed - 1;
    EXPECT_EQ(foveaGetPipelineCacheData(context, data.data(), &size, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "size");
    EXPECT_EQ(size, needed);
    EXPECT_EQ(foveaGetPipelineCacheData(context, nullptr, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
    foveaDestroyContext(context);
}

TEST(PipelineCache, IsNotWrittenInHalf) {
    FakeHost host;
    FoveaContext context = nullptr;
    ASSERT_EQ(foveaCreateContext(&host.host, &context, nullptr), FOVEA_OK);
    Diag diag;
    size_t size = 0;
    ASSERT_EQ(foveaGetPipelineCacheData(context, nullptr, &size, &diag), FOVEA_OK);
    std::string data(size, '\0');
    host.vulkan.grow_cache_between_calls();
    EXPECT_EQ(foveaGetPipelineCacheData(context, data.data(), &size, &diag), FOVEA_LIMIT_EXCEEDED);
    foveaDestroyContext(context);
}

}  // namespace
}  // namespace fovea::test

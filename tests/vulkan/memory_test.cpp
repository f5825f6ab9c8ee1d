// Memory that the CPU cannot access, which software drivers do not have: a wish opens the device as if it had
// no other, so that every byte goes through the staging buffer.
#include "vulkan/gpu.hpp"

#include <algorithm>

namespace fovea::test {
namespace {

DeviceWishes unmapped() {
    DeviceWishes wishes;
    wishes.mapped_memory = false;
    return wishes;
}

TEST(MemoryBudget, KeepsATenthFreeAndKnowsOfHeapsThatAreOverdrawn) {
    using runtime::fits_budget;
    EXPECT_TRUE(fits_budget(900, 0, 1000));
    EXPECT_FALSE(fits_budget(901, 0, 1000));
    EXPECT_TRUE(fits_budget(100, 800, 1000));
    EXPECT_FALSE(fits_budget(101, 800, 1000));
    EXPECT_TRUE(fits_budget(0, 900, 1000));
    for (const uint64_t usage : {uint64_t{901}, uint64_t{1000}, uint64_t{5000}, UINT64_MAX})
        EXPECT_FALSE(fits_budget(1, usage, 1000)) << usage << " bytes are in use";
    EXPECT_FALSE(fits_budget(UINT64_MAX, 1, 1000));
    EXPECT_FALSE(fits_budget(1, 0, 0));
}

TEST(VulkanStaging, BytesGoThereAndBackInSeveralParts) {
    Gpu gpu(unmapped());
    ASSERT_TRUE(gpu.ok());
    // More than one staging buffer (32 MiB) and no multiple of it, at an odd place.
    const std::vector<float> values = random_floats((9u << 20) + 5, 3);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    const std::unique_ptr<VulkanMemory> memory = gpu.memory(bytes.size() + 512);
    ASSERT_TRUE(memory->fill_zero());
    ASSERT_TRUE(memory->upload(bytes, 260));
    std::vector<std::byte> all(bytes.size() + 512, std::byte{1});
    ASSERT_TRUE(memory->download(all, 0));
    EXPECT_TRUE(std::all_of(all.begin(), all.begin() + 260, [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_EQ(memcmp(all.data() + 260, bytes.data(), bytes.size()), 0);
    EXPECT_TRUE(std::all_of(all.begin() + 260 + ptrdiff_t(bytes.size()), all.end(),
                            [](std::byte b) { return b == std::byte{0}; }));
    std::vector<std::byte> part(1000);
    ASSERT_TRUE(memory->download(part, 260 + (33u << 20)));
    EXPECT_EQ(memcmp(part.data(), bytes.data() + (33u << 20), part.size()), 0);
}

TEST(VulkanStaging, AttentionComesOutTheSame) {
    Gpu mapped, staged(unmapped());
    ASSERT_TRUE(mapped.ok() && staged.ok());
    const FoveaAttentionDesc desc =
        Attention().batch(2).heads(4, 2).lengths(33, 65).dims(24, 16).causal(Align::top_left).desc;
    Work a(mapped, desc), b(staged, desc);
    mapped.submit([&](VkCommandBuffer cmd) { a.cmd(cmd); });
    staged.submit([&](VkCommandBuffer cmd) { b.cmd(cmd); });
    EXPECT_TRUE(same_bits(a.output(FOVEA_BIND_O), b.output(FOVEA_BIND_O)));
    expect_close(b.output(FOVEA_BIND_O), b.expected(FOVEA_BIND_O), 2e-6f);
}

}  // namespace
}  // namespace fovea::test

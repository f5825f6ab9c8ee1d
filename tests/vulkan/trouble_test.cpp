// Lost devices and waits that run out: an error that names the work, at once and ever after, and a clean end.
#include "vulkan/gpu.hpp"

#include <algorithm>

namespace fovea::test {
namespace {

VKAPI_ATTR VkResult VKAPI_CALL lose_submission(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
    return VK_ERROR_DEVICE_LOST;
}
VKAPI_ATTR VkResult VKAPI_CALL lose_semaphore(VkDevice, const VkSemaphoreWaitInfo*, uint64_t) {
    return VK_ERROR_DEVICE_LOST;
}
VKAPI_ATTR VkResult VKAPI_CALL lose_fence(VkDevice, uint32_t, const VkFence*, VkBool32, uint64_t) {
    return VK_ERROR_DEVICE_LOST;
}
uint64_t longest_timeout;
VKAPI_ATTR VkResult VKAPI_CALL time_out_semaphore(VkDevice, const VkSemaphoreWaitInfo*, uint64_t timeout) {
    longest_timeout = std::max(longest_timeout, timeout);
    return VK_TIMEOUT;
}
VKAPI_ATTR VkResult VKAPI_CALL time_out_fence(VkDevice, uint32_t, const VkFence*, VkBool32,
                                              uint64_t timeout) {
    longest_timeout = std::max(longest_timeout, timeout);
    return VK_TIMEOUT;
}

void fill(const Gpu& gpu, VkCommandBuffer cmd, const VulkanMemory& memory) {
    gpu.device->vk().vkCmdFillBuffer(cmd, memory.buffer(), 0, VK_WHOLE_SIZE, 0);
}

class Trouble : public ::testing::TestWithParam<bool> {
  protected:
    static DeviceWishes wishes() {
        DeviceWishes wishes;
        wishes.timeline_semaphores = GetParam();
        wishes.device_fault = false;  // a device that is lost in play only must not be asked why
        return wishes;
    }
};

TEST_P(Trouble, LossAtSubmissionIsRememberedAndNamed) {
    Gpu gpu(wishes());
    ASSERT_TRUE(gpu.ok());
    const std::unique_ptr<VulkanMemory> memory = gpu.memory(4096);
    const auto real = gpu.calls().vkQueueSubmit;
    gpu.calls().vkQueueSubmit = lose_submission;
    const Result<void> lost = gpu.queue->run_once("slice 3 of kernel staged", 1,
                                                  [&](VkCommandBuffer cmd) { fill(gpu, cmd, *memory); });
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, FOVEA_DEVICE_LOST);
    EXPECT_NE(lost.error().text.find("during slice 3 of kernel staged"), std::string::npos)
        << lost.error().text;
    gpu.calls().vkQueueSubmit = real;
    const Result<runtime::Submission> again = gpu.queue->begin(1);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, FOVEA_DEVICE_LOST);
}

TEST_P(Trouble, LossAtWaitIsRememberedAndNamed) {
    Gpu gpu(wishes());
    ASSERT_TRUE(gpu.ok());
    const std::unique_ptr<VulkanMemory> memory = gpu.memory(4096);
    const runtime::DeviceCalls real = gpu.calls();
    gpu.calls().vkWaitSemaphores = lose_semaphore;
    gpu.calls().vkWaitForFences = lose_fence;
    const Result<void> lost =
        gpu.queue->run_once("a fill", 1, [&](VkCommandBuffer cmd) { fill(gpu, cmd, *memory); });
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, FOVEA_DEVICE_LOST);
    EXPECT_NE(lost.error().text.find("during a fill"), std::string::npos) << lost.error().text;
    EXPECT_FALSE(gpu.queue->finish(1));
    gpu.calls() = real;
    // This device is not really lost: let it finish before everything is destroyed.
    ASSERT_EQ(gpu.call<PFN_vkDeviceWaitIdle>("vkDeviceWaitIdle")(gpu.device->handle()), VK_SUCCESS);
}

TEST_P(Trouble, WaitsEndAndNothingInUseIsDestroyed) {
    Gpu gpu(wishes());
    ASSERT_TRUE(gpu.ok());
    std::unique_ptr<VulkanMemory> memory = gpu.memory(4096);
    const runtime::DeviceCalls real = gpu.calls();
    gpu.calls().vkWaitSemaphores = time_out_semaphore;
    gpu.calls().vkWaitForFences = time_out_fence;
    longest_timeout = 0;
    const Result<void> late =
        gpu.queue->run_once("slice 1 of 2", 0.25, [&](VkCommandBuffer cmd) { fill(gpu, cmd, *memory); });
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, FOVEA_TIMEOUT);
    EXPECT_NE(late.error().text.find("during slice 1 of 2"), std::string::npos) << late.error().text;
    if (gpu.device->properties().device_class == FOVEA_CLASS_CPU) {
        EXPECT_NE(late.error().text.find("compiles a pipeline in the first submission"), std::string::npos);
    }
    EXPECT_EQ(longest_timeout, 250000000u);
    EXPECT_EQ(gpu.queue->begin(1).error().code, FOVEA_TIMEOUT);
    EXPECT_TRUE(gpu.device->abandoned());
    memory.reset();  // the owner gives it up while the device may still write to it
    gpu.calls() = real;
    gpu.close();  // now the wait ends: everything goes, and the layer finds nothing to complain about
}

TEST_P(Trouble, NoWaitIsForEver) {
    Gpu gpu(wishes());
    ASSERT_TRUE(gpu.ok());
    const std::unique_ptr<VulkanMemory> memory = gpu.memory(4096);
    const runtime::DeviceCalls real = gpu.calls();
    gpu.calls().vkWaitSemaphores = time_out_semaphore;
    gpu.calls().vkWaitForFences = time_out_fence;
    longest_timeout = 0;
    static_cast<void>(
        gpu.queue->run_once("a fill", 1e300, [&](VkCommandBuffer cmd) { fill(gpu, cmd, *memory); }));
    EXPECT_GT(longest_timeout, 0u);
    EXPECT_LT(longest_timeout, UINT64_MAX / 2);
    gpu.calls() = real;
    gpu.queue->settle(300);
}

INSTANTIATE_TEST_SUITE_P(Waits, Trouble, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Timeline" : "Fence"; });

}  // namespace
}  // namespace fovea::test

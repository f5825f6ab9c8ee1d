// Zero validation messages mean something only if the layer speaks up when there is a bug. Each test plants
// one that a host or the recorder could make, and fails unless the layer reports it. What the layer reports
// it does not hand on: a driver may do anything with a buffer that is gone, crash included.
#include "vulkan/dispatch_player.hpp"
#include "vulkan/gpu.hpp"

#include <atomic>

namespace fovea::test {
namespace {

FoveaAttentionDesc sliced() {
    Attention call;
    call.batch(1).heads(2).lengths(64, 64).dims(16).kernel(FOVEA_KERNEL_STAGED);
    call.desc.max_slice_cost = 4e4;
    return call.desc;
}

// While it lives, the layer drops each call that it reports instead of passing it to the driver.
class ReportedCallsDropped {
  public:
    explicit ReportedCallsDropped(const runtime::Instance& instance) : instance_(instance) {
        VkDebugUtilsMessengerCreateInfoEXT create{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
        create.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
        create.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
        create.pfnUserCallback = drop;
        create.pUserData = &count_;
        EXPECT_EQ(call<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT")(
                      instance_.handle(), &create, nullptr, &messenger_),
                  VK_SUCCESS);
    }
    ~ReportedCallsDropped() {
        call<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(instance_.handle(),
                                                                                     messenger_, nullptr);
    }
    ReportedCallsDropped(const ReportedCallsDropped&) = delete;
    ReportedCallsDropped& operator=(const ReportedCallsDropped&) = delete;
    uint32_t count() const { return count_; }

  private:
    template <class Function>
    Function call(const char* name) const {
        return reinterpret_cast<Function>(instance_.get_proc()(instance_.handle(), name));
    }
    static VKAPI_ATTR VkBool32 VKAPI_CALL drop(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                               VkDebugUtilsMessageTypeFlagsEXT,
                                               const VkDebugUtilsMessengerCallbackDataEXT*, void* count) {
        ++*static_cast<std::atomic<uint32_t>*>(count);
        return VK_TRUE;
    }

    const runtime::Instance& instance_;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    std::atomic<uint32_t> count_ = 0;
};

class SeededBug : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(gpu.ok());
        work = std::make_unique<Work>(gpu, sliced());
        ASSERT_GT(work->info.slice_count, 1u);
        ASSERT_TRUE(work->info.slices_share_workspace);
        dropped = std::make_unique<ReportedCallsDropped>(*gpu.instance);
    }
    void TearDown() override {
        dropped.reset();
        work.reset();
    }
    // Work without the dropped call must not run; and the submission itself may be dropped.
    void submit(const std::function<void(VkCommandBuffer)>& recorded) const {
        Result<runtime::Submission> submission = gpu.queue->begin(300);
        ASSERT_TRUE(submission) << submission.error().text;
        recorded(submission->cmd);
        if (dropped->count()) return;
        if (!gpu.queue->submit("a bug", false, nullptr)) return;
        EXPECT_TRUE(gpu.queue->finish(300));
    }
    // One of the messages must hold this word; all are then forgotten.
    void expect_message(const char* word) {
        const std::vector<std::string> messages = gpu.take_messages();
        bool found = false;
        for (const std::string& m : messages) found |= m.find(word) != std::string::npos;
        EXPECT_TRUE(found) << "the validation layer did not report this bug (" << word << "); it sent "
                           << messages.size() << " messages" << (messages.empty() ? "" : ": " + messages[0]);
    }
    void record(VkCommandBuffer cmd) {
        work->record.cmd = cmd;
        Diag diag;
        EXPECT_EQ(foveaCmdRun(work->plan.get(), &work->record, &diag), FOVEA_OK) << diag.text;
    }

    Gpu gpu;
    std::unique_ptr<Work> work;
    std::unique_ptr<ReportedCallsDropped> dropped;
};

TEST_F(SeededBug, NoneInTheSoundProgram) {
    gpu.submit([&](VkCommandBuffer cmd) { work->cmd(cmd); });
    EXPECT_EQ(gpu.take_messages(), std::vector<std::string>{});
}

TEST_F(SeededBug, MissingBarrierBetweenDispatches) {
    PlayerBugs bugs;
    bugs.no_barriers = true;
    DispatchPlayer player(gpu, *work, bugs);
    submit([&](VkCommandBuffer cmd) { player.play(cmd); });
    expect_message("SYNC-HAZARD");
}

TEST_F(SeededBug, InputFilledWithoutABarrier) {
    submit([&](VkCommandBuffer cmd) {
        gpu.device->vk().vkCmdFillBuffer(cmd, work->bindings[FOVEA_BIND_Q].buffer, 0, VK_WHOLE_SIZE, 0);
        record(cmd);
    });
    expect_message("SYNC-HAZARD");
}

TEST_F(SeededBug, OutputCopiedWithoutABarrier) {
    const std::unique_ptr<VulkanMemory> copy = gpu.memory(work->info.binding_bytes[FOVEA_BIND_O]);
    submit([&](VkCommandBuffer cmd) {
        record(cmd);
        const VkBufferCopy region{0, 0, work->info.binding_bytes[FOVEA_BIND_O]};
        gpu.device->vk().vkCmdCopyBuffer(cmd, work->bindings[FOVEA_BIND_O].buffer, copy->buffer(), 1,
                                         &region);
    });
    expect_message("SYNC-HAZARD");
}

TEST_F(SeededBug, SlicesThatShareWorkspaceWithoutABarrier) {
    submit([&](VkCommandBuffer cmd) {
        work->record.slice_count = 1;
        for (uint64_t s = 0; s < work->info.slice_count; ++s) {
            work->record.first_slice = s;
            record(cmd);
        }
    });
    expect_message("SYNC-HAZARD");
}

TEST_F(SeededBug, BufferWithoutTheStorageUsage) {
    const VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, nullptr, 0,
                                    work->info.binding_bytes[FOVEA_BIND_K], VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VmaAllocationCreateInfo how{};
    how.usage = VMA_MEMORY_USAGE_AUTO;
    VkBuffer buffer = VK_NULL_HANDLE;
    VmaAllocation allocation = nullptr;
    ASSERT_EQ(vmaCreateBuffer(gpu.allocator->vma(), &create, &how, &buffer, &allocation, nullptr),
              VK_SUCCESS);
    work->bindings[FOVEA_BIND_K].buffer = buffer;
    submit([&](VkCommandBuffer cmd) { record(cmd); });
    expect_message("STORAGE_BUFFER");
    vmaDestroyBuffer(gpu.allocator->vma(), buffer, allocation);
}

TEST_F(SeededBug, RangePastTheEndOfTheBuffer) {
    PlayerBugs bugs;
    bugs.extra_range = 1 << 20;
    DispatchPlayer player(gpu, *work, bugs);
    submit([&](VkCommandBuffer cmd) { player.play(cmd); });
    expect_message("VkDescriptorBufferInfo");
}

TEST_F(SeededBug, StaleOffset) {
    PlayerBugs bugs;
    bugs.extra_offset = 2;  // GPUs align to 4 bytes, software drivers to 16 or more
    DispatchPlayer player(gpu, *work, bugs);
    submit([&](VkCommandBuffer cmd) { player.play(cmd); });
    expect_message("minStorageBufferOffsetAlignment");
}

TEST_F(SeededBug, BufferDestroyedBeforeTheSubmission) {
    Result<runtime::Submission> submission = gpu.queue->begin(10);
    ASSERT_TRUE(submission);
    record(submission->cmd);
    ASSERT_EQ(dropped->count(), 0u);
    work->memory[FOVEA_BIND_V].reset();
    EXPECT_FALSE(gpu.queue->submit("a bug", false, nullptr));
    expect_message("VkBuffer");
}

TEST_F(SeededBug, TimestampsThatWereNotReset) {
    if (!gpu.device->timestamp_bits()) GTEST_SKIP() << "the queue has no timestamps";
    const auto count = static_cast<uint32_t>(work->info.slice_count * 2);
    const VkQueryPoolCreateInfo create{
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, count, 0};
    VkQueryPool pool = VK_NULL_HANDLE;
    ASSERT_EQ(gpu.device->vk().vkCreateQueryPool(gpu.device->handle(), &create, nullptr, &pool), VK_SUCCESS);
    work->record.timestamps = pool;
    submit([&](VkCommandBuffer cmd) { record(cmd); });
    expect_message("not reset");
    gpu.device->vk().vkDestroyQueryPool(gpu.device->handle(), pool, nullptr);
}

}  // namespace
}  // namespace fovea::test

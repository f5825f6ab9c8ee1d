// Device memory: allocation within the device's budget, and copies to and from the host, through a staging
// buffer only where the memory cannot be mapped.
#pragma once

#include "runtime/backend.hpp"
#include "runtime/vulkan_queue.hpp"

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#include <vk_mem_alloc.h>

namespace fovea::runtime {

class VulkanMemory;

// True if a heap with `usage` of `budget` bytes in use has room for `size_bytes` more, keeping a tenth free.
// Other programs may have exceeded the budget already.
constexpr bool fits_budget(uint64_t size_bytes, uint64_t usage, uint64_t budget) {
    const uint64_t limit = budget / 10 * 9;
    return usage <= limit && size_bytes <= limit - usage;
}

class VulkanAllocator {
  public:
    static Result<std::unique_ptr<VulkanAllocator>> create(VulkanDevice& device, VulkanQueue& queue);
    ~VulkanAllocator();
    VulkanAllocator(const VulkanAllocator&) = delete;
    VulkanAllocator& operator=(const VulkanAllocator&) = delete;

    // Contents undefined. The allocator must outlive it.
    Result<std::unique_ptr<VulkanMemory>> allocate(uint64_t size_bytes);
    // Fails, with the sizes, if a heap would exceed 90 % of the memory that the system grants this process.
    Result<void> check_budget(uint64_t size_bytes) const;

    VulkanDevice& device() const { return device_; }
    VulkanQueue& queue() const { return queue_; }
    VmaAllocator vma() const { return vma_; }
    // Host memory of kStagingBytes that the device copies from and to, made at first use.
    Result<VulkanMemory*> staging();

  private:
    friend class VulkanMemory;
    struct Unfinished {
        VkBuffer buffer;
        VmaAllocation allocation;
    };
    VulkanAllocator(VulkanDevice& device, VulkanQueue& queue) : device_(device), queue_(queue) {}
    Result<std::unique_ptr<VulkanMemory>> create_buffer(uint64_t size_bytes, bool staging);
    VulkanDevice& device_;
    VulkanQueue& queue_;
    VmaAllocator vma_ = nullptr;
    std::unique_ptr<VulkanMemory> staging_;
    std::vector<Unfinished> unfinished_;  // released by their owners while the device was abandoned
};

class VulkanMemory final : public Memory {
  public:
    ~VulkanMemory() override;
    uint64_t size_bytes() const override { return size_bytes_; }
    Result<void> upload(std::span<const std::byte> bytes, uint64_t offset) override;
    Result<void> download(std::span<std::byte> bytes, uint64_t offset) override;
    Result<void> fill_zero();

    VkBuffer buffer() const { return buffer_; }
    std::byte* mapped() const { return mapped_; }  // null where the memory cannot be mapped
    // Between writes through `mapped` and a submission; between its end and reads.
    VkResult flush() const { return vmaFlushAllocation(allocator_.vma(), allocation_, 0, VK_WHOLE_SIZE); }
    VkResult invalidate() const {
        return vmaInvalidateAllocation(allocator_.vma(), allocation_, 0, VK_WHOLE_SIZE);
    }

  private:
    friend class VulkanAllocator;
    explicit VulkanMemory(VulkanAllocator& allocator) : allocator_(allocator) {}
    bool reads_fast() const {
        return mapped_ && (is_staging_ || (memory_flags_ & VK_MEMORY_PROPERTY_HOST_CACHED_BIT));
    }
    Result<void> copy(VkBuffer from, uint64_t from_offset, VkBuffer to, uint64_t to_offset,
                      uint64_t size_bytes);

    VulkanAllocator& allocator_;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VmaAllocation allocation_ = nullptr;
    uint64_t size_bytes_ = 0;
    std::byte* mapped_ = nullptr;
    VkMemoryPropertyFlags memory_flags_ = 0;
    bool is_staging_ = false;
};

}  // namespace fovea::runtime

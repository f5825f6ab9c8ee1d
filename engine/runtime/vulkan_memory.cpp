#include "runtime/vulkan_memory.hpp"

#include <algorithm>
#include <cstring>

namespace fovea::runtime {
namespace {

constexpr uint64_t kStagingBytes = 32ull << 20;
constexpr double kCopyTimeoutSeconds = 60;

std::string mib(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

Result<std::unique_ptr<VulkanAllocator>> VulkanAllocator::create(VulkanDevice& device, VulkanQueue& queue) {
    std::unique_ptr<VulkanAllocator> allocator(new VulkanAllocator(device, queue));
    VmaVulkanFunctions functions{};
    functions.vkGetInstanceProcAddr = device.instance().get_proc();
    functions.vkGetDeviceProcAddr = device.instance().vk().vkGetDeviceProcAddr;
    VmaAllocatorCreateInfo create{};
    create.instance = device.instance().handle();
    create.physicalDevice = device.physical_device();
    create.device = device.handle();
    create.pVulkanFunctions = &functions;
    create.vulkanApiVersion = std::min<uint32_t>(device.api_version(), VK_API_VERSION_1_3);
    if (device.has_memory_budget()) create.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
    const VkResult r = vmaCreateAllocator(&create, &allocator->vma_);
    if (r != VK_SUCCESS) return vk_error(r, "vmaCreateAllocator");
    return allocator;
}

VulkanAllocator::~VulkanAllocator() {
    staging_.reset();
    if (device_.abandoned()) return;
    for (const Unfinished& memory : unfinished_) vmaDestroyBuffer(vma_, memory.buffer, memory.allocation);
    vmaDestroyAllocator(vma_);
}

Result<void> VulkanAllocator::check_budget(uint64_t size_bytes) const {
    // The heap that the device's own memory comes from: the largest one marked so.
    const VkPhysicalDeviceMemoryProperties* memory = nullptr;
    vmaGetMemoryProperties(vma_, &memory);
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
    vmaGetHeapBudgets(vma_, budgets);
    uint64_t usage = 0, budget = 0;
    for (uint32_t i = 0; i < memory->memoryHeapCount; ++i) {
        if (!(memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) || budgets[i].budget <= budget)
            continue;
        usage = budgets[i].usage;
        budget = budgets[i].budget;
    }
    if (fits_budget(size_bytes, usage, budget)) return {};
    return Error{FOVEA_OUT_OF_DEVICE_MEMORY, "device memory",
                 "not enough device memory: " + mib(size_bytes) + " are needed, and " + mib(usage) +
                     " of the " + mib(budget) + " of " + device_.vulkan_properties().deviceName +
                     " are in use (a tenth is kept free)"};
}

Result<std::unique_ptr<VulkanMemory>> VulkanAllocator::create_buffer(uint64_t size_bytes, bool staging) {
    const uint64_t at_least = std::max<uint64_t>(size_bytes, 4);
    if (at_least > device_.max_allocation_bytes())
        return Error{FOVEA_LIMIT_EXCEEDED, "size_bytes",
                     "a buffer of " + mib(at_least) + " is needed; " +
                         device_.vulkan_properties().deviceName + " allocates at most " +
                         mib(device_.max_allocation_bytes()) + " at a time"};
    VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    buffer.size = (at_least + 3) / 4 * 4;  // fills count words of 4 bytes
    buffer.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                   VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    VmaAllocationCreateInfo how{};
    how.usage = VMA_MEMORY_USAGE_AUTO;
    if (staging || device_.maps_memory())
        how.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
    // Fast memory first: mapped where the device's own memory can be, through staging where it cannot.
    if (!staging && device_.maps_memory())
        how.flags |= VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT;
    if (!staging) how.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
    std::unique_ptr<VulkanMemory> memory(new VulkanMemory(*this));
    VmaAllocationInfo info{};
    const VkResult r = vmaCreateBuffer(vma_, &buffer, &how, &memory->buffer_, &memory->allocation_, &info);
    if (r != VK_SUCCESS) {
        Error error = vk_error(r, "vmaCreateBuffer");
        error.text += " for a buffer of " + mib(buffer.size);
        return error;
    }
    memory->size_bytes_ = size_bytes;
    memory->is_staging_ = staging;
    memory->mapped_ = static_cast<std::byte*>(info.pMappedData);
    vmaGetAllocationMemoryProperties(vma_, memory->allocation_, &memory->memory_flags_);
    return memory;
}

Result<std::unique_ptr<VulkanMemory>> VulkanAllocator::allocate(uint64_t size_bytes) {
    if (Result<void> r = check_budget(size_bytes); !r) return r.error();
    return create_buffer(size_bytes, false);
}

Result<VulkanMemory*> VulkanAllocator::staging() {
    if (!staging_) {
        Result<std::unique_ptr<VulkanMemory>> made = create_buffer(kStagingBytes, true);
        if (!made) return made.error();
        staging_ = std::move(*made);
    }
    return staging_.get();
}

VulkanMemory::~VulkanMemory() {
    if (allocator_.device().abandoned())
        allocator_.unfinished_.push_back({buffer_, allocation_});
    else
        vmaDestroyBuffer(allocator_.vma(), buffer_, allocation_);
}

Result<void> VulkanMemory::copy(VkBuffer from, uint64_t from_offset, VkBuffer to, uint64_t to_offset,
                                uint64_t size_bytes) {
    VulkanQueue& queue = allocator_.queue();
    return queue.run_once("a copy", kCopyTimeoutSeconds, [&](VkCommandBuffer cmd) {
        const VkBufferCopy region{from_offset, to_offset, size_bytes};
        queue.cmd_full_barrier(cmd);
        allocator_.device().vk().vkCmdCopyBuffer(cmd, from, to, 1, &region);
        queue.cmd_full_barrier(cmd);
    });
}

Result<void> VulkanMemory::fill_zero() {
    if (mapped_) {
        memset(mapped_, 0, static_cast<size_t>(size_bytes_));
        const VkResult r = vmaFlushAllocation(allocator_.vma(), allocation_, 0, VK_WHOLE_SIZE);
        return r == VK_SUCCESS ? Result<void>() : vk_error(r, "vmaFlushAllocation");
    }
    VulkanQueue& queue = allocator_.queue();
    return queue.run_once("a fill", kCopyTimeoutSeconds, [&](VkCommandBuffer cmd) {
        allocator_.device().vk().vkCmdFillBuffer(cmd, buffer_, 0, VK_WHOLE_SIZE, 0);
        queue.cmd_full_barrier(cmd);
    });
}

Result<void> VulkanMemory::upload(std::span<const std::byte> bytes, uint64_t offset) {
    if (bytes.empty()) return {};
    if (mapped_) {
        memcpy(mapped_ + offset, bytes.data(), bytes.size());
        const VkResult r = vmaFlushAllocation(allocator_.vma(), allocation_, offset, bytes.size());
        return r == VK_SUCCESS ? Result<void>() : vk_error(r, "vmaFlushAllocation");
    }
    Result<VulkanMemory*> staging = allocator_.staging();
    if (!staging) return staging.error();
    for (uint64_t done = 0; done < bytes.size();) {
        const auto part = bytes.subspan(done, std::min<uint64_t>(bytes.size() - done, kStagingBytes));
        if (Result<void> r = (*staging)->upload(part, 0); !r) return r;
        if (Result<void> r = copy((*staging)->buffer(), 0, buffer_, offset + done, part.size()); !r) return r;
        done += part.size();
    }
    return {};
}

Result<void> VulkanMemory::download(std::span<std::byte> bytes, uint64_t offset) {
    if (bytes.empty()) return {};
    // Reading uncached device memory is far slower than a copy into cached memory.
    if (reads_fast()) {
        const VkResult r = vmaInvalidateAllocation(allocator_.vma(), allocation_, offset, bytes.size());
        if (r != VK_SUCCESS) return vk_error(r, "vmaInvalidateAllocation");
        memcpy(bytes.data(), mapped_ + offset, bytes.size());
        return {};
    }
    Result<VulkanMemory*> staging = allocator_.staging();
    if (!staging) return staging.error();
    for (uint64_t done = 0; done < bytes.size();) {
        const auto part = bytes.subspan(done, std::min<uint64_t>(bytes.size() - done, kStagingBytes));
        if (Result<void> r = copy(buffer_, offset + done, (*staging)->buffer(), 0, part.size()); !r) return r;
        if (Result<void> r = (*staging)->download(part, 0); !r) return r;
        done += part.size();
    }
    return {};
}

}  // namespace fovea::runtime

// Pipeline-cache bytes as they go to a host's disk and come back. Handing a driver bytes that it did not
// write is undefined behaviour, so whatever does not fit exactly is treated as no cache at all.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>

namespace fovea::vulkan {

constexpr size_t kCacheHeaderBytes = 64;

struct CachePayload {
    const void* data = nullptr;  // null: the blob was rejected
    size_t size_bytes = 0;
};

CachePayload open_cache_blob(const void* blob, size_t size_bytes, const VkPhysicalDeviceProperties& device);

// Fills the first kCacheHeaderBytes of a blob; the payload of `payload_bytes` must already follow them.
void seal_cache_blob(void* blob, size_t payload_bytes, const VkPhysicalDeviceProperties& device);

}  // namespace fovea::vulkan

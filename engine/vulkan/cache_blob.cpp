#include "vulkan/cache_blob.hpp"

#include <fovea/fovea.h>

#include <cstring>

#include "problem/fnv1a.hpp"

namespace fovea::vulkan {
namespace {

struct Header {
    char magic[8];
    uint32_t abi_version, vendor_id, device_id, driver_version;
    uint8_t cache_uuid[VK_UUID_SIZE];
    uint64_t payload_bytes;
    uint64_t reserved;
    uint64_t hash;  // hash of the payload and of all bytes before this field
};
static_assert(sizeof(Header) == kCacheHeaderBytes);

constexpr char kMagic[8] = {'F', 'V', 'P', 'C', 'A', 'C', 'H', 'E'};

uint64_t hash_blob(const Header& header, const void* payload) {
    const auto bytes = [](const void* data, size_t size) {
        return std::span(static_cast<const unsigned char*>(data), size);
    };
    return fnv1a(bytes(payload, header.payload_bytes), fnv1a(bytes(&header, offsetof(Header, hash))));
}

Header header_for(const VkPhysicalDeviceProperties& device, uint64_t payload_bytes) {
    Header header{};
    memcpy(header.magic, kMagic, sizeof kMagic);
    header.abi_version = FOVEA_ABI_VERSION;
    header.vendor_id = device.vendorID;
    header.device_id = device.deviceID;
    header.driver_version = device.driverVersion;
    memcpy(header.cache_uuid, device.pipelineCacheUUID, VK_UUID_SIZE);
    header.payload_bytes = payload_bytes;
    return header;
}

// The driver's own header, which Vulkan defines.
bool driver_header_fits(const unsigned char* payload, size_t size_bytes,
                        const VkPhysicalDeviceProperties& device) {
    VkPipelineCacheHeaderVersionOne own;
    if (size_bytes < sizeof own) return false;
    memcpy(&own, payload, sizeof own);
    return own.headerSize >= sizeof own && own.headerSize <= size_bytes &&
           own.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && own.vendorID == device.vendorID &&
           own.deviceID == device.deviceID &&
           memcmp(own.pipelineCacheUUID, device.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

}  // namespace

CachePayload open_cache_blob(const void* blob, size_t size_bytes, const VkPhysicalDeviceProperties& device) {
    if (!blob || size_bytes < sizeof(Header)) return {};
    Header header;
    memcpy(&header, blob, sizeof header);
    const auto* payload = static_cast<const unsigned char*>(blob) + sizeof header;
    const size_t payload_bytes = size_bytes - sizeof header;
    Header expected = header_for(device, payload_bytes);
    if (memcmp(&header, &expected, offsetof(Header, hash)) != 0) return {};
    if (header.hash != hash_blob(header, payload)) return {};
    if (!driver_header_fits(payload, payload_bytes, device)) return {};
    return {payload, payload_bytes};
}

void seal_cache_blob(void* blob, size_t payload_bytes, const VkPhysicalDeviceProperties& device) {
    Header header = header_for(device, payload_bytes);
    header.hash = hash_blob(header, static_cast<unsigned char*>(blob) + sizeof header);
    memcpy(blob, &header, sizeof header);
}

}  // namespace fovea::vulkan

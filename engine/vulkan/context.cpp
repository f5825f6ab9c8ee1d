#include "vulkan/context.hpp"

#include "problem/abi_struct.hpp"
#include "problem/host_memory.hpp"
#include "vulkan/cache_blob.hpp"

#include <algorithm>
#include <new>

namespace fovea {
FOVEA_FIELDS(FoveaVulkanDevice, struct_size, api_version, instance, physical_device, device,
             get_instance_proc_addr, get_device_proc_addr, enabled_features, enabled_extensions,
             enabled_extension_count, flags, vk_allocator, host_allocator, pipeline_cache,
             pipeline_cache_data, pipeline_cache_size);
}  // namespace fovea

namespace fovea::vulkan {

FoveaResult check_alive(const FoveaContext_T& context, FoveaDiag* diag) {
    if (!context.lost.load(std::memory_order_relaxed)) return FOVEA_OK;
    return fail(diag, FOVEA_DEVICE_LOST, "context",
                "the device was lost in an earlier call; create a new device and context");
}

namespace {

// Adds the driver's description of the loss. It leaves out the addresses, which would need memory from us.
void add_fault(const FoveaContext_T& context, FoveaDiag* diag) {
    if (!context.vk.vkGetDeviceFaultInfoEXT) return;
    VkDeviceFaultCountsEXT counts{VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT};
    VkDeviceFaultInfoEXT info{VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT};
    // VK_INCOMPLETE, a success: there were addresses.
    if (context.vk.vkGetDeviceFaultInfoEXT(context.device, &counts, &info) < VK_SUCCESS ||
        !info.description[0])
        return;
    info.description[sizeof info.description - 1] = '\0';
    add_to_text(diag, "; the driver says: ");
    add_to_text(diag, info.description);
}

}  // namespace

FoveaResult call_failed(FoveaContext_T& context, VkResult result, const char* call, FoveaDiag* diag) {
    const FoveaResult code = fail_vulkan(diag, result, call);
    if (result == VK_ERROR_DEVICE_LOST) {
        context.lost.store(true, std::memory_order_relaxed);
        add_fault(context, diag);
    }
    return code;
}

namespace {

FoveaResult null_field(FoveaDiag* diag, const char* field) {
    return fail(diag, FOVEA_INVALID_ARGUMENT, field, "%s is null", field);
}

FoveaResult check_host(const FoveaVulkanDevice& host, FoveaDiag* diag) {
    if (!host.instance) return null_field(diag, "instance");
    if (!host.physical_device) return null_field(diag, "physical_device");
    if (!host.device) return null_field(diag, "device");
    if (!host.get_instance_proc_addr) return null_field(diag, "get_instance_proc_addr");
    if (host.flags != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "flags", "flags is %u; it must be 0", host.flags);
    if (host.enabled_extension_count && !host.enabled_extensions)
        return null_field(diag, "enabled_extensions");
    for (uint32_t i = 0; i < host.enabled_extension_count; ++i) {
        if (!host.enabled_extensions[i])
            return fail(diag, FOVEA_INVALID_ARGUMENT, "enabled_extensions", "enabled_extensions[%u] is null",
                        i);
    }
    return FOVEA_OK;
}

// A device's getter gives the commands of a core version only up to that which its instance was created with
// (a rule for all drivers since VK_KHR_maintenance5; others may give more, and nothing shows then).
FoveaResult check_version_of_device(const FoveaVulkanDevice& host, uint32_t device_version,
                                    PFN_vkGetDeviceProcAddr get_device, FoveaDiag* diag) {
    static constexpr struct {
        uint32_t version;
        const char* command;
    } kCommands[] = {{VK_API_VERSION_1_2, "vkResetQueryPool"},
                     {VK_API_VERSION_1_3, "vkCmdPipelineBarrier2"},
                     {VK_API_VERSION_1_4, "vkCmdPushDescriptorSet"}};
    for (const auto& [version, command] : kCommands) {
        if (version > host.api_version || version > device_version || get_device(host.device, command))
            continue;
        return fail(
            diag, FOVEA_INVALID_ARGUMENT, "api_version",
            "api_version is %u.%u, but the device has no %s of 1.%u: give the version that the instance was "
            "created with (VkApplicationInfo::apiVersion)",
            VK_API_VERSION_MAJOR(host.api_version), VK_API_VERSION_MINOR(host.api_version), command,
            VK_API_VERSION_MINOR(version));
    }
    return FOVEA_OK;
}

FoveaResult load_tables(const FoveaVulkanDevice& host, FoveaContext_T& context, FoveaDiag* diag) {
    InstanceTable instance;
    FoveaResult r = load_instance_table(host.get_instance_proc_addr, host.instance, instance, diag);
    if (r) return r;
    r = query_physical_device(instance, host.physical_device, host.api_version, context.allocator,
                              context.physical_device, diag);
    if (r) return r;
    uint32_t extensions = 0;
    for (uint32_t i = 0; i < host.enabled_extension_count; ++i)
        extensions |= extension_bit(host.enabled_extensions[i]);
    context.enabled = enabled_features(context.physical_device, host.enabled_features, extensions);

    PFN_vkGetDeviceProcAddr get_device = host.get_device_proc_addr;
    if (!get_device)
        get_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
            host.get_instance_proc_addr(host.instance, "vkGetDeviceProcAddr"));
    if (!get_device)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "get_device_proc_addr",
                    "get_device_proc_addr is null, and get_instance_proc_addr returned no "
                    "vkGetDeviceProcAddr; give one of them");
    if ((r = check_version_of_device(host, context.physical_device.vulkan_properties.apiVersion, get_device,
                                     diag)))
        return r;
    return load_device_table(host.get_instance_proc_addr, host.instance, get_device, host.device,
                             context.enabled.push_function, context.enabled.device_fault, context.vk, diag);
}

const FlexibleMatrices& flexible_matrices(const PhysicalDevice& device, const Features& on) {
    return on.workgroup_matrices && device.workgroup_matrices.m ? device.workgroup_matrices
                                                                : device.subgroup_matrices;
}

// FOVEA_FEATURE_* of a device with these features on, besides those that need no switch.
uint32_t feature_bits(const PhysicalDevice& device, const Features& on) {
    uint32_t bits = device.properties.features;
    if (on.storage_16bit) bits |= FOVEA_FEATURE_F16_STORAGE;
    if (on.float16) bits |= FOVEA_FEATURE_F16_ARITHMETIC;
    if (on.subgroup_size_control && on.full_subgroups) bits |= FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL;
    if (on.device_atomics) bits |= FOVEA_FEATURE_DEVICE_ATOMICS;
    if (on.push_descriptors) bits |= FOVEA_FEATURE_PUSH_DESCRIPTORS;
    if (on.coopmat && device.properties.coopmat_m) bits |= FOVEA_FEATURE_COOPMAT;
    if (on.bfloat16_matrices && device.lists_bfloat16) bits |= FOVEA_FEATURE_BF16_INPUTS;
    if (on.coopmat2 && flexible_matrices(device, on).m) bits |= FOVEA_FEATURE_COOPMAT2;
    return bits;
}

void fill_properties(FoveaContext_T& context) {
    const PhysicalDevice& device = context.physical_device;
    const Features& on = context.enabled;
    context.properties = device.properties;
    FoveaDeviceProperties& properties = context.properties;
    properties.features = feature_bits(device, on);
    properties.features_not_enabled = feature_bits(device, device.features) & ~properties.features;
    if (on.push_descriptors && device.max_push_descriptors)
        properties.max_storage_buffers =
            std::min(properties.max_storage_buffers, device.max_push_descriptors);
    if (!(properties.features & FOVEA_FEATURE_COOPMAT))
        properties.coopmat_m = properties.coopmat_n = properties.coopmat_k = 0;
    if (!(properties.features & FOVEA_FEATURE_COOPMAT2)) {
        properties.coopmat2_max_side = properties.coopmat2_reserved_bytes = 0;
        return;
    }
    const FlexibleMatrices& flexible = flexible_matrices(device, on);
    properties.coopmat2_m = flexible.m;
    properties.coopmat2_n = flexible.n;
    properties.coopmat2_k = flexible.k;
    properties.coopmat2_threads = flexible.threads;
}

FoveaResult create_cache(const FoveaVulkanDevice& host, FoveaContext_T& context, FoveaDiag* diag) {
    if (host.pipeline_cache) {
        context.cache = host.pipeline_cache;
        return FOVEA_OK;
    }
    const CachePayload payload = open_cache_blob(host.pipeline_cache_data, host.pipeline_cache_size,
                                                 context.physical_device.vulkan_properties);
    VkPipelineCacheCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    create.initialDataSize = payload.size_bytes;
    create.pInitialData = payload.data;
    VkResult result =
        context.vk.vkCreatePipelineCache(context.device, &create, context.callbacks(), &context.cache);
    if (result != VK_SUCCESS) return call_failed(context, result, "vkCreatePipelineCache", diag);
    context.owns_cache = true;
    context.cache_accepted = payload.data != nullptr;
    return FOVEA_OK;
}

FoveaResult fill_context(const FoveaVulkanDevice& host, FoveaContext_T& context, FoveaDiag* diag) {
    context.device = host.device;
    if (host.vk_allocator) {
        context.vk_callbacks = *host.vk_allocator;
        context.has_vk_callbacks = true;
    }
    if (FoveaResult r = load_tables(host, context, diag)) return r;
    fill_properties(context);
    return create_cache(host, context, diag);
}

}  // namespace
}  // namespace fovea::vulkan

using namespace fovea;
using namespace fovea::vulkan;

FoveaResult foveaCreateContext(const FoveaVulkanDevice* given, FoveaContext* out, FoveaDiag* diag) {
    if (!out) return null_field(diag, "out");
    *out = nullptr;
    FoveaVulkanDevice host;
    FoveaHostAllocator allocator;
    FoveaResult r;
    if ((r = read_struct(given, host, "vulkan", diag))) return r;
    if ((r = check_host(host, diag))) return r;
    if ((r = choose_allocator(host.host_allocator, allocator, diag))) return r;
    void* memory = allocator.allocate(allocator.user, sizeof(FoveaContext_T), alignof(FoveaContext_T));
    if (!memory)
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "host_allocator",
                    "no host memory for a context of %zu bytes", sizeof(FoveaContext_T));
    auto* context = new (memory) FoveaContext_T{};
    context->allocator = allocator;
    if ((r = fill_context(host, *context, diag))) {
        foveaDestroyContext(context);
        return r;
    }
    *out = context;
    return FOVEA_OK;
}

void foveaDestroyContext(FoveaContext context) {
    if (!context) return;
    const FoveaHostAllocator allocator = context->allocator;
    context->pipelines.clear(allocator, [&](const Pipeline& p) { destroy_pipeline(*context, p); });
    if (context->owns_cache)
        context->vk.vkDestroyPipelineCache(context->device, context->cache, context->callbacks());
    context->~FoveaContext_T();
    allocator.release(allocator.user, context, sizeof(FoveaContext_T));
}

FoveaResult foveaContextProperties(FoveaContext context, FoveaDeviceProperties* out, FoveaDiag* diag) {
    if (!context) return null_field(diag, "context");
    return write_struct(context->properties, out, "out", diag);
}

uint32_t foveaPipelineCacheWasAccepted(FoveaContext context) {
    return context && context->cache_accepted ? 1 : 0;
}

FoveaResult foveaGetPipelineCacheData(FoveaContext context, void* data, size_t* size, FoveaDiag* diag) {
    if (!context) return null_field(diag, "context");
    if (!size) return null_field(diag, "size");
    if (FoveaResult r = check_alive(*context, diag)) return r;
    size_t payload_bytes = 0;
    const auto get = context->vk.vkGetPipelineCacheData;
    VkResult result = get(context->device, context->cache, &payload_bytes, nullptr);
    if (result != VK_SUCCESS) return call_failed(*context, result, "vkGetPipelineCacheData", diag);
    const size_t needed = payload_bytes + kCacheHeaderBytes;
    const size_t room = *size;
    *size = needed;
    if (!data) return FOVEA_OK;
    if (room < needed)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "size", "size is %zu; the cache needs %zu bytes", room,
                    needed);
    payload_bytes = room - kCacheHeaderBytes;
    result = get(context->device, context->cache, &payload_bytes,
                 static_cast<unsigned char*>(data) + kCacheHeaderBytes);
    // VK_INCOMPLETE: another thread compiled something in between; a partial cache is useless.
    if (result == VK_INCOMPLETE)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "size",
                    "the cache grew during the call; ask for its size again");
    if (result != VK_SUCCESS) return call_failed(*context, result, "vkGetPipelineCacheData", diag);
    seal_cache_blob(data, payload_bytes, context->physical_device.vulkan_properties);
    *size = payload_bytes + kCacheHeaderBytes;
    return FOVEA_OK;
}

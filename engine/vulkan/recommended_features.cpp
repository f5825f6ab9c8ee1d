#include "problem/abi_struct.hpp"
#include "problem/host_memory.hpp"
#include "vulkan/device_query.hpp"

#include <algorithm>
#include <cstddef>

namespace fovea::vulkan {
namespace {

struct FeatureList {
    FoveaRecommendedFeatures found{};
    void add(const char* extension, const char* feature, bool available, const char* benefit) {
        found.items[found.count++] = {extension, feature, 0, available ? 1u : 0u, benefit};
    }
    void require(const char* extension) {
        found.items[found.count++] = {extension, nullptr, 1, 1,
                                      "nothing: Vulkan demands it of a device that has it"};
    }
};

// Beyond the minimum requirements only what Vulkan itself demands is required. An extension is named only if
// the core version does not include it.
void list_features(const PhysicalDevice& device, FeatureList& list) {
    const Features& has = device.features;
    const auto unless_core = [&](uint32_t core, const char* extension) {
        return device.api_version >= core ? nullptr : extension;
    };
    const bool extension_has_push = (device.extensions & kExtPushDescriptor) != 0;
    if (extension_has_push || !has.push_descriptors)
        list.add(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME, nullptr, extension_has_push,
                 "push descriptors, which need no descriptor pool");
    else
        list.add(nullptr, "pushDescriptor", true, "push descriptors, which need no descriptor pool");
    list.add(nullptr, "storageBuffer16BitAccess", has.storage_16bit,
             "float16 results stored directly instead of by atomics on whole words, and the cooperative "
             "matrix kernels");
    list.add(unless_core(VK_API_VERSION_1_2, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME), "shaderFloat16",
             has.float16, "float16 arithmetic, and the cooperative matrix kernels");
    const char* sizes = unless_core(VK_API_VERSION_1_3, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    list.add(sizes, "subgroupSizeControl", has.subgroup_size_control, "kernels that reduce by subgroups");
    list.add(sizes, "computeFullSubgroups", has.full_subgroups, "kernels that reduce by subgroups");
    const char* model = unless_core(VK_API_VERSION_1_2, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
    list.add(model, "vulkanMemoryModel", has.memory_model, "the cooperative matrix kernels");
    list.add(model, "vulkanMemoryModelDeviceScope", has.device_scope,
             "atomics together with vulkanMemoryModel: results in FP8, and without storageBuffer16BitAccess "
             "in 16 bits");
    list.add(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, "cooperativeMatrix", has.coopmat,
             "cooperative matrices: kernel flash_coopmat");
    list.add(nullptr, "maintenance4", has.maintenance4, "kernel flash_coopmat2");
    static constexpr const char* kParts[] = {"cooperativeMatrixFlexibleDimensions",
                                             "cooperativeMatrixReductions", "cooperativeMatrixConversions",
                                             "cooperativeMatrixPerElementOperations"};
    for (const char* part : kParts)
        list.add(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME, part, has.coopmat2, "kernel flash_coopmat2");
    list.add(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME, "cooperativeMatrixWorkgroupScope",
             has.workgroup_matrices, "larger matrices for kernel flash_coopmat2");
    list.add(VK_EXT_DEVICE_FAULT_EXTENSION_NAME, "deviceFault", has.device_fault,
             "the driver's report of why the device was lost (FOVEA_DEVICE_LOST)");
    // Headers without beta extensions do not define this name.
    if (device.extensions & kExtPortability) list.require("VK_KHR_portability_subset");
    // Added after the required items: an application built for an earlier version has room for 16 items and
    // gets no more.
    for (const char* part : {"shaderBFloat16Type", "shaderBFloat16CooperativeMatrix"})
        list.add(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, part, has.bfloat16_matrices && device.lists_bfloat16,
                 "bfloat16 cooperative matrices, for calls with FOVEA_PRECISION_BF16_INPUTS");
}

}  // namespace
}  // namespace fovea::vulkan

using namespace fovea;
using namespace fovea::vulkan;

FoveaResult foveaQueryRecommendedFeatures(PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                          VkInstance instance, uint32_t api_version,
                                          VkPhysicalDevice physical_device,
                                          const FoveaHostAllocator* allocator, FoveaRecommendedFeatures* out,
                                          FoveaDiag* diag) {
    const char* null_argument = !get_instance_proc_addr ? "get_instance_proc_addr"
                                : !instance             ? "instance"
                                : !physical_device      ? "physical_device"
                                                        : nullptr;
    if (null_argument) return fail(diag, FOVEA_INVALID_ARGUMENT, null_argument, "%s is null", null_argument);
    FoveaHostAllocator memory;
    InstanceTable table;
    PhysicalDevice device;
    FoveaResult r;
    if ((r = choose_allocator(allocator, memory, diag))) return r;
    if ((r = load_instance_table(get_instance_proc_addr, instance, table, diag))) return r;
    if ((r = query_physical_device(table, physical_device, api_version, memory, device, diag))) return r;
    FeatureList list;
    list_features(device, list);
    if (out && out->struct_size >= offsetof(FoveaRecommendedFeatures, items)) {
        const size_t room =
            (out->struct_size - offsetof(FoveaRecommendedFeatures, items)) / sizeof(FoveaRecommendedFeature);
        list.found.count = uint32_t(std::min<size_t>(list.found.count, room));
    }
    return write_struct(list.found, out, "out", diag);
}

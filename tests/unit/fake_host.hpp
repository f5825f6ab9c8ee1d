// A host program on the fake Vulkan table: what it passes to Fovea, and a run from context to recorded
// slices.
#pragma once

#include "support/counting_allocator.hpp"
#include "support/fake_vulkan.hpp"

#include <fovea/fovea_vulkan.h>
#include <fovea/fovea.hpp>

#include <vector>

namespace fovea::test {

class FakeHost {
  public:
    explicit FakeHost(const FakeDevice& device = {}, bool push_descriptors = true) : vulkan(device) {
        if (push_descriptors) extensions_.push_back("VK_KHR_push_descriptor");
        extensions_.push_back("VK_KHR_cooperative_matrix");
        storage_.storageBuffer16BitAccess = device.storage_16bit;
        storage_.pNext = &float16_;
        float16_.shaderFloat16 = device.float16;
        float16_.pNext = &subgroup_;
        subgroup_.subgroupSizeControl = subgroup_.computeFullSubgroups = device.subgroup_size_control;
        subgroup_.pNext = &memory_model_;
        memory_model_.vulkanMemoryModel = device.memory_model;
        memory_model_.pNext = &coopmat_;
        coopmat_.cooperativeMatrix = device.coopmat;
        coopmat_.pNext = &coopmat2_;
        coopmat2_.cooperativeMatrixFlexibleDimensions = coopmat2_.cooperativeMatrixReductions =
            coopmat2_.cooperativeMatrixConversions = coopmat2_.cooperativeMatrixPerElementOperations =
                device.coopmat2;
        coopmat2_.cooperativeMatrixWorkgroupScope = device.workgroup_matrices;
        if (device.coopmat2) extensions_.push_back("VK_NV_cooperative_matrix2");
        coopmat2_.pNext = &maintenance4_;
        maintenance4_.maintenance4 = VK_TRUE;
        maintenance4_.pNext = &fault_;
        fault_.deviceFault = device.device_fault;
        fault_.pNext = &bfloat16_;
        bfloat16_.shaderBFloat16Type = bfloat16_.shaderBFloat16CooperativeMatrix = device.bfloat16;
        if (device.device_fault) extensions_.push_back("VK_EXT_device_fault");
        if (device.bfloat16) extensions_.push_back("VK_KHR_shader_bfloat16");
        features_.pNext = &storage_;
        allocator_ = memory.get();
        host.struct_size = sizeof host;
        host.api_version = VK_API_VERSION_1_3;
        host.instance = vulkan.instance();
        host.physical_device = vulkan.physical_device();
        host.device = vulkan.device();
        host.get_instance_proc_addr = FakeVulkan::instance_getter();
        host.get_device_proc_addr = FakeVulkan::device_getter();
        host.enabled_features = &features_;
        host.enabled_extensions = extensions_.data();
        host.enabled_extension_count = static_cast<uint32_t>(extensions_.size());
        host.vk_allocator = vulkan.callbacks();
        host.host_allocator = &allocator_;
    }
    FakeHost(const FakeHost&) = delete;
    FakeHost& operator=(const FakeHost&) = delete;

    FoveaDeviceProperties properties(FoveaContext context) const {
        FoveaDeviceProperties out{};
        out.struct_size = sizeof out;
        foveaContextProperties(context, &out, nullptr);
        return out;
    }
    const FoveaHostAllocator* allocator() const { return &allocator_; }

    CountingAllocator memory;
    FakeVulkan vulkan;
    FoveaVulkanDevice host{};

  private:
    std::vector<const char*> extensions_;
    VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDevice16BitStorageFeatures storage_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    VkPhysicalDeviceShaderFloat16Int8Features float16_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
    VkPhysicalDeviceMaintenance4Features maintenance4_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES};
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV coopmat2_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};
    VkPhysicalDeviceFaultFeaturesEXT fault_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16_{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
    FoveaHostAllocator allocator_{};
};

// Attention in several slices that share workspace: two dispatches or more in each.
inline FoveaAttentionDesc sliced_attention() {
    Attention call;
    call.batch(1).heads(2).lengths(64, 96).dims(16).kernel(FOVEA_KERNEL_STAGED);
    call.desc.max_slice_cost = 3e4;
    return call.desc;
}

// A separate buffer for each binding of a plan, exactly as large as needed.
class FakeBindings {
  public:
    explicit FakeBindings(const FoveaPlanInfo& info) {
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (info.binding_mask >> i & 1) bindings[i] = {handle(i + 1), 0, info.binding_bytes[i]};
        }
        if (info.workspace_bytes) record.workspace = {handle(100), 0, info.workspace_bytes};
        record.struct_size = sizeof record;
        record.binding_count = FOVEA_BIND_COUNT;
        record.bindings = bindings;
        record.slice_count = info.slice_count;
    }
    FakeBindings(const FakeBindings&) = delete;
    FakeBindings& operator=(const FakeBindings&) = delete;
    static VkBuffer handle(uint64_t id) { return (VkBuffer)(0xb0000 + id); }

    FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
    FoveaRecord record{};
};

}  // namespace fovea::test

#include "support/fake_vulkan.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fovea::test {

// Handles of objects are counters; dispatchable ones point to the Handle of their owner.
struct FakeVulkan::Functions {
    template <class T>
    static FakeVulkan& of(T dispatchable) {
        return *reinterpret_cast<Handle*>(dispatchable)->owner;
    }
    template <class T>
    static uint64_t id_of(T handle) {
        return (uint64_t)handle;
    }

    // ---- physical device
    // ---------------------------------------------------------------------------------------------

    static VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceProperties(VkPhysicalDevice physical_device,
                                                                    VkPhysicalDeviceProperties* out) {
        const FakeDevice& d = of(physical_device).played_;
        *out = {};
        out->apiVersion = d.api_version;
        out->driverVersion = d.driver_version;
        out->vendorID = d.vendor_id;
        out->deviceID = d.device_id;
        out->deviceType = d.type;
        strcpy(out->deviceName, "fake device");
        memcpy(out->pipelineCacheUUID, d.cache_uuid, VK_UUID_SIZE);
        VkPhysicalDeviceLimits& limits = out->limits;
        limits.maxComputeWorkGroupInvocations = d.max_invocations;
        std::copy_n(d.max_group_sizes, 3, limits.maxComputeWorkGroupSize);
        std::copy_n(d.max_group_counts, 3, limits.maxComputeWorkGroupCount);
        limits.maxBoundDescriptorSets = d.max_bound_sets;
        limits.maxPerStageDescriptorStorageBuffers = d.max_stage_buffers;
        limits.maxPerStageResources = d.max_stage_resources;
        limits.maxDescriptorSetStorageBuffers = d.max_set_buffers;
        limits.maxComputeSharedMemorySize = d.max_shared_bytes;
        limits.maxPushConstantsSize = d.max_push_bytes;
        limits.maxStorageBufferRange = d.max_storage_range;
        limits.minStorageBufferOffsetAlignment = d.offset_alignment;
    }

    static VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceProperties2(VkPhysicalDevice physical_device,
                                                                     VkPhysicalDeviceProperties2* out) {
        const FakeDevice& d = of(physical_device).played_;
        vkGetPhysicalDeviceProperties(physical_device, &out->properties);
        for (auto* item = static_cast<VkBaseOutStructure*>(out->pNext); item; item = item->pNext) {
            if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES) {
                auto* s = reinterpret_cast<VkPhysicalDeviceSubgroupProperties*>(item);
                s->subgroupSize = d.subgroup_size;
                s->supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
                s->supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                         VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
            } else if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES) {
                auto* s = reinterpret_cast<VkPhysicalDeviceSubgroupSizeControlProperties*>(item);
                s->minSubgroupSize = d.min_subgroup_size;
                s->maxSubgroupSize = d.max_subgroup_size;
                s->requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
                s->maxComputeWorkgroupSubgroups = d.max_workgroup_subgroups;
            } else if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR) {
                reinterpret_cast<VkPhysicalDevicePushDescriptorPropertiesKHR*>(item)->maxPushDescriptors =
                    d.max_push_descriptors;
            } else if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV) {
                reinterpret_cast<VkPhysicalDeviceShaderSMBuiltinsPropertiesNV*>(item)->shaderSMCount = 20;
            } else if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV) {
                auto* p = reinterpret_cast<VkPhysicalDeviceCooperativeMatrix2PropertiesNV*>(item);
                p->cooperativeMatrixFlexibleDimensionsMaxDimension = 1024;
                p->cooperativeMatrixWorkgroupScopeReservedSharedMemory = 512;
            }
        }
    }

    static VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceFeatures2(VkPhysicalDevice physical_device,
                                                                   VkPhysicalDeviceFeatures2* out) {
        const FakeDevice& d = of(physical_device).played_;
        for (auto* item = static_cast<VkBaseOutStructure*>(out->pNext); item; item = item->pNext) {
            switch (int(item->sType)) {
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES:
                    reinterpret_cast<VkPhysicalDevice16BitStorageFeatures*>(item)->storageBuffer16BitAccess =
                        d.storage_16bit;
                    break;
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES:
                    reinterpret_cast<VkPhysicalDeviceShaderFloat16Int8Features*>(item)->shaderFloat16 =
                        d.float16;
                    break;
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES: {
                    auto* f = reinterpret_cast<VkPhysicalDeviceSubgroupSizeControlFeatures*>(item);
                    f->subgroupSizeControl = f->computeFullSubgroups = d.subgroup_size_control;
                    break;
                }
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES: {
                    auto* f = reinterpret_cast<VkPhysicalDeviceVulkanMemoryModelFeatures*>(item);
                    f->vulkanMemoryModel = d.memory_model;
                    f->vulkanMemoryModelDeviceScope = d.memory_model_device_scope;
                    break;
                }
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR:
                    reinterpret_cast<VkPhysicalDeviceCooperativeMatrixFeaturesKHR*>(item)->cooperativeMatrix =
                        d.coopmat;
                    break;
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR: {
                    auto* f = reinterpret_cast<VkPhysicalDeviceShaderBfloat16FeaturesKHR*>(item);
                    f->shaderBFloat16Type = f->shaderBFloat16CooperativeMatrix = d.bfloat16;
                    break;
                }
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES:
                    reinterpret_cast<VkPhysicalDeviceMaintenance4Features*>(item)->maintenance4 = VK_TRUE;
                    break;
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV: {
                    auto* f = reinterpret_cast<VkPhysicalDeviceCooperativeMatrix2FeaturesNV*>(item);
                    f->cooperativeMatrixFlexibleDimensions = f->cooperativeMatrixReductions =
                        f->cooperativeMatrixConversions = f->cooperativeMatrixPerElementOperations =
                            d.coopmat2;
                    f->cooperativeMatrixWorkgroupScope = d.workgroup_matrices;
                    break;
                }
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_4_FEATURES:
                    reinterpret_cast<VkPhysicalDeviceVulkan14Features*>(item)->pushDescriptor = d.core_push;
                    break;
                case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT:
                    reinterpret_cast<VkPhysicalDeviceFaultFeaturesEXT*>(item)->deviceFault = d.device_fault;
                    break;
                default:
                    break;
            }
        }
    }

    static VKAPI_ATTR VkResult VKAPI_CALL vkGetDeviceFaultInfoEXT(VkDevice device, VkDeviceFaultCountsEXT*,
                                                                  VkDeviceFaultInfoEXT* info) {
        of(device).log("vkGetDeviceFaultInfoEXT");
        if (info) strcpy(info->description, "page fault at a fake address");
        return VK_INCOMPLETE;
    }

    static VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceQueueFamilyProperties(
        VkPhysicalDevice physical_device, uint32_t* count, VkQueueFamilyProperties* out) {
        const FakeDevice& d = of(physical_device).played_;
        if (out && *count) out[0] = {d.queue_flags, 1, d.timestamp_bits, {1, 1, 1}};
        *count = 1;
    }

    static VKAPI_ATTR VkResult VKAPI_CALL vkEnumerateDeviceExtensionProperties(
        VkPhysicalDevice physical_device, const char*, uint32_t* count, VkExtensionProperties* out) {
        FakeVulkan& f = of(physical_device);
        if (const VkResult r = f.failable("vkEnumerateDeviceExtensionProperties")) return r;
        const auto total = static_cast<uint32_t>(f.played_.extensions.size());
        if (!out) {
            *count = total;
            return VK_SUCCESS;
        }
        *count = std::min(*count, total);
        for (uint32_t i = 0; i < *count; ++i) {
            out[i] = {};
            strcpy(out[i].extensionName, f.played_.extensions[i].c_str());
        }
        return *count < total ? VK_INCOMPLETE : VK_SUCCESS;
    }

    static VKAPI_ATTR VkResult VKAPI_CALL vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(
        VkPhysicalDevice physical_device, uint32_t* count, VkCooperativeMatrixPropertiesKHR* out) {
        FakeVulkan& f = of(physical_device);
        if (const VkResult r = f.failable("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")) return r;
        const std::vector<FakeDevice::MatrixShape>& shapes = f.played_.matrix_shapes;
        const auto total = uint32_t(shapes.size());
        if (!out) {
            *count = total;
            return VK_SUCCESS;
        }
        *count = std::min(*count, total);
        for (uint32_t i = 0; i < *count; ++i) {
            const FakeDevice::MatrixShape& s = shapes[i];
            out[i].MSize = s.m;
            out[i].NSize = s.n;
            out[i].KSize = s.k;
            out[i].AType = out[i].BType = s.factor;
            out[i].CType = out[i].ResultType = s.sum;
            out[i].scope = VK_SCOPE_SUBGROUP_KHR;
        }
        return *count < 4 ? VK_INCOMPLETE : VK_SUCCESS;
    }

    static VKAPI_ATTR VkResult VKAPI_CALL vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV(
        VkPhysicalDevice physical_device, uint32_t* count,
        VkCooperativeMatrixFlexibleDimensionsPropertiesNV* out) {
        FakeVulkan& f = of(physical_device);
        if (const VkResult r =
                f.failable("vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV"))
            return r;
        struct Kind {
            uint32_t m, n, k, threads;
            VkComponentTypeKHR sum;
        };
        static constexpr Kind kKinds[] = {{32, 32, 16, 256, VK_COMPONENT_TYPE_FLOAT32_KHR},
                                          {16, 8, 16, 0, VK_COMPONENT_TYPE_FLOAT32_KHR},
                                          {32, 16, 16, 64, VK_COMPONENT_TYPE_FLOAT16_KHR},
                                          {32, 16, 16, 128, VK_COMPONENT_TYPE_FLOAT32_KHR}};
        if (!out) {
            *count = 4;
            return VK_SUCCESS;
        }
        *count = std::min(*count, 4u);
        for (uint32_t i = 0; i < *count; ++i) {
            const Kind& kind = kKinds[i];
            out[i].MGranularity = kind.m;
            out[i].NGranularity = kind.n;
            out[i].KGranularity = kind.k;
            out[i].AType = out[i].BType = VK_COMPONENT_TYPE_FLOAT16_KHR;
            out[i].CType = out[i].ResultType = kind.sum;
            out[i].scope = kind.threads ? VK_SCOPE_WORKGROUP_KHR : VK_SCOPE_SUBGROUP_KHR;
            out[i].workgroupInvocations = kind.threads;
        }
        return *count < 4 ? VK_INCOMPLETE : VK_SUCCESS;
    }

    // ---- objects
    // -----------------------------------------------------------------------------------------------------

    template <class Handle, class Info>
    static VkResult create_object(const char* kind, const char* call, VkDevice device, const Info*,
                                  const VkAllocationCallbacks* callbacks, Handle* out) {
        FakeVulkan& f = of(device);
        *out = VK_NULL_HANDLE;
        if (const VkResult r = f.failable(call)) return r;
        *out = (Handle)f.create(kind, callbacks);
        return VK_SUCCESS;
    }

#define FAKE_OBJECT(Name)                                                                                   \
    static VKAPI_ATTR VkResult VKAPI_CALL vkCreate##Name(VkDevice device, const Vk##Name##CreateInfo* info, \
                                                         const VkAllocationCallbacks* callbacks,            \
                                                         Vk##Name* out) {                                   \
        return create_object(#Name, "vkCreate" #Name, device, info, callbacks, out);                        \
    }                                                                                                       \
    static VKAPI_ATTR void VKAPI_CALL vkDestroy##Name(VkDevice device, Vk##Name object,                     \
                                                      const VkAllocationCallbacks* callbacks) {             \
        of(device).destroy(#Name, "vkDestroy" #Name, id_of(object), callbacks);                             \
    }
    FAKE_OBJECT(ShaderModule)
    FAKE_OBJECT(DescriptorSetLayout)
    FAKE_OBJECT(PipelineLayout)
#undef FAKE_OBJECT

    static VKAPI_ATTR VkResult VKAPI_CALL vkCreatePipelineCache(VkDevice device,
                                                                const VkPipelineCacheCreateInfo* info,
                                                                const VkAllocationCallbacks* callbacks,
                                                                VkPipelineCache* out) {
        FakeVulkan& f = of(device);
        f.initial_cache_data_.assign(static_cast<const char*>(info->pInitialData), info->initialDataSize);
        return create_object("PipelineCache", "vkCreatePipelineCache", device, info, callbacks, out);
    }
    static VKAPI_ATTR void VKAPI_CALL vkDestroyPipelineCache(VkDevice device, VkPipelineCache object,
                                                             const VkAllocationCallbacks* callbacks) {
        of(device).destroy("PipelineCache", "vkDestroyPipelineCache", id_of(object), callbacks);
    }

    static VKAPI_ATTR VkResult VKAPI_CALL vkGetPipelineCacheData(VkDevice device, VkPipelineCache cache,
                                                                 size_t* size, void* data) {
        FakeVulkan& f = of(device);
        f.expect("PipelineCache", "vkGetPipelineCacheData", id_of(cache));
        if (const VkResult r = f.failable("vkGetPipelineCacheData")) return r;
        VkPipelineCacheHeaderVersionOne header{sizeof header,
                                               VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
                                               f.played_.vendor_id,
                                               f.played_.device_id + f.cache_header_device_,
                                               {}};
        memcpy(header.pipelineCacheUUID, f.played_.cache_uuid, VK_UUID_SIZE);
        std::string all(reinterpret_cast<const char*>(&header), sizeof header);
        all += f.cache_payload_;
        if (!data) {
            *size = all.size();
            if (f.cache_grows_) f.cache_payload_ += "more";
            return VK_SUCCESS;
        }
        const bool cut = *size < all.size();
        *size = std::min(*size, all.size());
        memcpy(data, all.data(), *size);
        return cut ? VK_INCOMPLETE : VK_SUCCESS;
    }

    static VKAPI_ATTR VkResult VKAPI_CALL vkCreateComputePipelines(VkDevice device, VkPipelineCache cache,
                                                                   uint32_t count,
                                                                   const VkComputePipelineCreateInfo* infos,
                                                                   const VkAllocationCallbacks* callbacks,
                                                                   VkPipeline* out) {
        FakeVulkan& f = of(device);
        if (count != 1) f.mistake("vkCreateComputePipelines: this fake makes one at a time");
        f.expect("PipelineCache", "vkCreateComputePipelines", id_of(cache));
        f.expect("ShaderModule", "vkCreateComputePipelines", id_of(infos->stage.module));
        f.expect("PipelineLayout", "vkCreateComputePipelines", id_of(infos->layout));
        // Kernels that ask for a size of subgroups count on every lane of each.
        for (auto* next = static_cast<const VkBaseInStructure*>(infos->stage.pNext); next; next = next->pNext)
            if (next->sType == VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO &&
                !(infos->stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT))
                f.mistake("vkCreateComputePipelines: a size of subgroups, but not full ones");
        return create_object("Pipeline", "vkCreateComputePipelines", device, infos, callbacks, out);
    }
    static VKAPI_ATTR void VKAPI_CALL vkDestroyPipeline(VkDevice device, VkPipeline object,
                                                        const VkAllocationCallbacks* callbacks) {
        of(device).destroy("Pipeline", "vkDestroyPipeline", id_of(object), callbacks);
    }

    static VKAPI_ATTR VkResult VKAPI_CALL vkAllocateDescriptorSets(VkDevice device,
                                                                   const VkDescriptorSetAllocateInfo* info,
                                                                   VkDescriptorSet* out) {
        FakeVulkan& f = of(device);
        f.expect("DescriptorSetLayout", "vkAllocateDescriptorSets", id_of(info->pSetLayouts[0]));
        if (const VkResult r = f.failable("vkAllocateDescriptorSets")) return r;
        *out = (VkDescriptorSet)(f.next_id_++);  // goes with its pool, which is the host's
        return VK_SUCCESS;
    }
    static VKAPI_ATTR void VKAPI_CALL vkUpdateDescriptorSets(VkDevice device, uint32_t,
                                                             const VkWriteDescriptorSet*, uint32_t,
                                                             const VkCopyDescriptorSet*) {
        of(device).log("vkUpdateDescriptorSets");
    }
    static VKAPI_ATTR VkResult VKAPI_CALL
    vkSetDebugUtilsObjectNameEXT(VkDevice device, const VkDebugUtilsObjectNameInfoEXT* info) {
        of(device).log(std::string("vkSetDebugUtilsObjectNameEXT ") + info->pObjectName);
        return VK_SUCCESS;
    }

    // ---- commands
    // ----------------------------------------------------------------------------------------------------

    static VKAPI_ATTR void VKAPI_CALL vkCmdBindPipeline(VkCommandBuffer cmd, VkPipelineBindPoint,
                                                        VkPipeline pipeline) {
        of(cmd).log("vkCmdBindPipeline");
        of(cmd).expect("Pipeline", "vkCmdBindPipeline", id_of(pipeline));
    }
    static VKAPI_ATTR void VKAPI_CALL vkCmdBindDescriptorSets(VkCommandBuffer cmd, VkPipelineBindPoint,
                                                              VkPipelineLayout layout, uint32_t, uint32_t,
                                                              const VkDescriptorSet*, uint32_t,
                                                              const uint32_t*) {
        of(cmd).log("vkCmdBindDescriptorSets");
        of(cmd).expect("PipelineLayout", "vkCmdBindDescriptorSets", id_of(layout));
    }
    static VKAPI_ATTR void VKAPI_CALL vkCmdPushConstants(VkCommandBuffer cmd, VkPipelineLayout layout,
                                                         VkShaderStageFlags, uint32_t offset, uint32_t size,
                                                         const void*) {
        FakeVulkan& f = of(cmd);
        f.log("vkCmdPushConstants " + std::to_string(size));
        f.expect("PipelineLayout", "vkCmdPushConstants", id_of(layout));
        if (offset + size > f.played_.max_push_bytes) f.mistake("vkCmdPushConstants: past the limit");
    }
    static VKAPI_ATTR void VKAPI_CALL vkCmdPushDescriptorSetKHR(VkCommandBuffer cmd, VkPipelineBindPoint,
                                                                VkPipelineLayout, uint32_t, uint32_t count,
                                                                const VkWriteDescriptorSet* writes) {
        FakeVulkan& f = of(cmd);
        f.log("vkCmdPushDescriptorSetKHR " + std::to_string(count));
        for (uint32_t i = 0; i < count; ++i) {
            const VkDescriptorBufferInfo& b = *writes[i].pBufferInfo;
            if (b.offset % f.played_.offset_alignment) f.mistake("a descriptor's offset is misaligned");
            if (b.range == 0 || b.range > f.played_.max_storage_range) f.mistake("a descriptor's range");
        }
    }
    static VKAPI_ATTR void VKAPI_CALL vkCmdDispatch(VkCommandBuffer cmd, uint32_t x, uint32_t y, uint32_t z) {
        of(cmd).log("vkCmdDispatch " + std::to_string(x) + " " + std::to_string(y) + " " + std::to_string(z));
    }
    static VKAPI_ATTR void VKAPI_CALL vkCmdPipelineBarrier(VkCommandBuffer cmd, VkPipelineStageFlags from,
                                                           VkPipelineStageFlags to, VkDependencyFlags,
                                                           uint32_t memory_count,
                                                           const VkMemoryBarrier* memory, uint32_t buffers,
                                                           const VkBufferMemoryBarrier*, uint32_t images,
                                                           const VkImageMemoryBarrier*) {
        const bool as_documented =
            from == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && to == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT &&
            memory_count == 1 && buffers == 0 && images == 0 &&
            memory->srcAccessMask == VK_ACCESS_SHADER_WRITE_BIT &&
            memory->dstAccessMask == (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
        of(cmd).log(as_documented ? "vkCmdPipelineBarrier compute->compute" : "vkCmdPipelineBarrier other");
    }
    static VKAPI_ATTR void VKAPI_CALL vkCmdWriteTimestamp(VkCommandBuffer cmd, VkPipelineStageFlagBits,
                                                          VkQueryPool, uint32_t query) {
        of(cmd).log("vkCmdWriteTimestamp " + std::to_string(query));
    }
    static VKAPI_ATTR void VKAPI_CALL vkCmdBeginDebugUtilsLabelEXT(VkCommandBuffer cmd,
                                                                   const VkDebugUtilsLabelEXT* label) {
        of(cmd).log(std::string("vkCmdBeginDebugUtilsLabelEXT ") + label->pLabelName);
    }
    static VKAPI_ATTR void VKAPI_CALL vkCmdEndDebugUtilsLabelEXT(VkCommandBuffer cmd) {
        of(cmd).log("vkCmdEndDebugUtilsLabelEXT");
    }

    // ---- getters
    // -----------------------------------------------------------------------------------------------------

    // Commands by whose presence a guest may see the version of the instance; 0: not one of them.
    static uint32_t core_version_of(const char* name) {
        if (strcmp(name, "vkResetQueryPool") == 0) return VK_API_VERSION_1_2;
        if (strcmp(name, "vkCmdPipelineBarrier2") == 0) return VK_API_VERSION_1_3;
        if (strcmp(name, "vkCmdPushDescriptorSet") == 0) return VK_API_VERSION_1_4;
        return 0;
    }
    static VKAPI_ATTR void VKAPI_CALL not_to_be_called() { std::abort(); }

    static PFN_vkVoidFunction lookup(FakeVulkan& f, const char* name) {
        if (f.hidden_.count(name)) return nullptr;
        if (strstr(name, "DebugUtils") && !f.played_.debug_utils) return nullptr;
        if (const uint32_t version = core_version_of(name))
            return version <= f.played_.instance_version && version <= f.played_.api_version
                       ? reinterpret_cast<PFN_vkVoidFunction>(&Functions::not_to_be_called)
                       : nullptr;
#define FAKE_FUNCTION(function) \
    if (strcmp(name, #function) == 0) return reinterpret_cast<PFN_vkVoidFunction>(&Functions::function);
        FAKE_FUNCTION(vkGetPhysicalDeviceProperties)
        FAKE_FUNCTION(vkGetPhysicalDeviceProperties2)
        FAKE_FUNCTION(vkGetPhysicalDeviceFeatures2)
        FAKE_FUNCTION(vkGetPhysicalDeviceQueueFamilyProperties)
        FAKE_FUNCTION(vkEnumerateDeviceExtensionProperties)
        FAKE_FUNCTION(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)
        FAKE_FUNCTION(vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV)
        FAKE_FUNCTION(vkCreatePipelineCache)
        FAKE_FUNCTION(vkDestroyPipelineCache)
        FAKE_FUNCTION(vkGetPipelineCacheData)
        FAKE_FUNCTION(vkCreateShaderModule)
        FAKE_FUNCTION(vkDestroyShaderModule)
        FAKE_FUNCTION(vkCreateDescriptorSetLayout)
        FAKE_FUNCTION(vkDestroyDescriptorSetLayout)
        FAKE_FUNCTION(vkCreatePipelineLayout)
        FAKE_FUNCTION(vkDestroyPipelineLayout)
        FAKE_FUNCTION(vkCreateComputePipelines)
        FAKE_FUNCTION(vkDestroyPipeline)
        FAKE_FUNCTION(vkAllocateDescriptorSets)
        FAKE_FUNCTION(vkUpdateDescriptorSets)
        FAKE_FUNCTION(vkCmdBindPipeline)
        FAKE_FUNCTION(vkCmdBindDescriptorSets)
        FAKE_FUNCTION(vkCmdPushConstants)
        FAKE_FUNCTION(vkCmdPushDescriptorSetKHR)
        FAKE_FUNCTION(vkCmdDispatch)
        FAKE_FUNCTION(vkCmdPipelineBarrier)
        FAKE_FUNCTION(vkCmdWriteTimestamp)
        FAKE_FUNCTION(vkSetDebugUtilsObjectNameEXT)
        FAKE_FUNCTION(vkGetDeviceFaultInfoEXT)
        FAKE_FUNCTION(vkCmdBeginDebugUtilsLabelEXT)
        FAKE_FUNCTION(vkCmdEndDebugUtilsLabelEXT)
        FAKE_FUNCTION(vkGetDeviceProcAddr)
#undef FAKE_FUNCTION
        return nullptr;
    }
    static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                                          const char* name) {
        return lookup(of(instance), name);
    }
    static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice device, const char* name) {
        return lookup(of(device), name);
    }

    // ---- allocation callbacks
    // ------------------------------------------------------------------------------------------

    static VKAPI_ATTR void* VKAPI_CALL allocate(void* user, size_t size, size_t, VkSystemAllocationScope) {
        ++static_cast<FakeVulkan*>(user)->live_allocations_;
        return std::malloc(size);
    }
    static VKAPI_ATTR void* VKAPI_CALL reallocate(void*, void*, size_t, size_t, VkSystemAllocationScope) {
        return nullptr;
    }
    static VKAPI_ATTR void VKAPI_CALL release(void* user, void* memory) {
        if (!memory) return;
        --static_cast<FakeVulkan*>(user)->live_allocations_;
        std::free(memory);
    }
};

FakeVulkan::FakeVulkan(const FakeDevice& device) : played_(device) {
    callbacks_.pUserData = this;
    callbacks_.pfnAllocation = Functions::allocate;
    callbacks_.pfnReallocation = Functions::reallocate;
    callbacks_.pfnFree = Functions::release;
}
FakeVulkan::~FakeVulkan() {
    for (const auto& [id, object] : objects_) std::free(object.allocation);
}

PFN_vkGetInstanceProcAddr FakeVulkan::instance_getter() { return Functions::vkGetInstanceProcAddr; }
PFN_vkGetDeviceProcAddr FakeVulkan::device_getter() { return Functions::vkGetDeviceProcAddr; }
VkInstance FakeVulkan::instance() { return reinterpret_cast<VkInstance>(&handle_); }
VkPhysicalDevice FakeVulkan::physical_device() { return reinterpret_cast<VkPhysicalDevice>(&handle_); }
VkDevice FakeVulkan::device() { return reinterpret_cast<VkDevice>(&handle_); }
VkCommandBuffer FakeVulkan::command_buffer() { return reinterpret_cast<VkCommandBuffer>(&handle_); }

void FakeVulkan::fail_call(uint32_t n, VkResult result) {
    failable_calls_ = 0;
    fail_at_ = n;
    fail_with_ = result;
}

std::vector<std::string> FakeVulkan::calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
}
std::vector<std::string> FakeVulkan::mistakes() const {
    std::lock_guard lock(mutex_);
    return mistakes_;
}
void FakeVulkan::forget_calls() {
    std::lock_guard lock(mutex_);
    calls_.clear();
    failable_calls_ = 0;
}

uint32_t FakeVulkan::count(std::string_view name) const {
    std::lock_guard lock(mutex_);
    return static_cast<uint32_t>(std::count_if(calls_.begin(), calls_.end(),
                                               [&](const std::string& c) { return c.starts_with(name); }));
}

VkResult FakeVulkan::failable(const char* name) {
    std::lock_guard lock(mutex_);
    calls_.emplace_back(name);
    return ++failable_calls_ == fail_at_ ? fail_with_ : VK_SUCCESS;
}

void FakeVulkan::log(std::string call) {
    std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
}
void FakeVulkan::mistake(std::string text) {
    std::lock_guard lock(mutex_);
    mistakes_.push_back(std::move(text));
}

uint64_t FakeVulkan::create(const char* kind, const VkAllocationCallbacks* callbacks) {
    std::lock_guard lock(mutex_);
    void* allocation =
        callbacks ? callbacks->pfnAllocation(callbacks->pUserData, 16, 8, VK_SYSTEM_ALLOCATION_SCOPE_OBJECT)
                  : nullptr;
    const uint64_t id = next_id_++;
    objects_[id] = {kind, allocation};
    return id;
}

void FakeVulkan::destroy(const char* kind, const char* call, uint64_t id,
                         const VkAllocationCallbacks* callbacks) {
    if (id == 0 || !expect(kind, call, id)) return;
    std::lock_guard lock(mutex_);
    calls_.emplace_back(call);
    const auto found = objects_.find(id);
    if ((found->second.allocation != nullptr) != (callbacks != nullptr))
        mistakes_.push_back(std::string(call) + ": other callbacks than at creation");
    else if (callbacks)
        callbacks->pfnFree(callbacks->pUserData, found->second.allocation);
    objects_.erase(found);
}

bool FakeVulkan::expect(const char* kind, const char* call, uint64_t id) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(id);
    const bool right = found != objects_.end() && strcmp(found->second.kind, kind) == 0;
    if (!right) mistakes_.push_back(std::string(call) + ": no such " + kind);
    return right;
}

}  // namespace fovea::test

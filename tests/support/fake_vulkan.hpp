// A Vulkan implementation that only keeps records: which functions were called in which order, which objects
// and allocations are alive, and which misuse it saw. Any failable call can be made to fail. Tests pass it to
// Fovea as the application's two getters.
#pragma once

#include "vulkan/bfloat16.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::test {

// The device it plays. The defaults are a small, current GPU with everything that Fovea can use.
struct FakeDevice {
    uint32_t api_version = VK_API_VERSION_1_3;
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    uint32_t vendor_id = 0x10de, device_id = 0x1234, driver_version = 7;
    uint8_t cache_uuid[VK_UUID_SIZE] = {1, 2, 3, 4};
    uint32_t max_invocations = 256, max_shared_bytes = 32768, max_push_bytes = 128;
    uint32_t offset_alignment = 256, max_storage_range = 1u << 27;
    uint32_t max_bound_sets = 4;
    // Limits of storage buffers: of a stage, of a stage's resources of all kinds, of a set, of a push.
    uint32_t max_stage_buffers = 16, max_stage_resources = 128, max_set_buffers = 24,
             max_push_descriptors = 32;
    uint32_t max_group_counts[3] = {65535, 65535, 65535}, max_group_sizes[3] = {256, 128, 64};
    uint32_t max_workgroup_subgroups = 32;
    // The version of the instance: the device's getter gives no command of a later version.
    uint32_t instance_version = VK_API_VERSION_1_3;
    uint32_t timestamp_bits = 64;
    VkQueueFlags queue_flags = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
    uint32_t subgroup_size = 32, min_subgroup_size = 16, max_subgroup_size = 64;
    bool storage_16bit = true, float16 = true, subgroup_size_control = true, memory_model = true,
         memory_model_device_scope = false, coopmat = true;
    // Cooperative matrices, in the order in which the driver lists them.
    struct MatrixShape {
        uint32_t m, n, k;
        VkComponentTypeKHR sum, factor = VK_COMPONENT_TYPE_FLOAT16_KHR;
    };
    std::vector<MatrixShape> matrix_shapes = {{8, 8, 8, VK_COMPONENT_TYPE_FLOAT32_KHR},
                                              {16, 16, 16, VK_COMPONENT_TYPE_FLOAT16_KHR},
                                              {16, 16, 16, VK_COMPONENT_TYPE_FLOAT32_KHR},
                                              {32, 32, 32, VK_COMPONENT_TYPE_FLOAT32_KHR}};
    bool bfloat16 = false;                              // VK_KHR_shader_bfloat16
    bool coopmat2 = false, workgroup_matrices = false;  // VK_NV_cooperative_matrix2
    std::vector<std::string> extensions = {"VK_KHR_push_descriptor", "VK_KHR_cooperative_matrix",
                                           "VK_NV_shader_sm_builtins"};
    bool core_push = false;    // push descriptors of Vulkan 1.4, which need no extension
    bool debug_utils = false;  // an instance extension
    bool device_fault = false;
};

class FakeVulkan {
  public:
    explicit FakeVulkan(const FakeDevice& device = {});
    ~FakeVulkan();
    FakeVulkan(const FakeVulkan&) = delete;
    FakeVulkan& operator=(const FakeVulkan&) = delete;

    static PFN_vkGetInstanceProcAddr instance_getter();
    static PFN_vkGetDeviceProcAddr device_getter();
    VkInstance instance();
    VkPhysicalDevice physical_device();
    VkDevice device();
    VkCommandBuffer command_buffer();
    // Counts what the objects of this device allocate.
    const VkAllocationCallbacks* callbacks() const { return &callbacks_; }

    // Getters return null for this function from now on.
    void hide(const std::string& function) { hidden_.insert(function); }
    // The n-th failable call from now on (1: the next) returns `result`; 0: none.
    void fail_call(uint32_t n, VkResult result);
    // The data that vkGetPipelineCacheData returns after its header.
    void set_cache_payload(std::string payload) { cache_payload_ = std::move(payload); }
    // The header that Vulkan defines then names another device than the one whose cache it is.
    void misname_cache_header() { cache_header_device_ = 1; }
    // Grows the cache between the two calls of vkGetPipelineCacheData.
    void grow_cache_between_calls() { cache_grows_ = true; }

    // Failable calls since the last reset.
    uint32_t failable_calls() const { return failable_calls_; }
    // Names in order; vkCmd* with their numbers: "vkCmdDispatch 4 2 1", "vkCmdPipelineBarrier
    // compute->compute".
    std::vector<std::string> calls() const;
    uint32_t count(std::string_view name) const;  // calls that begin with `name`
    void forget_calls();
    size_t live_objects() const { return objects_.size(); }
    size_t live_allocations() const { return live_allocations_; }
    // "vkDestroyPipeline: no such object", ...; empty in a sound program.
    std::vector<std::string> mistakes() const;
    std::string last_initial_cache_data() const { return initial_cache_data_; }

    struct Functions;  // the functions themselves, in the .cpp file

  private:
    friend struct Functions;
    struct Object {
        const char* kind;
        void* allocation;
    };
    struct Handle {  // target of dispatchable handles
        FakeVulkan* owner;
    };
    VkResult failable(const char* name);
    void log(std::string call);
    void mistake(std::string text);
    uint64_t create(const char* kind, const VkAllocationCallbacks* callbacks);
    void destroy(const char* kind, const char* call, uint64_t id, const VkAllocationCallbacks* callbacks);
    bool expect(const char* kind, const char* call, uint64_t id);

    FakeDevice played_;
    Handle handle_{this};
    VkAllocationCallbacks callbacks_{};
    std::set<std::string> hidden_;
    mutable std::mutex mutex_;
    std::vector<std::string> calls_, mistakes_;
    std::map<uint64_t, Object> objects_;
    uint64_t next_id_ = 0x1000;
    size_t live_allocations_ = 0;
    uint32_t failable_calls_ = 0, fail_at_ = 0;
    VkResult fail_with_ = VK_SUCCESS;
    std::string cache_payload_ = "payload", initial_cache_data_;
    bool cache_grows_ = false;
    uint32_t cache_header_device_ = 0;  // added to the device's number
};

}  // namespace fovea::test

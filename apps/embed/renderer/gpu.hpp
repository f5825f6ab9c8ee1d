// The parts that every renderer has, with or without attention: a Vulkan 1.3 device with one queue, VMA,
// buffers, and its own passes. Shared by the flock and the denoiser.
#pragma once

#include <volk.h>

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#include <vk_mem_alloc.h>

#include <fovea/fovea_vulkan.h>

#include <cstdint>
#include <span>
#include <vector>

namespace embed {

constexpr uint32_t kFramesInFlight = 2;

extern const char* const kProgram;  // the program's name for messages: each program defines it

// Ends the program with a message. A program may, a library must not.
void require(bool ok, const char* what);
void check(VkResult result, const char* what);

struct Buffer {
    VkBuffer handle = VK_NULL_HANDLE;
    VmaAllocation memory = nullptr;
    uint64_t size = 0;
    void* mapped = nullptr;
};
struct Image {
    VkImage handle = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    VmaAllocation memory = nullptr;
};

// The passes of one renderer share a layout: storage buffers 0 to buffers - 1 in set 0, and push constants.
struct PassLayout {
    uint32_t buffers, push_bytes;
    uint32_t sets;  // limit of the sets that descriptor_set makes
};
constexpr uint32_t kMaxPassBuffers = 8;
constexpr VkShaderStageFlags kPassStages =
    VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;

class Gpu {
  public:
    Gpu(std::span<const char* const> instance_extensions, bool present, const PassLayout& passes);
    ~Gpu();
    Gpu(const Gpu&) = delete;

    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties{};
    mutable FoveaEnabledFeatures enabled = foveaEnabledFeatures();  // as the device was created
    VkDevice device = VK_NULL_HANDLE;
    uint32_t queue_family = 0;
    VkQueue queue = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;

    Buffer buffer(uint64_t size, bool mapped = false) const;
    void destroy(const Buffer& buffer) const;
    Image color_image(VkExtent2D extent, VkFormat format) const;
    void destroy(const Image& image) const;
    VkImageView view(VkImage image, VkFormat format) const;
    VkPipeline compute(std::span<const uint32_t> code) const;
    // Makes a pipeline for triangles that the vertex shader computes only from the vertex index.
    VkPipeline triangles(std::span<const uint32_t> vertex, std::span<const uint32_t> fragment,
                         VkFormat format) const;
    VkDescriptorSet descriptor_set(std::span<const Buffer* const> buffers) const;
    // Binds pipeline, set and push constants of one pass.
    void cmd_bind(VkCommandBuffer cmd, VkPipelineBindPoint point, VkPipeline pipeline, VkDescriptorSet set,
                  const void* push) const;

  private:
    void open_device(bool present);
    void open_allocator();
    void make_layouts();
    VkShaderModule shader(std::span<const uint32_t> code) const;

    VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan12Features features12_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan13Features features13_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    PassLayout passes_;
    VmaAllocator allocator_ = nullptr;
    VkDescriptorPool sets_ = VK_NULL_HANDLE;
};

// Everything that compute and vertex shaders wrote before is seen by what they do after.
void cmd_shader_barrier(VkCommandBuffer cmd, VkPipelineStageFlags2 from, VkPipelineStageFlags2 to);

}  // namespace embed

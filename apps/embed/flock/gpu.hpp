// What a renderer has anyway: a Vulkan 1.3 device with one queue, VMA, buffers, and its own passes.
#pragma once

#include <volk.h>

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#include <vk_mem_alloc.h>

#include <fovea/fovea_vulkan.h>

#include <cstdint>
#include <span>
#include <vector>

namespace flock {

constexpr uint32_t kFramesInFlight = 2;

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

// The renderer's own passes have one layout: buffers 0 to 5 and push constants, see shaders/flock.glsl.
constexpr uint32_t kPassBuffers = 6;
struct PassPush {
    uint32_t bird_count;
    float near_reach, far_reach, seconds, attention_weight;
};

class Gpu {
  public:
    explicit Gpu(std::span<const char* const> instance_extensions, bool present);
    ~Gpu();
    Gpu(const Gpu&) = delete;

    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties{};
    FoveaDeviceEnables enabled = foveaDeviceEnables();  // as the device was created
    VkDevice device = VK_NULL_HANDLE;
    uint32_t queue_family = 0;
    VkQueue queue = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;

    Buffer buffer(uint64_t size, bool mapped = false) const;
    void destroy(const Buffer& buffer) const;
    Image colour_image(VkExtent2D extent, VkFormat format) const;
    void destroy(const Image& image) const;
    VkImageView view(VkImage image, VkFormat format) const;
    VkPipeline compute(std::span<const uint32_t> code) const;
    VkPipeline birds(std::span<const uint32_t> vertex, std::span<const uint32_t> fragment,
                     VkFormat format) const;
    VkDescriptorSet descriptor_set(const Buffer* const (&buffers)[kPassBuffers]) const;

  private:
    void open_device(bool present);
    void open_allocator();
    void make_layouts();
    VkShaderModule shader(std::span<const uint32_t> code) const;

    VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan12Features features12_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan13Features features13_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    VmaAllocator allocator_ = nullptr;
    VkDescriptorPool sets_ = VK_NULL_HANDLE;
};

// Everything that compute and vertex shaders wrote before is seen by what they do after.
void cmd_shader_barrier(VkCommandBuffer cmd, VkPipelineStageFlags2 from, VkPipelineStageFlags2 to);

}  // namespace flock

// A picture drawn without a window: color image, render pass, framebuffer and the way back to host memory.
#pragma once

#include "gpu/gpu_device.hpp"

#include <cstdint>
#include <vector>

namespace fovea::visualizer {

class OffscreenFrame {
  public:
    static Result<OffscreenFrame> create(GpuDevice& device, uint32_t width, uint32_t height);
    OffscreenFrame(OffscreenFrame&& other) noexcept;
    OffscreenFrame& operator=(OffscreenFrame&&) = delete;
    ~OffscreenFrame();

    VkRenderPass render_pass() const { return render_pass_; }
    VkExtent2D extent() const { return extent_; }
    void begin(VkCommandBuffer cmd, const float (&clear_rgb)[3]) const;
    // Ends the pass and copies the image to the read-back buffer.
    void end(VkCommandBuffer cmd) const;
    // 8-bit RGBA, rows from the top. Valid once the submission that held end() has finished.
    std::vector<std::byte> pixels() const;

  private:
    OffscreenFrame() = default;
    GpuDevice* device_ = nullptr;
    VkExtent2D extent_{};
    VkImage image_ = VK_NULL_HANDLE;
    VmaAllocation image_memory_ = VK_NULL_HANDLE;
    VkImageView view_ = VK_NULL_HANDLE;
    VkRenderPass render_pass_ = VK_NULL_HANDLE;
    VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
    VkBuffer readback_ = VK_NULL_HANDLE;
    VmaAllocation readback_memory_ = VK_NULL_HANDLE;
    std::byte* mapped_ = nullptr;
};

// One color attachment, cleared at the start, in `final_layout` at the end. Shared with the window's frames.
Result<VkRenderPass> create_render_pass(VkDevice device, VkFormat format, VkImageLayout final_layout);

}  // namespace fovea::visualizer

// The window's images, two frames in flight.
#pragma once

#include "gpu/gpu_device.hpp"

#include <array>

namespace fovea::visualizer {

class Swapchain {
  public:
    // Owns the surface from here on.
    static Result<std::unique_ptr<Swapchain>> create(GpuDevice& device, VkSurfaceKHR surface);
    ~Swapchain();
    Swapchain(const Swapchain&) = delete;
    Swapchain& operator=(const Swapchain&) = delete;

    VkRenderPass render_pass() const { return render_pass_; }
    VkExtent2D extent() const { return extent_; }
    uint32_t image_count() const { return uint32_t(images_.size()); }
    // Makes the images again for the window's size now; false while it has none (minimised).
    Result<bool> rebuild();

    // Waits for the frame before the last and gives its command buffer, begun; null when the images must be
    // made again.
    Result<VkCommandBuffer> begin_frame();
    void begin_pass(VkCommandBuffer cmd, const float (&clear_rgb)[3]) const;
    // Ends the pass, submits and shows. False when the images must be made again.
    Result<bool> end_frame(VkCommandBuffer cmd);

  private:
    explicit Swapchain(GpuDevice& device) : device_(device) {}
    struct Image {
        VkImageView view;
        VkFramebuffer framebuffer;
        VkSemaphore drawn;
    };
    struct Frame {
        VkCommandPool pool;
        VkCommandBuffer cmd;
        VkSemaphore acquired;
        VkFence done;
    };
    Result<void> create_frames();
    void destroy_images();

    GpuDevice& device_;
    VkSurfaceKHR surface_ = VK_NULL_HANDLE;
    VkSurfaceFormatKHR format_{};
    VkRenderPass render_pass_ = VK_NULL_HANDLE;
    VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
    VkExtent2D extent_{};
    std::vector<Image> images_;
    std::array<Frame, 2> frames_{};
    uint32_t frame_ = 0, image_ = 0;
};

}  // namespace fovea::visualizer

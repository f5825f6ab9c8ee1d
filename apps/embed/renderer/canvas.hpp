// The target of frames: an offscreen image that is read back at the end, or a window's swapchain.
#pragma once

#include "gpu.hpp"

#include <string>

struct GLFWwindow;

namespace embed {

class Canvas {
  public:
    // Without a window: an image of this size.
    Canvas(const Gpu& gpu, VkExtent2D extent);
    // Takes over the surface.
    Canvas(const Gpu& gpu, VkSurfaceKHR surface, VkExtent2D extent);
    ~Canvas();
    Canvas(const Canvas&) = delete;

    VkFormat format() const { return format_; }
    VkExtent2D extent() const { return extent_; }
    // Null without a window; the submission must wait for it, and signal the other.
    VkSemaphore acquired(uint32_t frame) const { return surface_ ? acquired_[frame] : VK_NULL_HANDLE; }
    VkSemaphore drawn() const { return surface_ ? drawn_[current_] : VK_NULL_HANDLE; }

    // False: the window has changed or is too small to draw; nothing was begun.
    bool begin(uint32_t frame);
    void cmd_begin_rendering(VkCommandBuffer cmd) const;
    void cmd_end_rendering(VkCommandBuffer cmd) const;
    void present();

    // The last frame's pixels as RGBA, after the device has finished.
    void save(const std::string& png_file, VkCommandPool commands) const;

  private:
    void rebuild();
    void destroy_views();

    const Gpu& gpu_;
    VkFormat format_ = VK_FORMAT_R8G8B8A8_UNORM;
    VkExtent2D extent_{};
    Image image_;
    VkSurfaceKHR surface_ = VK_NULL_HANDLE;
    VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
    std::vector<Image> images_;  // images of the swapchain, without their own memory
    VkSemaphore acquired_[kFramesInFlight] = {};
    std::vector<VkSemaphore> drawn_;
    uint32_t current_ = 0;
};

}  // namespace embed

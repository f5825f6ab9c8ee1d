// Dear ImGui on the program's device: set-up, fonts and drawing. One at a time in a process, like ImGui's
// context.
#pragma once

#include "gpu/gpu_device.hpp"
#include "theme/theme.hpp"

namespace fovea::visualizer {

class ImGuiBackend {
  public:
    // `image_count`: frames that may be drawn at once, at least 2.
    static Result<std::unique_ptr<ImGuiBackend>> create(GpuDevice& device, VkRenderPass render_pass,
                                                        uint32_t image_count, float scale,
                                                        const std::string& rare = {});
    ~ImGuiBackend();
    ImGuiBackend(const ImGuiBackend&) = delete;
    ImGuiBackend& operator=(const ImGuiBackend&) = delete;

    const Fonts& fonts() const { return fonts_; }
    // Loads fonts for another scale; the device must be idle. `rare` is text whose characters are needed in
    // addition to the usual ones.
    Result<void> reload_fonts(float scale, const std::string& rare);
    void new_frame();
    // Ends ImGui's frame and records it, inside the render pass; without Vulkan it only ends it.
    void draw(VkCommandBuffer cmd);

  private:
    explicit ImGuiBackend(GpuDevice& device) : device_(device) {}
    GpuDevice& device_;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    Fonts fonts_;
    bool ready_ = false;
};

}  // namespace fovea::visualizer

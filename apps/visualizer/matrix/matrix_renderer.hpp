// Draws matrices from the engine's storage buffers with a fragment shader, inside ImGui's own pass: no quad
// for each cell, no copy through the CPU.
#pragma once

#include "gpu/gpu_device.hpp"
#include "matrix/cpu_painter.hpp"
#include "shaders/matrix_view.h"

#include <imgui.h>

#include <array>
#include <deque>
#include <map>

namespace fovea::visualizer {

class MatrixRenderer {
  public:
    static Result<std::unique_ptr<MatrixRenderer>> create(GpuDevice& device, VkRenderPass render_pass);
    ~MatrixRenderer();
    MatrixRenderer(const MatrixRenderer&) = delete;
    MatrixRenderer& operator=(const MatrixRenderer&) = delete;

    // Before the panels of a frame are drawn: the command buffer that RenderDrawData will record into, and
    // the framebuffer's size in pixels.
    void begin_frame(VkCommandBuffer cmd, VkExtent2D extent);
    // Adds the picture to a draw list. `view` is in framebuffer pixels; target_* are filled in here. The
    // buffer must live until the frame has been drawn.
    // `hiding` (null: the values themselves) is read with MATRIX_FLAG_HIDING, `other` with
    // MATRIX_FLAG_DIFFERENCE.
    void add(ImDrawList& list, const GpuBuffer& values, const MatrixView& view,
             const GpuBuffer* hiding = nullptr, const GpuBuffer* other = nullptr);
    // Without Vulkan: paints what add() has put into a draw list; false for another callback's command.
    static bool paint(const ImDrawCmd& command, const PaintTarget& target);
    // A buffer is about to go: forget its descriptor sets. The device must be idle.
    void forget(VkBuffer buffer);

  private:
    explicit MatrixRenderer(GpuDevice& device) : device_(device) {}
    Result<void> create_layouts();
    Result<void> create_pipeline(VkRenderPass render_pass);
    Result<void> create_colors();
    VkDescriptorSet set_of(const GpuBuffer& values, const GpuBuffer& hiding, const GpuBuffer& other);
    static void draw_callback(const ImDrawList* list, const ImDrawCmd* command);

    struct Request {
        MatrixRenderer* renderer;
        VkDescriptorSet set;
        MatrixView view;
        const GpuBuffer *values, *hiding, *other;
    };

    GpuDevice& device_;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    GpuBuffer colors_;
    std::map<std::array<VkBuffer, 3>, VkDescriptorSet> sets_;
    std::deque<Request> requests_;  // requests of this frame; addresses stay valid while it grows
    VkCommandBuffer cmd_ = VK_NULL_HANDLE;
    VkExtent2D extent_{};
};

}  // namespace fovea::visualizer

#include "picture.hpp"

#include "gpu/imgui_backend.hpp"
#include "gpu/offscreen_frame.hpp"
#include "gpu/software_painter.hpp"
#include "panels/panels.hpp"

#include <cmath>
#include <optional>

namespace fovea::visualizer {
namespace {

// ImGui settles a layout over its first frames.
constexpr int kFrames = 4;

struct ImGuiContextGuard {
    ImGuiContext* before = ImGui::GetCurrentContext();
    ImGuiContextGuard() { ImGui::SetCurrentContext(ImGui::CreateContext()); }
    ~ImGuiContextGuard() {
        ImGui::DestroyContext();
        ImGui::SetCurrentContext(before);
    }
};

}  // namespace

Result<Tensor> draw_picture(Session& session, const PictureSize& size) {
    GpuDevice& device = session.device();
    const auto width = uint32_t(std::lround(float(size.width) * size.scale)),
               height = uint32_t(std::lround(float(size.height) * size.scale));
    std::optional<OffscreenFrame> frame;  // none without Vulkan
    if (device.has_vulkan()) {
        Result<OffscreenFrame> made = OffscreenFrame::create(device, width, height);
        if (!made) return made.error();
        frame.emplace(std::move(*made));
    }
    const VkRenderPass pass = frame ? frame->render_pass() : VK_NULL_HANDLE;
    ImGuiContextGuard imgui;
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {float(width), float(height)};
    io.DeltaTime = 1.0f / 60;
    io.BackendRendererName = "fovea";
    apply_style(session.theme, size.scale);
    const Result<std::unique_ptr<ImGuiBackend>> backend =
        ImGuiBackend::create(device, pass, 2, size.scale, rare_text(session));
    if (!backend) return backend.error();
    const Result<std::unique_ptr<MatrixRenderer>> matrices = MatrixRenderer::create(device, pass);
    if (!matrices) return matrices.error();
    io.FontDefault = (*backend)->fonts().body;
    PanelContext ui{session, **matrices, (*backend)->fonts(), size.scale};
    const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(palette(session.theme).ground);
    for (int i = 0; i < kFrames; ++i) {
        const Result<void> drawn = device.run_once([&](VkCommandBuffer cmd) {
            (*matrices)->begin_frame(cmd, {width, height});
            (*backend)->new_frame();
            draw_main_window(ui);
            if (frame) frame->begin(cmd, {ground.x, ground.y, ground.z});
            (*backend)->draw(cmd);
            if (frame) frame->end(cmd);
        });
        if (!drawn) return drawn.error();
        // What the first frame began is waited for.
        if (i == 0)
            if (Result<void> r = session.finish_wanted_grid(); !r) return r.error();
        // The first frames say what is looked at.
        if (session.map && session.ui.centre == CentreTab::map && i + 2 < kFrames)
            if (Result<void> r = session.map->finish(size.exact); !r) return r.error();
    }
    std::vector<std::byte> pixels;
    if (frame) {
        pixels = frame->pixels();
    } else {
        const std::vector<uint32_t> painted =
            paint_frame(*ImGui::GetDrawData(), int(width), int(height), palette(session.theme).ground);
        const auto bytes = std::as_bytes(std::span(painted));
        pixels.assign(bytes.begin(), bytes.end());
    }
    for (size_t i = 3; i < pixels.size(); i += 4) pixels[i] = std::byte{255};
    return make_tensor("picture", ElementType::u8, {height, width, 4}, pixels);
}

Result<void> save_picture(Session& session, const PictureSize& size, const std::string& path) {
    const Result<Tensor> image = draw_picture(session, size);
    if (!image) return image.error();
    if (const Result<uint64_t> saved = save_png(path, *image); !saved) return saved.error();
    return {};
}

}  // namespace fovea::visualizer

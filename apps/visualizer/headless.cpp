#include "headless.hpp"

#include "describe.hpp"
#include "gpu/imgui_backend.hpp"
#include "gpu/offscreen_frame.hpp"
#include "panels/panels.hpp"

#include <fovea/files.hpp>

#include <cmath>
#include <cstdio>

namespace fovea::visualizer {
namespace {

// ImGui settles a layout over its first frames.
constexpr int kFrames = 3;

struct ImGuiContextGuard {
    ImGuiContextGuard() { ImGui::CreateContext(); }
    ~ImGuiContextGuard() { ImGui::DestroyContext(); }
};

Result<void> compute(GpuDevice& device, Session& session) {
    for (bool more = true; more;) {
        Result<bool> updated = false;
        if (Result<void> r =
                device.run_once([&](VkCommandBuffer cmd) { updated = session.update(cmd, 1e9); });
            !r)
            return r;
        if (!updated) return updated.error();
        more = *updated;
    }
    if (!session.problem().empty()) return Error{FOVEA_INVALID_ARGUMENT, "", session.problem()};
    return {};
}

Result<void> choose_stage(Session& session, const std::string& name) {
    if (name.empty()) return {};
    std::string known;
    for (size_t i = 0; i < session.stages().size(); ++i) {
        known += (i ? ", " : "") + session.stages()[i].name;
        if (session.stages()[i].name != name) continue;
        session.view.stage = i;
        session.view.picked_row = std::min(session.view.picked_row, int(session.stage().rows) - 1);
        session.view.picked_column = std::min(session.view.picked_column, int(session.stage().columns) - 1);
        return {};
    }
    return Error{FOVEA_INVALID_ARGUMENT, "--stage", "'" + name + "' is not one of: " + known};
}

Result<void> draw_picture(GpuDevice& device, Session& session, const Options& o) {
    const auto width = uint32_t(std::lround(float(o.width) * o.scale)),
               height = uint32_t(std::lround(float(o.height) * o.scale));
    Result<OffscreenFrame> frame = OffscreenFrame::create(device, width, height);
    if (!frame) return frame.error();
    ImGuiContextGuard imgui;
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {float(width), float(height)};
    io.DeltaTime = 1.0f / 60;
    io.BackendRendererName = "fovea";
    apply_style(o.theme, o.scale);
    const Result<std::unique_ptr<ImGuiBackend>> backend =
        ImGuiBackend::create(device, frame->render_pass(), 2, o.scale);
    if (!backend) return backend.error();
    const Result<std::unique_ptr<MatrixRenderer>> matrices =
        MatrixRenderer::create(device, frame->render_pass());
    if (!matrices) return matrices.error();
    io.FontDefault = (*backend)->fonts().body;
    PanelContext ui{session, **matrices, (*backend)->fonts(), o.scale};
    const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(palette(o.theme).ground);
    for (int i = 0; i < kFrames; ++i) {
        const Result<void> drawn = device.run_once([&](VkCommandBuffer cmd) {
            (*matrices)->begin_frame(cmd, frame->extent());
            (*backend)->new_frame();
            draw_main_window(ui);
            frame->begin(cmd, {ground.x, ground.y, ground.z});
            (*backend)->draw(cmd);
            frame->end(cmd);
        });
        if (!drawn) return drawn;
    }
    std::vector<std::byte> pixels = frame->pixels();
    for (size_t i = 3; i < pixels.size(); i += 4) pixels[i] = std::byte{255};
    const Result<Tensor> image = make_tensor("picture", ElementType::u8, {height, width, 4}, pixels);
    if (!image) return image.error();
    if (const Result<uint64_t> saved = save_png(o.screenshot, *image); !saved) return saved.error();
    return {};
}

Result<void> export_numbers(const Session& session, const std::string& path) {
    const Stage& stage = session.stage();
    const std::span<const float> values =
        stage.values.subspan(session.view.head * stage.rows * stage.columns, stage.rows * stage.columns);
    Result<Tensor> table = make_tensor(stage.name, {stage.rows, stage.columns},
                                       std::vector<float>(values.begin(), values.end()));
    if (!table) return table.error();
    std::vector<std::string> columns;
    for (uint64_t i = 0; i < stage.columns; ++i)
        columns.push_back(stage.over_keys ? std::to_string(i) + " " + token_label(session, i)
                                          : stage.name + " " + std::to_string(i));
    if (const Result<uint64_t> saved = save_csv(path, *table, columns); !saved) return saved.error();
    return {};
}

}  // namespace

Result<void> run_headless(const Options& o) {
    GpuWishes wishes;
    wishes.vulkan_device = o.vulkan_device;
    wishes.validation = o.validation;
    const Result<std::unique_ptr<GpuDevice>> device = GpuDevice::open(wishes);
    if (!device) return device.error();
    {
        Session session(**device, o.on_cpu);
        session.theme = o.theme;
        Settings settings = level_settings(o.level);
        if (o.text) settings.text = *o.text;
        session.change(settings);
        if (Result<void> r = compute(**device, session); !r) return r;
        if (Result<void> r = choose_stage(session, o.stage); !r) return r;
        if (!o.screenshot.empty())
            if (Result<void> r = draw_picture(**device, session, o); !r) return r;
        if (!o.export_csv.empty())
            if (Result<void> r = export_numbers(session, o.export_csv); !r) return r;
        if (o.describe) std::fputs(describe(session).c_str(), stdout);
    }
    const std::vector<std::string> messages = (*device)->take_messages();
    if (!messages.empty())
        return Error{FOVEA_VULKAN_ERROR, "validation",
                     std::to_string(messages.size()) + " messages, the first: " + messages[0]};
    return {};
}

}  // namespace fovea::visualizer

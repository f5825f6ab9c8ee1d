#include "picture.hpp"

#include "gpu/imgui_backend.hpp"
#include "gpu/offscreen_frame.hpp"
#include "matrix/cpu_painter.hpp"
#include "panels/canvas.hpp"
#include "panels/panels.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace fovea::visualizer {
namespace {

constexpr float kFigureMargin = 16, kTitleHeight = 30, kBar = 118, kMaxSide = 760, kMaxFigureCell = 72,
                kMinArea = 160;

float cell_side(const CellRect& cells, float scale) {
    const auto longest = float(std::max(cells.rows(), cells.columns()));
    return std::max(std::min(kMaxSide / longest, kMaxFigureCell), 1 / scale);
}

// The matrix with all its cells, or the selected ones, without a window around it.
ImVec2 figure_size(const Workbench& bench, bool legend, float scale) {
    const CellRect cells = shown_cells(bench);
    const float side = cell_side(cells, scale);
    return {2 * kFigureMargin + kLabelColumn + side * float(cells.columns()) + (legend ? kBar : 0),
            2 * kFigureMargin + kLabelRow + (legend ? kTitleHeight : 0) +
                std::max(side * float(cells.rows()), legend ? kMinArea : 0.0f)};
}

void draw_figure(PanelContext& ui, bool legend) {
    Workbench& bench = ui.bench;
    const float s = ui.scale;
    const Shown shown = bench.shown();
    const CellRect cells = shown_cells(bench);
    const float side = cell_side(cells, s) * s;
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
    ImGui::Begin("figure", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoBackground);
    // A picture has no picked cell.
    const ViewState view = bench.view;
    bench.view.picked_row = bench.view.picked_column = -1;
    Canvas canvas;
    canvas.stage = shown.stage;
    canvas.head = shown.head;
    canvas.tokens = shown.tokens;
    canvas.at = {(kFigureMargin + kLabelColumn) * s,
                 (kFigureMargin + kLabelRow + (legend ? kTitleHeight : 0)) * s};
    canvas.size = {side * float(cells.columns()), side * float(cells.rows())};
    canvas.cell_width = canvas.cell_height = side;
    canvas.origin = {canvas.at.x - side * float(cells.column_begin),
                     canvas.at.y - side * float(cells.row_begin)};
    canvas.coloring = coloring_of(bench.view.colors, shown.stage->ranges.at(shown.head));
    canvas_cells(ui, canvas);
    canvas_digits(ui, canvas);
    canvas_labels(ui, canvas);
    if (legend) {
        const LockedMatrix* const locked = bench.past.shown_locked();
        const std::string name =
            locked ? locked->name : shown.stage->name + ", head " + std::to_string(shown.head);
        draw_text(ui.fonts.strong, {kFigureMargin * s, kFigureMargin * s}, palette(bench.window.theme).text,
                  name);
        const float width = text_width(ui.fonts.strong, name);
        draw_text(ui.fonts.body, {kFigureMargin * s + width + 10 * s, kFigureMargin * s},
                  palette(bench.window.theme).text_soft, shown.stage->formula);
        canvas_range_bar(ui, canvas, canvas.at.x + canvas.size.x + 12 * s);
    }
    bench.view = view;
    ImGui::End();
}

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

struct Pixels {
    uint32_t width = 0, height = 0;
    std::vector<std::byte> rgba;
};

// The size in pixels, rejected where the device has no image so large.
Result<void> check_size(const GpuDevice& device, uint32_t width, uint32_t height) {
    uint32_t most = 16384;
    if (device.has_vulkan()) {
        VkPhysicalDeviceProperties properties{};
        vkGetPhysicalDeviceProperties(device.physical(), &properties);
        most = std::min({most, properties.limits.maxImageDimension2D, properties.limits.maxFramebufferWidth,
                         properties.limits.maxFramebufferHeight});
    }
    if (width <= most && height <= most) return {};
    return Error{FOVEA_LIMIT_EXCEEDED, "picture",
                 "the picture has " + std::to_string(width) + " x " + std::to_string(height) +
                     " pixels; the limit of " + device.name() + " is " + std::to_string(most) +
                     " a side: choose a smaller scale"};
}

// One picture over `ground`; where it goes on, what a map and a grid lack is computed first. `draw` fills
// ImGui's frame, several times until the layout has settled.
template <class Draw>
Result<Pixels> draw_over(Workbench& bench, const PictureSize& size, ImU32 ground, ImVec2 extent, bool goes_on,
                         Draw draw) {
    GpuDevice& device = bench.computation.device();
    Pixels out{
        uint32_t(std::lround(extent.x * size.scale)), uint32_t(std::lround(extent.y * size.scale)), {}};
    if (Result<void> r = check_size(device, out.width, out.height); !r) return r.error();
    std::optional<OffscreenFrame> frame;  // none without Vulkan
    if (device.has_vulkan()) {
        Result<OffscreenFrame> made = OffscreenFrame::create(device, out.width, out.height);
        if (!made) return made.error();
        frame.emplace(std::move(*made));
    }
    const VkRenderPass pass = frame ? frame->render_pass() : VK_NULL_HANDLE;
    ImGuiContextGuard imgui;
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {float(out.width), float(out.height)};
    io.DeltaTime = 1.0f / 60;
    io.BackendRendererName = "fovea";
    apply_style(bench.window.theme, size.scale);
    const Result<std::unique_ptr<ImGuiBackend>> backend =
        ImGuiBackend::create(device, pass, 2, size.scale, rare_text(bench));
    if (!backend) return backend.error();
    const Result<std::unique_ptr<MatrixRenderer>> matrices = MatrixRenderer::create(device, pass);
    if (!matrices) return matrices.error();
    io.FontDefault = (*backend)->fonts().body;
    PanelContext ui{bench, **matrices, (*backend)->fonts(), size.scale};
    ui.transparent = size.look.transparent;
    ui.ground = ground;
    const ImVec4 clear = ImGui::ColorConvertU32ToFloat4(ground);
    const int frames = std::max(kFrames, int(size.mouse.size()) + 1);
    for (int i = 0; i < frames; ++i) {
        if (size_t(i) < size.mouse.size()) {
            const PictureMouse& mouse = size.mouse[size_t(i)];
            io.AddMousePosEvent(mouse.x * size.scale, mouse.y * size.scale);
            io.AddMouseButtonEvent(0, mouse.down);
        }
        const Result<void> drawn = device.run_once([&](VkCommandBuffer cmd) {
            (*matrices)->begin_frame(cmd, {out.width, out.height});
            (*backend)->new_frame();
            draw(ui);
            if (!frame || i + 1 < frames) return ImGui::Render();  // only the kept frame is drawn
            frame->begin(cmd, {clear.x, clear.y, clear.z});
            (*backend)->draw(cmd);
            frame->end(cmd);
        });
        if (!drawn) return drawn.error();
        // Waits for the work that the first frame began.
        if (i == 0 && goes_on)
            if (Result<void> r = bench.computation.finish_wanted_grid(); !r) return r.error();
        // The first frames say what is looked at.
        if (goes_on && bench.map && bench.window.centre == CentreTab::map && i + 2 < frames)
            bench.map.head()->finish(size.exact);
    }
    if (size.seen) size.seen(*ImGui::GetDrawData());
    if (frame) {
        out.rgba = frame->pixels();
    } else {
        const std::vector<uint32_t> painted =
            paint_frame(*ImGui::GetDrawData(), int(out.width), int(out.height), ground);
        const auto bytes = std::as_bytes(std::span(painted));
        out.rgba.assign(bytes.begin(), bytes.end());
    }
    for (size_t i = 3; i < out.rgba.size(); i += 4) out.rgba[i] = std::byte{255};
    return out;
}

// Comparing the picture over black and over white gives the alpha of each pixel, whatever has painted it.
void take_ground_away(Pixels& over_black, const Pixels& over_white) {
    for (size_t i = 0; i + 3 < over_black.rgba.size(); i += 4) {
        int seen = 0;
        for (size_t c = 0; c < 3; ++c)
            seen = std::max(seen, int(over_white.rgba[i + c]) - int(over_black.rgba[i + c]));
        const int alpha = std::clamp(255 - seen, 0, 255);
        for (size_t c = 0; c < 3 && alpha > 0; ++c)
            over_black.rgba[i + c] = std::byte(std::min(int(over_black.rgba[i + c]) * 255 / alpha, 255));
        over_black.rgba[i + 3] = std::byte(alpha);
    }
}

Pixels cropped(const Pixels& from, const ScreenRect& rect) {
    const auto x0 = uint32_t(std::clamp(rect.x, 0.0f, float(from.width))),
               y0 = uint32_t(std::clamp(rect.y, 0.0f, float(from.height)));
    Pixels out{std::min(uint32_t(rect.width), from.width - x0),
               std::min(uint32_t(rect.height), from.height - y0),
               {}};
    for (uint32_t y = y0; y < y0 + out.height; ++y) {
        const auto row = from.rgba.begin() + ptrdiff_t((size_t(y) * from.width + x0) * 4);
        out.rgba.insert(out.rgba.end(), row, row + ptrdiff_t(size_t(out.width) * 4));
    }
    return out;
}

}  // namespace

Result<Tensor> draw_picture(Workbench& bench, const PictureSize& size) {
    const PictureLook& look = size.look;
    if (look.transparent && look.part == PicturePart::window)
        return Error{FOVEA_INVALID_ARGUMENT, "transparent",
                     "a picture of the window cannot be transparent; choose the view or the matrix"};
    const bool figure = look.part == PicturePart::matrix;
    if (figure && bench.window.centre == CentreTab::map)
        return Error{FOVEA_INVALID_ARGUMENT, "picture",
                     "a map is too large to draw with all cells; choose the view"};
    const ImVec2 extent =
        figure ? figure_size(bench, look.legend, size.scale) : ImVec2{float(size.width), float(size.height)};
    ScreenRect centre;
    const auto draw = [&](PanelContext& ui) {
        if (figure)
            draw_figure(ui, look.legend);
        else
            draw_main_window(ui);
        centre = ui.centre;
    };
    const ImU32 ground = figure ? palette(bench.window.theme).panel : palette(bench.window.theme).ground;
    constexpr ImU32 kBlack = IM_COL32(0, 0, 0, 255), kWhite = IM_COL32(255, 255, 255, 255);
    Result<Pixels> pixels = draw_over(bench, size, look.transparent ? kBlack : ground, extent, true, draw);
    if (!pixels) return pixels.error();
    if (look.transparent) {
        const Result<Pixels> white = draw_over(bench, size, kWhite, extent, false, draw);
        if (!white) return white.error();
        take_ground_away(*pixels, *white);
    }
    if (look.part == PicturePart::view) *pixels = cropped(*pixels, centre);
    return make_tensor("picture", FOVEA_U8, {pixels->height, pixels->width, 4}, pixels->rgba);
}

Result<void> save_picture(Workbench& bench, const PictureSize& size, const std::string& path) {
    const Result<Tensor> image = draw_picture(bench, size);
    if (!image) return image.error();
    if (const Result<uint64_t> saved = save_png(path, *image); !saved) return saved.error();
    return {};
}

}  // namespace fovea::visualizer

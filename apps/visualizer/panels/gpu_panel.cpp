// The device's work for the last results: its time by dispatch, the resulting rates of work and traffic, and
// the window's last frames.
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <fovea/runtime.hpp>

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr float kPlotWidth = 232, kPlotHeight = 112, kPlotGap = 20;

// Returns the part of the panel's width that the roofline leaves for text.
float words_width(const PanelContext& ui) {
    const float all = ImGui::GetContentRegionMax().x;
    return ui.bench.computation.roof ? all - (kPlotWidth + 2 * kPlotGap) * ui.scale : all;
}

// Colors of the run's shaders, in the order in which they come.
struct Shader {
    std::string name;
    double seconds = 0;
    size_t dispatches = 0;
    Rgb color;
};

std::vector<Shader> shaders_of(const RunTimes& times) {
    std::vector<Shader> all;
    for (const DispatchTime& one : times.dispatches) {
        auto at = std::find_if(all.begin(), all.end(), [&](const Shader& s) { return s.name == one.name; });
        if (at == all.end()) at = all.insert(all.end(), Shader{one.name});
        at->seconds += one.end_s - one.begin_s;
        ++at->dispatches;
    }
    const ColorTable table = color_table(Colormap::viridis);
    for (size_t i = 0; i < all.size(); ++i) all[i].color = table[(i * 2 + 1) * 255 / (2 * all.size())];
    return all;
}

// Draws the dispatches in sequence, each named if it is wide enough; a gap shows that one waits for those
// before it.
void draw_dispatches(PanelContext& ui, const RunTimes& times, const std::vector<Shader>& shaders) {
    const Palette& colors = ui.colors();
    const float s = ui.scale;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = words_width(ui) - ImGui::GetCursorPosX(), height = 26 * s;
    ImGui::InvisibleButton("dispatches", {std::max(width, 1.0f), height});
    const bool hovered = ImGui::IsItemHovered();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(at, {at.x + width, at.y + height}, colors.raised, 3 * s);
    const double span = std::max(times.dispatches.back().end_s - times.dispatches.front().begin_s, 1e-9);
    ImFont* const font = ui.fonts.small;
    for (size_t i = 0; i < times.dispatches.size(); ++i) {
        const DispatchTime& one = times.dispatches[i];
        const float x0 = at.x + width * float(one.begin_s / span),
                    x1 = at.x + width * float(one.end_s / span);
        const ImVec2 low{x0 + (one.waits ? s : 0), at.y + 3 * s},
            high{std::max(x1, x0 + 1), at.y + height - 3 * s};
        const bool here = hovered && ImGui::GetIO().MousePos.x >= x0 && ImGui::GetIO().MousePos.x < x1;
        const Shader& shader = *std::find_if(shaders.begin(), shaders.end(),
                                             [&](const Shader& k) { return k.name == one.name; });
        draw.AddRectFilled(low, high, IM_COL32(shader.color.r, shader.color.g, shader.color.b, 255), 2 * s);
        if (here) draw.AddRect(low, high, colors.text, 2 * s, 0, 2 * s);
        const Rgb ink = text_color_on(shader.color);
        if (text_width(font, one.name) + 8 * s < high.x - low.x)
            draw_text(font, {low.x + 4 * s, (low.y + high.y - font->FontSize) / 2},
                      IM_COL32(ink.r, ink.g, ink.b, 255), one.name);
        if (here)
            ImGui::SetTooltip(
                "%s", (fill(texts().gpu.dispatch,
                            {one.name, format_seconds(one.end_s - one.begin_s), format_seconds(one.begin_s),
                             std::to_string(one.groups[0]) + " x " + std::to_string(one.groups[1]) + " x " +
                                 std::to_string(one.groups[2]),
                             std::to_string(one.slice), std::to_string(i + 1),
                             std::to_string(times.dispatches.size())}) +
                       (one.waits ? texts().gpu.waits : ""))
                          .c_str());
    }
}

// Lists the total time of each shader over all its dispatches.
void draw_shaders(PanelContext& ui, const RunTimes& times, const std::vector<Shader>& shaders) {
    const float s = ui.scale, line = ImGui::GetTextLineHeight();
    double all = 0;
    for (const Shader& shader : shaders) all += shader.seconds;
    for (size_t i = 0; i < shaders.size(); ++i) {
        const Shader& shader = shaders[i];
        const std::string text =
            shader.name + " " + format_seconds(shader.seconds) + ", " +
            format_fixed(100 * shader.seconds / std::max(all, 1e-12), 0) + " %" +
            (shader.dispatches > 1 ? ", " + std::to_string(shader.dispatches) + " times" : "");
        const float mark = 14 * s;
        if (i > 0) same_line_if_room(ImGui::CalcTextSize(text.c_str()).x + mark, 16 * s);
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImGui::GetWindowDrawList()->AddRectFilled(
            {at.x, at.y + 0.25f * line}, {at.x + 9 * s, at.y + 0.25f * line + 9 * s},
            IM_COL32(shader.color.r, shader.color.g, shader.color.b, 255), 2 * s);
        ImGui::Dummy({9 * s, line});
        ImGui::SameLine(0, 5 * s);
        ImGui::TextUnformatted(text.c_str());
    }
    if (ui.bench.computation.run().info().slice_count > times.dispatches.back().slice + 1)
        soft_text(fill(texts().gpu.first_slices, {std::to_string(times.dispatches.back().slice + 1)}));
}

// The last frames of the window: what each took, and of it the device's part.
void draw_frames(PanelContext& ui) {
    const std::vector<FrameTime>& frames = ui.bench.window.frames;
    if (frames.size() < 2) return;
    const Palette& colors = ui.colors();
    const float s = ui.scale, height = 34 * s;
    const float width = words_width(ui) - ImGui::GetCursorPosX(), bar = width / float(kMaxFrameTimes);
    float most = 1.0f / 60;
    std::vector<float> sorted;
    for (size_t i = 0; i + 1 < frames.size(); ++i)
        sorted.push_back(frames[i].wall_s);  // the newest is being drawn
    std::sort(sorted.begin(), sorted.end());
    // A single slow frame, such as one that opened a file, must not set the scale.
    most = std::max(most, 1.2f * sorted[size_t(0.98f * float(sorted.size() - 1))]);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton("frames", {std::max(width, 1.0f), height});
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(at, {at.x + width, at.y + height}, colors.raised, 3 * s);
    const auto up = [&](float seconds) { return at.y + height * (1 - std::min(seconds / most, 1.0f)); };
    for (size_t i = 0; i + 1 < frames.size(); ++i) {
        const float x = at.x + width - bar * float(frames.size() - 1 - i);
        draw.AddRectFilled({x, up(frames[i].wall_s)}, {x + std::max(bar - 0.5f, 1.0f), at.y + height},
                           colors.mark);
        if (frames[i].device_s > 0)
            draw.AddRectFilled({x, up(frames[i].device_s)}, {x + std::max(bar - 0.5f, 1.0f), at.y + height},
                               colors.accent);
    }
    draw.AddLine({at.x, up(1.0f / 60)}, {at.x + width, up(1.0f / 60)}, colors.text_soft, s);
    if (ImGui::IsItemHovered()) {
        const auto back = size_t(std::max((at.x + width - ImGui::GetIO().MousePos.x) / bar, 0.0f)) + 1;
        if (back < frames.size()) {
            const FrameTime& one = frames[frames.size() - 1 - back];
            const std::string device =
                one.device_s > 0 ? fill(texts().gpu.of_device, {format_seconds(double(one.device_s))}) : "";
            ImGui::SetTooltip("%s", fill(texts().gpu.frame_ago,
                                         {std::to_string(back), format_seconds(double(one.wall_s)), device})
                                        .c_str());
        }
    }
    soft_text(fill(texts().gpu.last_frames,
                   {std::to_string(sorted.size()), format_seconds(double(sorted[sorted.size() / 2])),
                    format_seconds(double(sorted[size_t(0.95f * float(sorted.size() - 1))]))}));
}

// Both axes by the logarithm: FLOP for each byte, FLOP/s. Under the slope memory is the limit, under the flat
// part arithmetic.
void draw_roof_plot(PanelContext& ui, const Roof& roof, double intensity, double rate, double reach) {
    const Palette& colors = ui.colors();
    const float s = ui.scale;
    ImFont* font = ui.fonts.small;
    const double knee = roof.flops_per_s / roof.bytes_per_s;
    const ImVec2 frame{ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - (kPlotWidth + kPlotGap) * s,
                       ImGui::GetWindowPos().y + 46 * s};
    // It stays where it is while the words are scrolled, and is as high as the panel.
    const float tall = std::clamp(ImGui::GetWindowHeight() - 54 * s, 72 * s, kPlotHeight * s);
    const ImVec2 at{frame.x + 38 * s, frame.y + 6 * s};
    const float width = (kPlotWidth - 44) * s, height = tall - font->FontSize - 12 * s;
    const double low_x = std::min(knee, intensity) / 8, high_x = std::max(knee, intensity) * 8;
    const double high_y = roof.flops_per_s * 2, low_y = std::min(rate / 4, roof.flops_per_s / 100);
    const auto place = [&](double x, double y) {
        return ImVec2{at.x + width * float(std::log(x / low_x) / std::log(high_x / low_x)),
                      at.y + height * (1 - float(std::log(y / low_y) / std::log(high_y / low_y)))};
    };
    const auto write = [&](ImVec2 where, const std::string& text) {
        draw_text(font, where, colors.text_soft, text);
    };
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(frame, {frame.x + kPlotWidth * s, frame.y + tall}, colors.raised, 4 * s);
    // Powers of ten; those with room have labels.
    float free_from = -1e9f;
    for (double x = std::pow(10, std::ceil(std::log10(low_x))); x < high_x; x *= 10) {
        const float across = place(x, low_y).x;
        const std::string label = format_scaled(x, "");
        const float half = text_width(font, label) / 2;
        draw.AddLine({across, at.y}, {across, at.y + height}, colors.line, s);
        if (across - half < std::max(free_from, at.x - 8 * s) || across + half > at.x + width) continue;
        write({across - half, at.y + height + 2 * s}, label);
        free_from = across + half + 6 * s;
    }
    float free_to = 1e9f;
    for (double y = std::pow(10, std::ceil(std::log10(low_y))); y < high_y; y *= 10) {
        const float down = place(low_x, y).y;
        const std::string label = format_scaled(y, "");
        draw.AddLine({at.x, down}, {at.x + width, down}, colors.line, s);
        if (down + font->FontSize / 2 > free_to) continue;
        write({at.x - 6 * s - text_width(font, label), down - font->FontSize / 2}, label);
        free_to = down - font->FontSize / 2;
    }
    write({at.x + 5 * s, at.y + 2 * s}, "FLOP/s");
    const std::string below = texts().gpu.intensity;
    write({at.x + width - text_width(font, below) - 3 * s, at.y + height - font->FontSize - 2 * s}, below);
    draw.PushClipRect(at, {at.x + width, at.y + height}, true);
    const ImVec2 roof_line[3] = {place(low_x, low_x * roof.bytes_per_s), place(knee, roof.flops_per_s),
                                 place(high_x, roof.flops_per_s)};
    draw.AddPolyline(roof_line, 3, colors.text_soft, 0, 2 * s);
    draw.AddLine(place(intensity, rate), place(intensity, reach), colors.mark, s);
    draw.AddCircleFilled(place(intensity, rate), 4.5f * s, colors.accent);
    draw.PopClipRect();
}

void draw_roof(PanelContext& ui, double intensity, double rate) {
    Workbench& bench = ui.bench;
    if (bench.computation.on_cpu() || !bench.computation.device().has_vulkan()) return;
    if (!bench.computation.roof) {
        ImGui::SameLine(0, 16 * ui.scale);
        if (ImGui::SmallButton(texts().gpu.measure)) bench.computation.want_roof();
        return;
    }
    const Roof& roof = *bench.computation.roof;
    const double reach = std::min(intensity * roof.bytes_per_s, roof.flops_per_s);
    soft_text(fill(texts().gpu.roofline,
                   {format_scaled(roof.flops_per_s, "FLOP/s"), format_scaled(roof.bytes_per_s, "B/s"),
                    format_fixed(100 * rate / reach, 0), format_fixed(intensity, 1)}));
    draw_roof_plot(ui, roof, intensity, rate, reach);
}

double quantile(std::vector<double> values, double place) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, size_t(place * double(values.size())))];
}

void draw_figures(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const AttentionRun& run = bench.computation.run();
    if (bench.window.centre == CentreTab::map && bench.map)
        soft_text(fill(texts().gpu.under_map, {bench.map.head()->where()}));
    const uint64_t slices = run.info().slice_count;
    const std::string slice_count =
        slices == 1 ? texts().gpu.one_slice : fill(texts().gpu.slices, {std::to_string(slices)});
    if (bench.computation.on_cpu())
        soft_text(fill(texts().gpu.on_cpu, {kernel_name(run.info().kernel), slice_count}));
    else
        soft_text(
            fill(texts().gpu.on_device, {bench.computation.device_name(), kernel_name(run.info().kernel),
                                         slice_count, std::to_string(run.info().dispatches_per_slice)}));
    if (!bench.computation.complete()) return;
    const RunTimes& times = run.times();
    if (times.busy_s <= 0) {
        ImGui::TextUnformatted(texts().gpu.no_timestamps);
        return;
    }
    if (!times.dispatches.empty()) {
        const std::vector<Shader> shaders = shaders_of(times);
        draw_dispatches(ui, times, shaders);
        draw_shaders(ui, times, shaders);
    }
    const double flops = run.useful_flops(), bytes = double(run.bytes_moved());
    // FLOP for each byte are shown with the roofline once it is measured.
    const std::string intensity =
        bench.computation.roof ? "" : "   " + format_fixed(flops / bytes, 1) + " " + texts().gpu.intensity;
    ImGui::TextUnformatted(
        fill(texts().gpu.busy, {format_seconds(times.busy_s), format_scaled(flops / times.busy_s, "FLOP/s"),
                                format_scaled(bytes / times.busy_s, "B/s"), intensity})
            .c_str());
    draw_roof(ui, flops / bytes, flops / times.busy_s);
    draw_frames(ui);
    const std::vector<double>& history = bench.computation.run_seconds();
    if (history.size() > 1)
        soft_text(fill(texts().gpu.last_runs,
                       {std::to_string(history.size()), format_seconds(quantile(history, 0.5)),
                        format_seconds(quantile(history, 0.95))}));
    soft_text(texts().gpu.about);
}

}  // namespace

void draw_gpu_panel(PanelContext& ui) {
    ImGui::PushTextWrapPos(words_width(ui));
    draw_figures(ui);
    ImGui::PopTextWrapPos();
}

}  // namespace fovea::visualizer

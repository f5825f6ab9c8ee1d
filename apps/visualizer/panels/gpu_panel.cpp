// What the device did for the last results: its time, slice by slice, and what that makes in work and
// traffic.
#include "panels/panels.hpp"

#include <fovea/runtime.hpp>

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

void draw_slices(PanelContext& ui, const RunTimes& times) {
    const Palette& colours = palette(ui.bench.window.theme);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x - (ui.bench.computation.roof ? 224 : 0) * ui.scale,
                height = 26 * ui.scale;
    ImGui::InvisibleButton("slices", {std::max(width, 1.0f), height});
    const bool hovered = ImGui::IsItemHovered();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(at, {at.x + width, at.y + height}, colours.raised, 3 * ui.scale);
    const double span = std::max(times.slices.back().end_s - times.slices.front().begin_s, 1e-9);
    const double first = times.slices.front().begin_s;
    for (size_t i = 0; i < times.slices.size(); ++i) {
        const SliceTime& slice = times.slices[i];
        const float x0 = at.x + width * float((slice.begin_s - first) / span),
                    x1 = at.x + width * float((slice.end_s - first) / span);
        const bool here = hovered && ImGui::GetIO().MousePos.x >= x0 && ImGui::GetIO().MousePos.x <= x1;
        draw.AddRectFilled({x0, at.y + 4 * ui.scale},
                           {std::max(x1 - 1, x0 + 1), at.y + height - 4 * ui.scale},
                           here ? colours.text : colours.accent, 2 * ui.scale);
        if (here)
            ImGui::SetTooltip("slice %zu of %zu: %s", i + 1, times.slices.size(),
                              format_seconds(slice.end_s - slice.begin_s).c_str());
    }
}

// Both axes by the logarithm: FLOP for each byte, FLOP/s. Under the slope memory is the limit, under the flat
// part arithmetic.
void draw_roof(PanelContext& ui, double intensity, double rate) {
    Workbench& bench = ui.bench;
    if (bench.computation.on_cpu() || !bench.computation.device().has_vulkan()) return;
    if (!bench.computation.roof) {
        ImGui::SameLine(0, 16 * ui.scale);
        if (ImGui::SmallButton("Measure the roof (U)")) bench.computation.want_roof();
        return;
    }
    const Roof& roof = *bench.computation.roof;
    const Palette& colours = palette(bench.window.theme);
    const double knee = roof.flops_per_s / roof.bytes_per_s;
    const double reach = std::min(intensity * roof.bytes_per_s, roof.flops_per_s);
    ImGui::TextDisabled("measured roof %s and %s: %.0f%% of what %.1f FLOP for each byte allow",
                        format_scaled(roof.flops_per_s, "FLOP/s").c_str(),
                        format_scaled(roof.bytes_per_s, "B/s").c_str(), 100 * rate / reach, intensity);
    const float width = 190 * ui.scale, height = 92 * ui.scale;
    const ImVec2 at{ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - width - 20 * ui.scale,
                    ImGui::GetWindowPos().y + 52 * ui.scale};
    const double low_x = std::min(knee, intensity) / 8, high_x = std::max(knee, intensity) * 8;
    const double high_y = roof.flops_per_s * 2, low_y = std::min(rate / 4, roof.flops_per_s / 100);
    const auto place = [&](double x, double y) {
        return ImVec2{at.x + width * float(std::log(x / low_x) / std::log(high_x / low_x)),
                      at.y + height * (1 - float(std::log(y / low_y) / std::log(high_y / low_y)))};
    };
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(at, {at.x + width, at.y + height}, colours.raised, 4 * ui.scale);
    draw.PushClipRect(at, {at.x + width, at.y + height}, true);
    const ImVec2 roof_line[3] = {place(low_x, low_x * roof.bytes_per_s), place(knee, roof.flops_per_s),
                                 place(high_x, roof.flops_per_s)};
    draw.AddPolyline(roof_line, 3, colours.text_soft, 0, 2 * ui.scale);
    const ImVec2 here = place(intensity, rate), above = place(intensity, reach);
    draw.AddLine(here, above, colours.mark, ui.scale);
    draw.AddCircleFilled(here, 4.5f * ui.scale, colours.accent);
    draw.PopClipRect();
}

double quantile(std::vector<double> values, double place) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, size_t(place * double(values.size())))];
}

}  // namespace

void draw_gpu_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const AttentionRun& run = bench.computation.run();
    if (bench.window.centre == CentreTab::map && bench.map)
        ImGui::TextDisabled("Of the level's matrix. The map's tiles: %s", bench.map.head()->where().c_str());
    ImGui::TextDisabled("%s, kernel %s, slices: %llu of %u dispatches",
                        bench.computation.on_cpu() ? "Processor" : bench.computation.device_name().c_str(),
                        kernel_name(run.info().kernel),
                        static_cast<unsigned long long>(run.info().slice_count),
                        run.info().dispatches_per_slice);
    if (!bench.computation.complete()) return;
    const RunTimes& times = run.times();
    if (times.busy_s <= 0) {
        ImGui::TextUnformatted("This device has no timestamps: nothing to show here.");
        return;
    }
    if (!times.slices.empty()) draw_slices(ui, times);
    const double flops = run.useful_flops(), bytes = double(run.bytes_moved());
    ImGui::Text("%s busy   %s   %s   %.1f FLOP for each byte", format_seconds(times.busy_s).c_str(),
                format_scaled(flops / times.busy_s, "FLOP/s").c_str(),
                format_scaled(bytes / times.busy_s, "B/s").c_str(), flops / bytes);
    draw_roof(ui, flops / bytes, flops / times.busy_s);
    const std::vector<double>& history = bench.computation.run_seconds();
    if (history.size() > 1)
        ImGui::TextDisabled("last %zu runs: median %s, 95%% below %s", history.size(),
                            format_seconds(quantile(history, 0.5)).c_str(),
                            format_seconds(quantile(history, 0.95)).c_str());
    ImGui::PushTextWrapPos(ImGui::GetWindowWidth() - 14 * ui.scale);
    ImGui::TextDisabled(
        "Work is that of the whole matrix, traffic each tensor once. The first run after a change "
        "warms caches and clocks up.");
    ImGui::PopTextWrapPos();
}

}  // namespace fovea::visualizer

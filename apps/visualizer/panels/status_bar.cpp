#include "panels/panels.hpp"
#include "texts/texts.hpp"
#include "theme/theme.hpp"

#include <fovea/runtime.hpp>

namespace fovea::visualizer {
namespace {

void draw_map_status(Workbench& bench) {
    const MapPlace& place = bench.map.place;
    ImGui::TextUnformatted(
        fill(texts().status.cell, {format_count(place.picked_row), format_count(place.picked_key)}).c_str());
    if (const Derivation* d = bench.map.derivation()) {
        ImGui::SameLine(0, 16);
        ImGui::Text("%.9g", double(d->has_dropout ? d->dropped_weight : d->weight));
    }
    const MapProgress progress = bench.map.head()->tiles().progress();
    const std::string side = format_count(uint64_t{1} << progress.level);
    std::string where = fill(texts().status.pixel, {side});
    if (bench.map.head()->rows_known() < 1)
        where += fill(texts().status.rows_known, {std::to_string(int(100 * bench.map.head()->rows_known()))});
    where += fill(texts().status.tiles, {bench.map.head()->where(), format_bytes(progress.cached_bytes)});
    ImGui::SameLine(ImGui::GetWindowWidth() - ImGui::CalcTextSize(where.c_str()).x - 14);
    soft_text(where);
}

}  // namespace

void draw_status_bar(PanelContext& ui) {
    Workbench& bench = ui.bench;
    ImGui::SetCursorPosY(6 * ui.scale);
    ImGui::PushFont(ui.fonts.small);
    if (!bench.computation.problem().empty()) {
        colored_text(palette(bench.window.theme).warning, bench.computation.problem());
    } else if (!bench.preparing().empty()) {
        ImGui::TextUnformatted((bench.preparing() + " \xe2\x80\xa6").c_str());
        if (bench.computation.runs_model()) {
            ImGui::SameLine(0, 10 * ui.scale);
            if (ImGui::SmallButton(texts().status.cancel)) bench.computation.cancel_run();
        }
    } else if (bench.window.centre == CentreTab::map && bench.map) {
        draw_map_status(bench);
    } else if (bench.computation.ready()) {
        const Shown shown = bench.shown();
        const Stage& stage = *shown.stage;
        const ViewState& view = bench.view;
        const std::string row = in_drawing_order(picked_row_name(bench)),
                          column = in_drawing_order(picked_column_name(bench));
        ImGui::Text("%s  %s \xe2\x86\x92 %s", stage.name.c_str(), row.c_str(), column.c_str());
        const uint64_t index = (shown.head * stage.rows + uint64_t(view.picked_row)) * stage.columns +
                               uint64_t(view.picked_column);
        if (bench.computation.complete() && index < stage.values.size()) {
            ImGui::SameLine(0, 16 * ui.scale);
            ImGui::Text("%.9g", double(stage.values[index]));
        }
        if (!bench.computation.complete()) {
            ImGui::SameLine(0, 16 * ui.scale);
            ImGui::TextUnformatted(
                fill(texts().matrix.computing, {format_fixed(100 * bench.computation.run().progress(), 0)})
                    .c_str());
        }
        if (const KeptResult* kept = bench.past.kept()) {
            ImGui::SameLine(0, 16 * ui.scale);
            soft_text(fill(texts().compare.saved, {subject_name(kept->result->settings)}));
            tooltip(fill(texts().status.saved_hint, {in_drawing_order(kept->result->title())}));
        }
        const std::string device = bench.computation.device_name();
        const std::string where = (bench.computation.run().stands_in()
                                       ? fill(texts().status.compiling, {device.substr(0, device.find(" ("))})
                                   : bench.computation.on_cpu() ? "CPU"
                                                                : device) +
                                  ", kernel " + kernel_name(bench.computation.run().info().kernel) + ", " +
                                  std::string(precision_name(bench.document.settings().precision)) +
                                  (bench.computation.complete() ? ", exact" : "");
        ImGui::SameLine(ImGui::GetWindowWidth() - ImGui::CalcTextSize(where.c_str()).x - 14 * ui.scale);
        soft_text(where);
    }
    ImGui::PopFont();
}

}  // namespace fovea::visualizer

#include "panels/panels.hpp"

#include <fovea/runtime.hpp>

namespace fovea::visualizer {
namespace {

void draw_map_status(Session& session) {
    const MapPlace& place = session.ui.map;
    ImGui::Text("query %s \xe2\x86\x92 key %s", format_count(place.picked_row).c_str(),
                format_count(place.picked_key).c_str());
    if (const Derivation* d = session.map_derivation()) {
        ImGui::SameLine(0, 16);
        ImGui::Text("%.9g", double(d->has_dropout ? d->dropped_weight : d->weight));
    }
    const MapProgress progress = session.map->tiles().progress();
    const std::string side = format_count(uint64_t{1} << progress.level);
    std::string where = "a pixel: " + side + " x " + side + " weights; ";
    if (session.map->rows_known() < 1)
        where += "sums of " + std::to_string(int(100 * session.map->rows_known())) + "% of the rows known; ";
    where += "tiles: " + session.map->where() + "; cached " + format_bytes(progress.cached_bytes);
    ImGui::SameLine(ImGui::GetWindowWidth() - ImGui::CalcTextSize(where.c_str()).x - 14);
    ImGui::TextDisabled("%s", where.c_str());
}

}  // namespace

void draw_status_bar(PanelContext& ui) {
    Session& session = ui.session;
    ImGui::SetCursorPosY(6 * ui.scale);
    ImGui::PushFont(ui.fonts.small);
    if (!session.problem().empty()) {
        ImGui::PushStyleColor(ImGuiCol_Text, palette(session.theme).warning);
        ImGui::TextUnformatted(session.problem().c_str());
        ImGui::PopStyleColor();
    } else if (!session.preparing().empty()) {
        ImGui::TextUnformatted((session.preparing() + " \xe2\x80\xa6").c_str());
    } else if (session.ui.centre == CentreTab::map && session.map) {
        draw_map_status(session);
    } else if (session.ready()) {
        const Shown shown = session.shown();
        const Stage& stage = *shown.stage;
        const ViewState& view = session.view;
        const std::string column = stage.over_keys ? token_label(session, uint64_t(view.picked_column))
                                                   : std::to_string(view.picked_column);
        const std::string row = stage.row_tokens ? token_label(session, uint64_t(view.picked_row))
                                                 : std::to_string(view.picked_row);
        ImGui::Text("%s  %s \xe2\x86\x92 %s", stage.name.c_str(), row.c_str(), column.c_str());
        const uint64_t index = (shown.head * stage.rows + uint64_t(view.picked_row)) * stage.columns +
                               uint64_t(view.picked_column);
        if (session.complete() && index < stage.values.size()) {
            ImGui::SameLine(0, 16 * ui.scale);
            ImGui::Text("%.9g", double(stage.values[index]));
        }
        if (!session.complete()) {
            ImGui::SameLine(0, 16 * ui.scale);
            ImGui::Text("computing, %.0f%%", 100 * session.run().progress());
        }
        const std::string device = session.device_name();
        const std::string where =
            (session.run().stands_in()
                 ? "CPU for now: " + device.substr(0, device.find(" (")) + " compiles its kernels"
             : session.on_cpu() ? "CPU"
                                : device) +
            ", kernel " + kernel_name(session.run().info().kernel) + ", " +
            std::string(precision_name(session.settings().precision)) + (session.complete() ? ", exact" : "");
        ImGui::SameLine(ImGui::GetWindowWidth() - ImGui::CalcTextSize(where.c_str()).x - 14 * ui.scale);
        ImGui::TextDisabled("%s", where.c_str());
    }
    ImGui::PopFont();
}

}  // namespace fovea::visualizer

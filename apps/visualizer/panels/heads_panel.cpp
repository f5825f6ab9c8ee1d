// All heads of the shown stage, small; a click shows one.
#include "panels/panels.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {

void draw_heads_panel(PanelContext& ui) {
    Session& session = ui.session;
    const Stage& stage = session.stage();
    const Palette& colours = palette(session.theme);
    const ImGuiIO& io = ImGui::GetIO();
    heading(ui, "Heads", (std::to_string(stage.heads) + " of " + stage.name).c_str());
    if (!session.complete()) return;
    const float side = std::max(ImGui::GetContentRegionAvail().y - 22 * ui.scale, 24.0f);
    const uint64_t count = stage.rows * stage.columns;
    for (uint32_t head = 0; head < stage.heads; ++head) {
        if (head > 0) ImGui::SameLine(0, 12 * ui.scale);
        ImGui::BeginGroup();
        ImGui::PushID(int(head));
        const ImVec2 at = ImGui::GetCursorScreenPos();
        if (ImGui::InvisibleButton("head", {side, side})) session.view.head = head;
        const std::span<const float> values = stage.values.subspan(head * count, count);
        const ColourRange range = fitted_range(values);
        const bool symmetric = range.scale == ColourScale::symmetric;
        const double reach = std::max(std::abs(range.low), std::abs(range.high));
        const float sx = io.DisplayFramebufferScale.x, sy = io.DisplayFramebufferScale.y;
        MatrixView v{};
        v.left = v.origin_x = at.x * sx, v.top = v.origin_y = at.y * sy;
        v.width = side * sx, v.height = side * sy;
        v.cell_width = v.width / float(stage.columns), v.cell_height = v.height / float(stage.rows);
        v.first_element = uint32_t(head * count);
        v.row_stride = v.columns = uint32_t(stage.columns);
        v.rows = uint32_t(stage.rows);
        v.range_low = float(symmetric ? -reach : range.low),
        v.range_high = float(symmetric ? reach : range.high);
        v.colour_map = symmetric ? uint32_t(kColourMaps.size() - 1) : 0;
        v.ground = colours.panel, v.hatch = colours.hatch, v.highlight = colours.text;
        v.picked_row = v.picked_column = -1;
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        ui.matrices.add(draw, *stage.buffer, v);
        if (session.view.head == head || ImGui::IsItemHovered())
            draw.AddRect({at.x - 2 * ui.scale, at.y - 2 * ui.scale},
                         {at.x + side + 2 * ui.scale, at.y + side + 2 * ui.scale},
                         session.view.head == head ? colours.accent : colours.text_soft, 3 * ui.scale, 0,
                         2 * ui.scale);
        ImGui::PushFont(ui.fonts.small);
        ImGui::TextDisabled("%u", head + 1);
        ImGui::PopFont();
        ImGui::PopID();
        ImGui::EndGroup();
    }
}

}  // namespace fovea::visualizer

#include "panels/panels.hpp"

namespace fovea::visualizer {

void draw_top_bar(PanelContext& ui) {
    Session& session = ui.session;
    ImGui::SetCursorPosY(9 * ui.scale);
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(ui.fonts.strong);
    ImGui::TextUnformatted("Fovea");
    ImGui::PopFont();
    ImGui::SameLine(0, 22 * ui.scale);
    const Palette& colours = palette(session.theme);
    for (int level = 1; level <= kLevelCount; ++level) {
        const bool current = session.settings().level == level;
        if (level > 1) ImGui::SameLine(0, 4 * ui.scale);
        if (current) {
            ImGui::PushStyleColor(ImGuiCol_Button, colours.accent);
            ImGui::PushStyleColor(ImGuiCol_ButtonHovered, colours.accent);
            ImGui::PushStyleColor(ImGuiCol_Text, colours.accent_text);
        }
        const std::string label =
            std::to_string(level) + (current ? "  " + std::string(level_name(level)) : "");
        if (ImGui::Button(label.c_str())) {
            Settings next = level_settings(level);
            next.text = session.settings().text;
            session.change(next);
        }
        if (!current && ImGui::IsItemHovered())
            ImGui::SetTooltip("%s", std::string(level_name(level)).c_str());
        if (current) ImGui::PopStyleColor(3);
    }
    const float right = ImGui::GetWindowWidth() - 214 * ui.scale;
    ImGui::SameLine(right);
    ImGui::BeginDisabled(!session.can_undo());
    if (ImGui::Button("Undo")) session.undo();
    ImGui::EndDisabled();
    ImGui::SameLine(0, 4 * ui.scale);
    ImGui::BeginDisabled(!session.can_redo());
    if (ImGui::Button("Redo")) session.redo();
    ImGui::EndDisabled();
    ImGui::SameLine(0, 12 * ui.scale);
    if (ImGui::Button(session.theme == Theme::dark ? "Light" : "Dark")) {
        session.theme = session.theme == Theme::dark ? Theme::light : Theme::dark;
        apply_style(session.theme, ui.scale);
    }
}

}  // namespace fovea::visualizer

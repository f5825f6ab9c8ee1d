#include "panels/panels.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

constexpr float kTopHeight = 46, kStatusHeight = 30, kSideWidth = 300, kInspectorWidth = 372,
                kHeadsHeight = 148, kGap = 1;

void panel(const char* name, ImVec2 at, ImVec2 size, PanelContext& ui, void (*draw)(PanelContext&),
           ImGuiWindowFlags flags = 0) {
    ImGui::SetNextWindowPos(at);
    ImGui::SetNextWindowSize({std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
    ImGui::Begin(name, nullptr,
                 ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                     ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoBringToFrontOnFocus | flags);
    draw(ui);
    ImGui::End();
}

}  // namespace

void heading(const PanelContext& ui, const char* title, const char* note) {
    ImGui::PushFont(ui.fonts.strong);
    ImGui::TextUnformatted(title);
    ImGui::PopFont();
    if (note[0]) {
        ImGui::SameLine();
        ImGui::TextDisabled("%s", note);
    }
    ImGui::Dummy({0, 2 * ui.scale});
}

std::string token_label(const Session& session, uint64_t index) {
    return index < session.tokens().size() ? session.tokens()[index] : std::to_string(index);
}

void draw_main_window(PanelContext& ui) {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    const float s = ui.scale, gap = kGap * s;
    ImGui::GetBackgroundDrawList()->AddRectFilled({0, 0}, size, palette(ui.session.theme).line);
    const float top = kTopHeight * s, bottom = size.y - kStatusHeight * s;
    panel("top", {0, 0}, {size.x, top}, ui, draw_top_bar, ImGuiWindowFlags_NoScrollbar);
    if (ui.session.ready()) {
        const float left = kSideWidth * s, right = size.x - kInspectorWidth * s;
        const float heads_top = ui.session.stage().heads > 1 ? bottom - kHeadsHeight * s : bottom;
        const float tokens_bottom = top + gap + (bottom - top) * 0.42f;
        const float inspector_bottom = top + gap + (bottom - top) * 0.60f;
        panel("tokens", {0, top + gap}, {left, tokens_bottom - top - gap}, ui, draw_tokens_panel);
        panel("pipeline", {0, tokens_bottom + gap}, {left, bottom - tokens_bottom - gap}, ui,
              draw_pipeline_panel);
        panel("matrix", {left + gap, top + gap}, {right - left - 2 * gap, heads_top - top - gap}, ui,
              draw_matrix_panel, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
        if (heads_top < bottom)
            panel("heads", {left + gap, heads_top + gap}, {right - left - 2 * gap, bottom - heads_top - gap},
                  ui, draw_heads_panel, ImGuiWindowFlags_HorizontalScrollbar);
        panel("inspector", {right, top + gap}, {size.x - right, inspector_bottom - top - gap}, ui,
              draw_inspector_panel);
        panel("parameters", {right, inspector_bottom + gap},
              {size.x - right, bottom - inspector_bottom - gap}, ui, draw_parameters_panel);
    }
    panel("status", {0, bottom + gap}, {size.x, size.y - bottom - gap}, ui, draw_status_bar,
          ImGuiWindowFlags_NoScrollbar);
}

}  // namespace fovea::visualizer

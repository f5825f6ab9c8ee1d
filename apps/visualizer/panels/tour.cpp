#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

constexpr float kCardWidth = 320, kArrow = 9;

struct Hint {
    const char *title, *text;
};
Hint hint_of(int step) {
    const Texts::Tour& of = texts().tour;
    const Hint hints[kTourSteps] = {{of.matrix, of.matrix_text},
                                    {of.cell, of.cell_text},
                                    {of.stages, of.stages_text},
                                    {of.keys, of.keys_text},
                                    {of.levels, of.levels_text}};
    return hints[step - 1];
}

// Where a bubble's arrow ends, and which way it points: 'l', 'r', 'u', or ' ' where what it is about is
// hidden.
struct Tip {
    ImVec2 at;
    char towards;
};

Tip tip_of(const PanelContext& ui, int step) {
    const ImVec2 screen = ImGui::GetIO().DisplaySize;
    const float s = ui.scale;
    const auto beside = [&](const ScreenRect& r, float share) -> Tip {
        if (r.width <= 0) return {{screen.x / 2, screen.y / 2}, ' '};
        const bool on_the_left = r.x + r.width / 2 < screen.x / 2;
        return {{on_the_left ? r.x + r.width - 8 * s : r.x + 8 * s, r.y + r.height * share},
                on_the_left ? 'l' : 'r'};
    };
    const auto below = [&](const ScreenRect& r) -> Tip {
        if (r.width <= 0) return {{screen.x / 2, screen.y / 2}, ' '};
        return {{r.x + r.width / 2, r.y + r.height + 3 * s}, 'u'};
    };
    switch (step) {
        case 1:
            return {{ui.centre.x + ui.centre.width / 2,
                     std::min(ui.centre.y + ui.centre.height - 10 * s, screen.y - 190 * s)},
                    'u'};
        case 2:
            return beside(ui.inspector, 0.25f);
        case 3:
            return beside(ui.pipeline, 0.3f);
        case 4:
            return below(ui.help);
        default:
            return below(ui.levels);
    }
}

// The bubble's corner so that its arrow's tip is at `tip`.
ImVec2 corner_for(ImVec2 tip, ImVec2 size, char towards, float arrow, ImVec2 screen) {
    ImVec2 at = tip;
    if (towards == 'u') at = {tip.x - size.x / 2, tip.y + arrow};
    if (towards == ' ') at = {tip.x - size.x / 2, tip.y - size.y / 2};
    if (towards == 'l') at = {tip.x + arrow, tip.y - size.y / 2};
    if (towards == 'r') at = {tip.x - size.x - arrow, tip.y - size.y / 2};
    at.x = std::clamp(at.x, 8.0f, std::max(screen.x - size.x - 8, 8.0f));
    at.y = std::clamp(at.y, 8.0f, std::max(screen.y - size.y - 8, 8.0f));
    return at;
}

void draw_arrow(ImVec2 tip, char towards, float arrow, ImU32 color) {
    if (towards == ' ') return;
    ImVec2 a = tip, b = tip;
    const float half = arrow * 0.9f;
    if (towards == 'u') a = {tip.x - half, tip.y + arrow}, b = {tip.x + half, tip.y + arrow};
    if (towards == 'l') a = {tip.x + arrow, tip.y - half}, b = {tip.x + arrow, tip.y + half};
    if (towards == 'r') a = {tip.x - arrow, tip.y - half}, b = {tip.x - arrow, tip.y + half};
    ImGui::GetForegroundDrawList()->AddTriangleFilled(tip, a, b, color);
}

void draw_buttons(PanelContext& ui) {
    WindowState& state = ui.bench.window;
    const Palette& colors = ui.colors();
    const float s = ui.scale;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    for (int i = 1; i <= kTourSteps; ++i)
        ImGui::GetWindowDrawList()->AddCircleFilled({at.x + (float(i) * 13 - 8) * s, at.y + 13 * s}, 3.5f * s,
                                                    i == state.tour_step ? colors.accent : colors.mark);
    const bool last = state.tour_step == kTourSteps;
    const char* const other = last ? texts().story.walk : texts().tour.skip;
    ImGui::SetCursorPosX(ImGui::GetWindowWidth() - 82 * s - button_width(other));
    if (ImGui::Button(other)) {
        state.tour_step = 0;
        if (last) step_story(ui.bench, 1);
        return;
    }
    ImGui::SameLine(0, 6 * s);
    ImGui::PushStyleColor(ImGuiCol_Button, colors.accent);
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, colors.accent);
    ImGui::PushStyleColor(ImGuiCol_Text, colors.accent_text);
    if (ImGui::Button(last ? texts().tour.done : texts().tour.next, {62 * s, 0}))
        state.tour_step = last ? 0 : state.tour_step + 1;
    ImGui::PopStyleColor(3);
}

}  // namespace

const char* tour_text(int step) { return hint_of(step).text; }

void draw_tour(PanelContext& ui) {
    WindowState& state = ui.bench.window;
    if (state.tour_step < 1 || state.tour_step > kTourSteps || state.dialog != Dialog::none ||
        state.centre == CentreTab::sentence)  // the tour is about other panels
        return;
    const Hint hint = hint_of(state.tour_step);
    const Palette& colors = ui.colors();
    const float s = ui.scale;
    const ImVec2 screen = ImGui::GetIO().DisplaySize;
    const Tip tip = tip_of(ui, state.tour_step);
    ImGui::SetNextWindowSize({kCardWidth * s, 0});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 8 * s);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, std::max(s, 1.0f));
    ImGui::PushStyleColor(ImGuiCol_WindowBg, colors.raised);
    ImGui::PushStyleColor(ImGuiCol_Border, colors.accent);
    ImGui::Begin("tour", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_AlwaysAutoResize);
    ImGui::SetWindowPos(corner_for(tip.at, ImGui::GetWindowSize(), tip.towards, kArrow * s, screen));
    ImGui::PushFont(ui.fonts.strong);
    ImGui::TextUnformatted(hint.title);
    ImGui::PopFont();
    ImGui::PushTextWrapPos((kCardWidth - 14) * s);
    ImGui::TextUnformatted(hint.text);
    ImGui::PopTextWrapPos();
    ImGui::Dummy({0, 2 * s});
    draw_buttons(ui);
    ImGui::End();
    ImGui::PopStyleColor(2);
    ImGui::PopStyleVar(2);
    draw_arrow(tip.at, tip.towards, kArrow * s, colors.accent);
}

}  // namespace fovea::visualizer

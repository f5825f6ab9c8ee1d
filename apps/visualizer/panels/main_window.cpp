#include "panels/panels.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

constexpr float kTopHeight = 46, kStatusHeight = 30, kSideWidth = 300, kInspectorWidth = 372,
                kBottomHeight = 184, kNoticeHeight = 38, kGap = 1;

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

constexpr const char* kCentre[] = {"Matrix", "Compare", "Mask", "Map"};
constexpr const char* kBottom[] = {"Heads", "GPU", "Memory", "Problems"};

void draw_centre(PanelContext& ui) {
    Session& session = ui.session;
    int chosen = int(session.ui.centre);
    if (tabs(ui, kCentre, chosen)) session.ui.centre = CentreTab(chosen);
    if (session.ui.centre == CentreTab::map) {
        draw_map_panel(ui);
        return;
    }
    ImGui::SameLine(0, 18 * ui.scale);
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(ui.fonts.strong);
    ImGui::TextUnformatted(session.stage().name.c_str());
    ImGui::PopFont();
    ImGui::SameLine(0, 8 * ui.scale);
    // The controls at the right end have their room.
    const float room =
        ImGui::GetContentRegionAvail().x - (session.ui.centre == CentreTab::matrix ? 338 : 8) * ui.scale;
    const ImVec2 line = ImGui::GetCursorScreenPos(), at = {line.x, line.y + ImGui::GetStyle().FramePadding.y};
    const ImVec4 clip{at.x, at.y, at.x + std::max(room, 0.0f), at.y + 2 * ImGui::GetTextLineHeight()};
    ImGui::GetWindowDrawList()->AddText(ui.fonts.body, ui.fonts.body->FontSize, at,
                                        palette(session.theme).text_soft, session.stage().formula.c_str(),
                                        nullptr, 0, &clip);
    ImGui::NewLine();
    if (session.ui.centre == CentreTab::matrix)
        draw_matrix_panel(ui);
    else if (session.ui.centre == CentreTab::compare)
        draw_compare_panel(ui);
    else
        draw_mask_panel(ui);
}

void draw_bottom(PanelContext& ui) {
    Session& session = ui.session;
    int chosen = int(session.ui.bottom);
    std::string problems = "Problems";
    if (!session.problems.empty()) problems += "  " + std::to_string(session.problems.size());
    const char* names[] = {kBottom[0], kBottom[1], kBottom[2], problems.c_str()};
    if (tabs(ui, names, chosen)) session.ui.bottom = BottomTab(chosen);
    constexpr void (*kPanels[])(PanelContext&) = {draw_heads_panel, draw_gpu_panel, draw_memory_panel,
                                                  draw_problems_panel};
    kPanels[size_t(session.ui.bottom)](ui);
}

// What happened to the program itself, and what can be done about it.
void draw_notice(PanelContext& ui) {
    Session& session = ui.session;
    const Palette& colours = palette(session.theme);
    ImGui::SetCursorPosY(5 * ui.scale);
    ImGui::AlignTextToFramePadding();
    ImGui::PushStyleColor(ImGuiCol_Text, colours.warning);
    ImGui::TextUnformatted(session.notice->text.c_str());
    ImGui::PopStyleColor();
    const Notice notice = *session.notice;
    if (notice.offers_processor && !session.on_cpu()) {
        ImGui::SameLine(0, 12 * ui.scale);
        if (ImGui::Button("Compute on the processor")) session.compute_on_cpu(true), session.notice.reset();
    }
    if (notice.offers_map) {
        ImGui::SameLine(0, 12 * ui.scale);
        if (ImGui::Button("Show as a map")) session.show_refused_as_map(), session.notice.reset();
    }
    ImGui::SameLine(ImGui::GetWindowWidth() - 40 * ui.scale);
    if (ImGui::Button("\xc3\x97")) session.notice.reset();
}

}  // namespace

bool tabs(const PanelContext& ui, std::span<const char* const> names, int& chosen) {
    const Palette& colours = palette(ui.session.theme);
    bool changed = false;
    for (int i = 0; i < int(names.size()); ++i) {
        if (i > 0) ImGui::SameLine(0, 2 * ui.scale);
        const bool current = i == chosen;
        ImGui::PushStyleColor(ImGuiCol_Button, current ? colours.raised : colours.panel);
        ImGui::PushStyleColor(ImGuiCol_Text, current ? colours.text : colours.text_soft);
        if (ImGui::Button(names[size_t(i)]) && !current) {
            chosen = i;
            changed = true;
        }
        ImGui::PopStyleColor(2);
        if (!current) continue;
        const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
        ImGui::GetWindowDrawList()->AddRectFilled({low.x + 6 * ui.scale, high.y - 2 * ui.scale},
                                                  {high.x - 6 * ui.scale, high.y}, colours.accent, ui.scale);
    }
    return changed;
}

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

std::string row_label(const Session& session, uint64_t row) {
    return session.stage().row_tokens ? token_label(session, row) : std::to_string(row);
}

std::string column_label(const Session& session, uint64_t column) {
    return session.stage().over_keys ? token_label(session, column) : std::to_string(column);
}

std::string token_label(const Session& session, uint64_t index) {
    return index < session.tokens().size() ? session.tokens()[index] : std::to_string(index);
}

void draw_main_window(PanelContext& ui) {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    const float s = ui.scale, gap = kGap * s;
    ImGui::GetBackgroundDrawList()->AddRectFilled({0, 0}, size, palette(ui.session.theme).line);
    float top = kTopHeight * s;
    const float bottom = size.y - kStatusHeight * s;
    panel("top", {0, 0}, {size.x, top}, ui, draw_top_bar, ImGuiWindowFlags_NoScrollbar);
    if (ui.session.notice) {
        panel("notice", {0, top + gap}, {size.x, kNoticeHeight * s}, ui, draw_notice,
              ImGuiWindowFlags_NoScrollbar);
        top += gap + kNoticeHeight * s;
    }
    if (ui.session.ready()) {
        // In a small window the middle keeps two fifths of the width and half of the height.
        const float left = std::min(kSideWidth * s, size.x * 0.28f);
        const float right = size.x - std::min(kInspectorWidth * s, size.x * 0.32f);
        const float strip = bottom - std::min(kBottomHeight * s, (bottom - top) * 0.4f);
        const float tokens_bottom = top + gap + (bottom - top) * 0.36f;
        const float inspector_bottom = top + gap + (bottom - top) * 0.60f;
        panel("tokens", {0, top + gap}, {left, tokens_bottom - top - gap}, ui, draw_tokens_panel);
        panel("pipeline", {0, tokens_bottom + gap}, {left, bottom - tokens_bottom - gap}, ui,
              draw_pipeline_panel);
        panel("matrix", {left + gap, top + gap}, {right - left - 2 * gap, strip - top - gap}, ui, draw_centre,
              ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
        panel("bottom", {left + gap, strip + gap}, {right - left - 2 * gap, bottom - strip - gap}, ui,
              draw_bottom, ImGuiWindowFlags_HorizontalScrollbar);
        panel("inspector", {right, top + gap}, {size.x - right, inspector_bottom - top - gap}, ui,
              draw_inspector_panel);
        panel("parameters", {right, inspector_bottom + gap},
              {size.x - right, bottom - inspector_bottom - gap}, ui, draw_parameters_panel);
    }
    panel("status", {0, bottom + gap}, {size.x, size.y - bottom - gap}, ui, draw_status_bar,
          ImGuiWindowFlags_NoScrollbar);
    draw_dialogs(ui);
}

}  // namespace fovea::visualizer

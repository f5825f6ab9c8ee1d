#include "panels/panel_table.hpp"
#include "panels/panels.hpp"
#include "texts/texts.hpp"
#include "theme/theme.hpp"

#include <imgui_internal.h>

#include <algorithm>

namespace fovea::visualizer {
namespace {

constexpr float kTopHeight = 46, kStatusHeight = 30, kNoticeHeight = 38, kBarGap = 1;
constexpr float kNarrowWindow = 1040, kOneColumn = 780;  // widths of a narrow window, and of one without text
constexpr float kMinForStrip = 420, kLowWindow = 600;    // heights of the panels together

void panel(const char* name, ImVec2 at, ImVec2 size, PanelContext& ui, void (*draw)(PanelContext&),
           ImGuiWindowFlags flags = 0) {
    WindowState& window = ui.bench.window;
    window.focusable.emplace_back(name);
    // In the first frame every panel appears, and the last one would have it.
    const bool focus = window.wants_focus && window.focused == name && ImGui::GetFrameCount() > 1;
    ImGui::SetNextWindowPos(at);
    ImGui::SetNextWindowSize({std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
    if (focus) ImGui::SetNextWindowFocus();
    ImGui::Begin(name, nullptr,
                 ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                     ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoBringToFrontOnFocus | flags);
    if (focus) {
        // The first control has the keyboard, and a frame that shows it.
        ImGui::NavInitWindow(ImGui::GetCurrentWindow(), true);
        ImGui::GetCurrentContext()->NavDisableHighlight = false;
        window.wants_focus = false;
    }
    draw(ui);
    ImGui::End();
}

float kept(float value, float low, float high) { return std::clamp(value, low, high); }

// Which panels there are, and where. In the window that opened it.
void draw_panels_menu(PanelContext& ui) {
    if (!ImGui::BeginPopup("panels")) return;
    Layout& layout = ui.bench.window.layout;
    for (const PanelGroup& group : panel_groups())
        ImGui::MenuItem(group.title.c_str(), group.keys, &(layout.*group.shown));
    ImGui::Separator();
    if (ImGui::MenuItem(texts().window.swap, "F9")) layout.mirrored = !layout.mirrored;
    if (ImGui::MenuItem(texts().window.reset, "Ctrl+Shift+0")) layout = Layout{};
    ImGui::EndPopup();
}

// The line between two panels, from `at` on; how far it is dragged, in units of the layout. A double click
// puts every edge back.
float edge(PanelContext& ui, const char* name, ImVec2 at, float length, bool upright) {
    constexpr float kGrip = 3;
    const float grip = kGrip * ui.scale;
    const ImVec2 size = upright ? ImVec2{2 * grip, length} : ImVec2{length, 2 * grip};
    ImGui::SetNextWindowPos(upright ? ImVec2{at.x - grip, at.y} : ImVec2{at.x, at.y - grip});
    ImGui::SetNextWindowSize(size);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, {1, 1});
    ImGui::Begin(name, nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoBackground |
                     ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoFocusOnAppearing);
    ImGui::PopStyleVar(2);  // only for the grip: its tooltip has the usual padding
    ImGui::InvisibleButton("grip", {std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
    const bool active = ImGui::IsItemActive();
    if (active || ImGui::IsItemHovered()) {
        ImGui::SetMouseCursor(upright ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
        const ImVec2 low = ImGui::GetWindowPos();
        ImGui::GetWindowDrawList()->AddRectFilled(
            {low.x + (upright ? grip - 1 : 0), low.y + (upright ? 0 : grip - 1)},
            {low.x + (upright ? grip + 1 : size.x), low.y + (upright ? size.y : grip + 1)},
            ui.colors().accent);
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal)) ImGui::SetTooltip(texts().window.edge_hint);
    const bool reset = ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
    const bool asked = ImGui::IsItemClicked(ImGuiMouseButton_Right);
    if (asked) ImGui::OpenPopup("panels");
    draw_panels_menu(ui);
    ImGui::End();
    if (reset) ui.bench.window.layout = Layout{};
    const ImVec2 moved = ImGui::GetIO().MouseDelta;
    return active && !reset ? (upright ? moved.x : moved.y) / ui.scale : 0;
}

// The matrix of the selection, the locked ones, and the other views.
void draw_centre_tabs(PanelContext& ui) {
    Workbench& bench = ui.bench;
    std::vector<const char*> names = {centre_panels()[0].title};
    for (const LockedMatrix& one : bench.past.locked()) names.push_back(one.name.c_str());
    const int matrices = int(names.size());
    for (const CentrePanel& panel : centre_panels().subspan(1)) names.push_back(panel.title);
    const bool matrix = bench.window.centre == CentreTab::matrix;
    int chosen = matrix ? bench.window.locked_tab + 1 : matrices - 1 + int(bench.window.centre);
    // The stage and the controls are next to them.
    const ImVec2 padding = ImGui::GetStyle().FramePadding;
    constexpr float kLeastPadding = 3, kListWidth = 128;
    float words = 0;
    for (const char* name : names) words += ImGui::CalcTextSize(name).x + (2 * kLeastPadding + 2) * ui.scale;
    bool another = false;
    if (words <= ImGui::GetContentRegionAvail().x || matrices > 1) {
        ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0.75f * padding.x, padding.y});
        another = tabs(ui, names, chosen);
        ImGui::PopStyleVar();
    } else {  // a list, so that they take one line
        ImGui::SetNextItemWidth(kListWidth * ui.scale);
        another = ImGui::Combo("##view", &chosen, names.data(), int(names.size()), int(names.size()));
    }
    if (!another) return;
    bench.window.centre = chosen < matrices ? CentreTab::matrix : CentreTab(chosen - matrices + 1);
    if (chosen < matrices) bench.window.locked_tab = chosen - 1;
}

// Draws the shown stage's name and formula next to the tabs.
void draw_stage_title(PanelContext& ui) {
    const Workbench& bench = ui.bench;
    // Many tabs leave no room for the stage and the controls, which then have their own line.
    const float width = ImGui::GetWindowWidth();
    const bool crowded = width >= 640 * ui.scale &&
                         ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x > width - 500 * ui.scale;
    ui.controls_top = 12 * ui.scale;
    if (bench.window.centre == CentreTab::compare &&
        ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x > width - 100 * ui.scale)
        ui.controls_top = -1;  // no room next to the tabs
    if (crowded && bench.window.centre == CentreTab::matrix)
        ui.controls_top = ImGui::GetCursorPosY();
    else
        ImGui::SameLine(0, 18 * ui.scale);
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(ui.fonts.strong);
    const Stage& stage = *bench.shown().stage;
    const Settings& settings = bench.document.settings();
    // The controls at the right end have their room.
    const bool controls = bench.window.centre == CentreTab::matrix && width >= 640 * ui.scale;
    const bool keeps = bench.window.centre == CentreTab::compare;
    const float taken = (controls ? 384.0f : keeps ? 108.0f : 8.0f) * ui.scale;
    // Whole or not at all: which head of a model it is and what that one does, the head, the stage, nothing.
    std::vector<std::string> names = {stage.name, ""};
    if (shows_model(settings) && bench.window.locked_tab < 0 && stage.heads > 1) {
        const HeadPlace place{settings.mapping.layer, bench.view.head};
        const std::string head = head_name(place.layer, place.head);
        const std::string label = head_label(settings, place);
        names.insert(names.begin(), {head + (label.empty() ? "" : " " + label) + ": " + stage.name,
                                     head + ": " + stage.name});
    }
    const float room = ImGui::GetContentRegionAvail().x - taken;
    const auto name = std::find_if(names.begin(), names.end() - 1, [&](const std::string& text) {
        return ImGui::CalcTextSize(text.c_str()).x <= room;
    });
    ImGui::TextUnformatted(name->c_str());
    ImGui::PopFont();
    ImGui::SameLine(0, 8 * ui.scale);
    const bool explained =
        ImGui::CalcTextSize(stage.formula.c_str()).x <= ImGui::GetContentRegionAvail().x - taken;
    if (!name->empty() && explained)
        soft_text(stage.formula);
    else
        ImGui::NewLine();
}

void draw_centre(PanelContext& ui) {
    Workbench& bench = ui.bench;
    draw_centre_tabs(ui);
    const CentrePanel& panel = centre_panels()[size_t(bench.window.centre)];
    if (panel.of_a_matrix) draw_stage_title(ui);
    panel.draw(ui);
}

void draw_bottom(PanelContext& ui) {
    Workbench& bench = ui.bench;
    int chosen = int(bench.window.bottom);
    std::vector<std::string> titles;
    for (const BottomPanel& panel : bottom_panels()) titles.emplace_back(panel.title);
    if (!bench.problems.empty())
        titles[size_t(BottomTab::problems)] += "  " + std::to_string(bench.problems.size());
    std::vector<const char*> names;
    for (const std::string& title : titles) names.push_back(title.c_str());
    if (tabs(ui, names, chosen)) bench.window.bottom = BottomTab(chosen);
    bottom_panels()[size_t(bench.window.bottom)].draw(ui);
}

// Reports a problem of the program itself, and what can be done about it.
void draw_notice(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    ImGui::SetCursorPosY(5 * ui.scale);
    ImGui::AlignTextToFramePadding();
    colored_text(bench.window.notice->good ? colors.text : colors.warning, bench.window.notice->text);
    const Notice notice = *bench.window.notice;
    if (notice.offers_processor && !bench.computation.on_cpu()) {
        ImGui::SameLine(0, 12 * ui.scale);
        if (ImGui::Button(texts().window.compute_on_cpu))
            bench.computation.compute_on_cpu(true), bench.window.notice.reset();
    }
    if (notice.offers_map) {
        ImGui::SameLine(0, 12 * ui.scale);
        if (ImGui::Button(texts().window.show_map)) bench.show_refused_as_map(), bench.window.notice.reset();
    }
    ImGui::SameLine(ImGui::GetWindowWidth() - 40 * ui.scale);
    if (ImGui::Button("\xc3\x97")) bench.window.notice.reset();
}

// Columns, middle and bottom strip between two heights of the window. In a small one the middle keeps two
// fifths of the width and half of the height.
void draw_panels(PanelContext& ui, float top, float bottom) {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    const float s = ui.scale, gap = kBarGap * s, tall = bottom - top;
    Layout& layout = ui.bench.window.layout;
    const bool mirrored = layout.mirrored, map = ui.bench.window.centre == CentreTab::map;
    // The first view has the window to itself.
    const bool around = ui.bench.window.centre != CentreTab::sentence;
    const bool left_shown = layout.left_shown && around && size.x >= kOneColumn * s,
               right_shown = layout.right_shown && around;
    const bool narrow = size.x < kNarrowWindow * s;
    const float text_width = left_shown ? std::min(layout.left * s, size.x * (narrow ? 0.21f : 0.28f)) : 0,
                cell_width = right_shown ? std::min(layout.right * s, size.x * (narrow ? 0.25f : 0.32f)) : 0;
    const float left = mirrored ? cell_width : text_width,
                right = size.x - (mirrored ? text_width : cell_width);
    const float text_x = mirrored ? right : 0, cell_x = mirrored ? 0 : right;
    const float from = left > 0 ? left + gap : 0, to = right < size.x ? right - gap : size.x;
    // A step of a walk has its own place below the middle, and takes it from the strip before the matrix.
    const float card = std::min(story_height(ui, to - from), 0.5f * tall);
    const float end = card > 0 ? bottom - card - gap : bottom, room = end - top;
    // In a low window, or with large type, the matrix comes before the strip below it.
    const bool strip_shown = layout.bottom_shown && around && room >= kMinForStrip * s;
    const float share = room >= kLowWindow * s ? 0.4f : card > 0 ? 0.34f : 0.25f;
    const float strip = strip_shown ? end - std::min(layout.bottom * s, room * share) : end;
    const float tokens_share = ui.bench.window.token_lines ? std::max(layout.tokens, 0.5f) : layout.tokens;
    const float tokens_bottom = top + gap + tall * tokens_share;
    const float inspector_bottom = top + gap + tall * layout.inspector;
    if (left_shown) {
        panel("tokens", {text_x, top + gap}, {text_width, tokens_bottom - top - gap}, ui,
              map ? draw_map_tokens : draw_tokens_panel);
        ui.pipeline = {text_x, tokens_bottom + gap, text_width, bottom - tokens_bottom - gap};
        panel("pipeline", {text_x, tokens_bottom + gap}, {text_width, bottom - tokens_bottom - gap}, ui,
              map ? draw_map_pipeline : draw_pipeline_panel);
    }
    const float middle_bottom = strip_shown ? strip : end + gap;
    ui.centre = {from, top + gap, to - from, middle_bottom - top - gap};
    panel("matrix", {from, top + gap}, {to - from, middle_bottom - top - gap}, ui, draw_centre,
          ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    if (strip_shown)
        panel("bottom", {from, strip + gap}, {to - from, end - strip - gap}, ui, draw_bottom,
              ImGuiWindowFlags_HorizontalScrollbar);
    if (card > 0) {
        ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.colors().raised);
        panel("story", {from, end + gap}, {to - from, card}, ui, draw_story,
              ImGuiWindowFlags_NoFocusOnAppearing);  // the keys stay with the matrix
        ImGui::PopStyleColor();
    }
    if (right_shown) {
        ui.inspector = {cell_x, top + gap, cell_width, inspector_bottom - top - gap};
        panel("inspector", {cell_x, top + gap}, {cell_width, inspector_bottom - top - gap}, ui,
              draw_inspector_panel);
        panel("parameters", {cell_x, inspector_bottom + gap}, {cell_width, bottom - inspector_bottom - gap},
              ui, draw_parameters_panel);
    }
    // The width of the column at an edge; a hidden one stays away until it is asked for.
    const auto widen = [&](bool text, float width, float by) {
        if (text && left_shown) layout.left = kept(width / s + by, 200, 520);
        if (!text && right_shown) layout.right = kept(width / s + by, 260, 620);
    };
    if (const float d = edge(ui, "left", {left, top}, tall, true)) widen(!mirrored, left, d);
    if (const float d = edge(ui, "right", {right, top}, tall, true)) widen(mirrored, size.x - right, -d);
    if (const float d = edge(ui, "strip", {from, strip}, to - from, false); strip_shown && d != 0)
        layout.bottom = kept((end - strip) / s - d, 90, 420);
    if (left_shown)
        if (const float d = edge(ui, "column", {text_x, tokens_bottom}, text_width, false))
            layout.tokens = kept(layout.tokens + d * s / tall, 0.15f, 0.8f);
    if (right_shown)
        if (const float d = edge(ui, "column2", {cell_x, inspector_bottom}, cell_width, false))
            layout.inspector = kept(layout.inspector + d * s / tall, 0.2f, 0.85f);
}

}  // namespace

std::string drawn_name(const Workbench& bench, uint64_t index) {
    return in_drawing_order(token_name(bench, index));
}
std::string drawn_label(const Workbench& bench, uint64_t index) {
    return in_drawing_order(token_label(bench, index));
}

float button_width(const char* label) {
    return ImGui::CalcTextSize(label).x + 2 * ImGui::GetStyle().FramePadding.x;
}

void same_line_if_room(float width, float gap) {
    const float right = ImGui::GetItemRectMax().x + gap + width;
    if (right <= ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x) ImGui::SameLine(0, gap);
}

bool tabs(const PanelContext& ui, std::span<const char* const> names, int& chosen) {
    const Palette& colors = ui.colors();
    bool changed = false;
    // Narrower where a line would else not hold them, but could.
    const ImVec2 padding = ImGui::GetStyle().FramePadding;
    float all = 0, words = 0;
    for (const char* name : names)
        all += button_width(name) + 2 * ui.scale, words += ImGui::CalcTextSize(name).x;
    const float room = ImGui::GetContentRegionAvail().x,
                least = (room - words) / float(std::max<size_t>(names.size(), 1)) / 2 - 1.5f * ui.scale;
    const float narrow = all <= room || least < 3 * ui.scale ? padding.x : std::min(least, padding.x);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {narrow, padding.y});
    for (int i = 0; i < int(names.size()); ++i) {
        if (i > 0) same_line_if_room(button_width(names[size_t(i)]), 2 * ui.scale);
        const bool current = i == chosen;
        ImGui::PushStyleColor(ImGuiCol_Button, current ? colors.raised : ImU32{0});
        ImGui::PushStyleColor(ImGuiCol_Text, current ? colors.text : colors.text_soft);
        if (ImGui::Button(names[size_t(i)]) && !current) {
            chosen = i;
            changed = true;
        }
        ImGui::PopStyleColor(2);
        if (!current) continue;
        const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
        ImGui::GetWindowDrawList()->AddRectFilled({low.x + 6 * ui.scale, high.y - 2 * ui.scale},
                                                  {high.x - 6 * ui.scale, high.y}, colors.accent, ui.scale);
    }
    ImGui::PopStyleVar();
    return changed;
}

bool check_box(const PanelContext& ui, const char* label, bool* value) {
    ImGui::PushStyleColor(ImGuiCol_Border, ui.colors().mark);
    ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, std::max(ui.scale, 1.0f));
    const bool changed = ImGui::Checkbox(label, value);
    ImGui::PopStyleVar();
    ImGui::PopStyleColor();
    return changed;
}

void draw_text(const ImFont* font, ImVec2 at, ImU32 color, const std::string& text) {
    ImGui::GetWindowDrawList()->AddText(font, font->FontSize, at, color, text.c_str());
}

float text_width(const ImFont* font, const std::string& text) {
    return font->CalcTextSizeA(font->FontSize, FLT_MAX, 0, text.c_str()).x;
}

void colored_text(ImU32 color, const std::string& text) {
    ImGui::PushStyleColor(ImGuiCol_Text, color);
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopStyleColor();
}

void soft_text(const std::string& text) { ImGui::TextDisabled("%s", text.c_str()); }

void soft_paragraph(const std::string& text) {
    ImGui::PushTextWrapPos();
    soft_text(text);
    ImGui::PopTextWrapPos();
}

void tooltip(const std::string& text) {
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", text.c_str());
}

void heading(const PanelContext& ui, const char* title, const char* note) {
    ImGui::PushFont(ui.fonts.strong);
    ImGui::TextUnformatted(title);
    ImGui::PopFont();
    if (note[0]) {
        ImGui::SameLine();
        soft_text(note);
    }
    ImGui::Dummy({0, 2 * ui.scale});
}

void draw_main_window(PanelContext& ui) {
    ui.bench.window.focusable.clear();
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    const float s = ui.scale, gap = kBarGap * s;
    if (!ui.transparent) ImGui::GetBackgroundDrawList()->AddRectFilled({0, 0}, size, ui.colors().line);
    ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.transparent ? ImU32{0} : ui.colors().panel);
    float top = kTopHeight * s;
    const float bottom = size.y - kStatusHeight * s;
    panel("top", {0, 0}, {size.x, top}, ui, draw_top_bar, ImGuiWindowFlags_NoScrollbar);
    if (ui.bench.window.notice) {
        panel("notice", {0, top + gap}, {size.x, kNoticeHeight * s}, ui, draw_notice,
              ImGuiWindowFlags_NoScrollbar);
        top += gap + kNoticeHeight * s;
    }
    if (ui.bench.computation.ready()) {
        // The pick is one of the matrix that is in front.
        const Stage& stage = *ui.bench.shown().stage;
        ViewState& view = ui.bench.view;
        view.picked_row = std::clamp(view.picked_row, 0, int(stage.rows) - 1);
        view.picked_column = std::clamp(view.picked_column, 0, int(stage.columns) - 1);
        draw_panels(ui, top, bottom);
    }
    panel("status", {0, bottom + gap}, {size.x, size.y - bottom - gap}, ui, draw_status_bar,
          ImGuiWindowFlags_NoScrollbar);
    ImGui::PopStyleColor();
    draw_tour(ui);
    draw_dialogs(ui);
}

}  // namespace fovea::visualizer

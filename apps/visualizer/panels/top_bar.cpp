#include "panels/panels.hpp"

#include "data/session_file.hpp"
#include "document/imported_file.hpp"
#include "texts/texts.hpp"

#include <fovea/model/learned.hpp>

#include <utility>

namespace fovea::visualizer {
namespace {

constexpr float kWithDevice = 1240;  // width from which precision and device have room

// A synthetic map belongs to no level or model, whatever the settings are.
bool shows_synthetic_map(const Workbench& bench) {
    return bench.window.centre == CentreTab::map && bench.map && bench.map.head()->head().always_causal;
}

// "3  Causal mask"
std::string level_title(int level) { return std::to_string(level) + "  " + level_name(level); }

// A combo in the accent's color where what is shown is one of its choices, unchanged.
bool begin_choice(const PanelContext& ui, const char* id, const std::string& label, float width, bool current,
                  bool plain) {
    const Palette& colors = ui.colors();
    ImGui::SetNextItemWidth(width);
    if (current) {
        const ImU32 ground = plain ? colors.accent : colors.raised;
        for (const ImGuiCol part : {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_Button})
            ImGui::PushStyleColor(part, ground);
        ImGui::PushStyleColor(ImGuiCol_Text, plain ? colors.accent_text : colors.accent);
    }
    const bool open = ImGui::BeginCombo(id, label.c_str(), ImGuiComboFlags_HeightLargest);
    if (current) ImGui::PopStyleColor(4);
    return open;
}

float choice_width(const PanelContext& ui, const std::string& longest) {
    return ImGui::CalcTextSize(longest.c_str()).x + ImGui::GetFrameHeight() +
           2 * ImGui::GetStyle().FramePadding.x + 2 * ui.scale;
}

void draw_levels(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    const bool current = !s.file && !shows_model(s) && !shows_synthetic_map(bench);
    // A changed level no longer matches its name: only its text has the color.
    const bool plain = current && is_plain_level(s);
    const std::string label = !current ? texts().bar.levels
                              : plain  ? level_title(s.level)
                                       : level_title(s.level) + texts().bar.changed;
    const bool open = begin_choice(ui, "##level", label, choice_width(ui, label), current, plain);
    const ImVec2 low = ImGui::GetItemRectMin(), size = ImGui::GetItemRectSize();
    ui.levels = {low.x, low.y, size.x, size.y};
    if (!open) {
        if (ImGui::IsItemHovered())
            ImGui::SetTooltip("%s", current && !plain ? fill(texts().bar.changed_level_hint,
                                                             {level_name(s.level), std::to_string(s.level)})
                                                            .c_str()
                                                      : texts().bar.levels_hint);
        return;
    }
    for (int level = 1; level <= kLevelCount; ++level) {
        if (ImGui::Selectable((level_title(level) + "  ").c_str(), current && s.level == level))
            bench.show_level(level);
        tooltip(fill(texts().bar.level_hint, {level_text(level).title, std::to_string(level)}));
    }
    ImGui::EndCombo();
}

// Lists the trained models next to the levels.
void draw_tasks(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    const bool current = shows_model(s) && !s.model && !shows_synthetic_map(bench);
    const std::string name = current ? fill(texts().bar.trained, {s.task}) : texts().bar.learned;
    const bool open = begin_choice(ui, "##task", name, choice_width(ui, name), current, true);
    if (!open && ImGui::IsItemHovered()) ImGui::SetTooltip(texts().bar.task_hint);
    if (!open) return;
    for (const std::string& task : learned_tasks())
        if (ImGui::Selectable((task + "  ").c_str(), current && s.task == task)) bench.show_task(task);
    ImGui::EndCombo();
}

void draw_file(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const bool model = bench.document.settings().model != nullptr;
    if (!bench.document.settings().file && !model) return;
    ImGui::SameLine(0, 10 * ui.scale);
    if (ImGui::Button((file_title(bench) + (model ? "" : "  \xe2\x80\xa6")).c_str())) {
        if (model)
            bench.window.centre = CentreTab::layers;
        else
            bench.window.open_dialog(Dialog::import_sheet);
    }
    tooltip(model ? texts().bar.model_hint : texts().bar.file_hint);
    ImGui::SameLine(0, 4 * ui.scale);
    if (ImGui::Button("\xc3\x97")) bench.show_level(bench.document.settings().level);
    tooltip(texts().bar.close_hint);
}

void draw_device(PanelContext& ui) {
    Workbench& bench = ui.bench;
    ImGui::SetNextItemWidth(196 * ui.scale);
    const std::string current = bench.computation.on_cpu() ? "CPU" : bench.computation.device_name();
    // The box is narrow: the driver's version, in brackets after the name, is only in the list and in the
    // tooltip.
    const bool open = ImGui::BeginCombo("##device", current.substr(0, current.find(" (")).c_str());
    if (!open && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", current.c_str());
    if (!open) return;
    if (ImGui::Selectable(bench.computation.device_name().c_str(), !bench.computation.on_cpu()))
        bench.computation.compute_on_cpu(false);
    if (ImGui::Selectable("CPU (SIMD)", bench.computation.on_cpu())) bench.computation.compute_on_cpu(true);
    ImGui::EndCombo();
}

void draw_precision(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Precision current = bench.document.settings().precision;
    ImGui::SetNextItemWidth(136 * ui.scale);
    const bool open = ImGui::BeginCombo("##precision", std::string(precision_name(current)).c_str());
    if (!open && ImGui::IsItemHovered()) ImGui::SetTooltip(texts().bar.precision_hint);
    if (!open) return;
    const char* const hints[kPrecisionCount] = {texts().bar.f32, texts().bar.f16, texts().bar.f16_inputs};
    for (int i = 0; i < kPrecisionCount; ++i) {
        const auto precision = Precision(i);
        if (ImGui::Selectable(std::string(precision_name(precision)).c_str(), precision == current)) {
            Settings next = bench.document.settings();
            next.precision = precision;
            bench.document.change(next);
        }
        tooltip(hints[i]);
    }
    ImGui::EndCombo();
}

void draw_undo(PanelContext& ui) {
    Workbench& bench = ui.bench;
    ImGui::BeginDisabled(!bench.document.can_undo());
    if (ImGui::Button(texts().bar.undo)) bench.document.undo();
    ImGui::EndDisabled();
    tooltip("Ctrl+Z");
    ImGui::SameLine(0, 4 * ui.scale);
    ImGui::BeginDisabled(!bench.document.can_redo());
    if (ImGui::Button(texts().bar.redo)) bench.document.redo();
    ImGui::EndDisabled();
    tooltip("Ctrl+Shift+Z");
    ImGui::SameLine(0, 12 * ui.scale);
}

}  // namespace

void draw_top_bar(PanelContext& ui) {
    Workbench& bench = ui.bench;
    ImGui::SetCursorPosY(9 * ui.scale);
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(ui.fonts.strong);
    ImGui::TextUnformatted("Fovea");
    ImGui::PopFont();
    ImGui::SameLine(0, 18 * ui.scale);
    if (ImGui::Button(texts().bar.open)) bench.window.open_dialog(Dialog::open);
    tooltip(texts().bar.open_hint);
    // The first view has few controls: what there is to see, and how to go on.
    const bool quiet = bench.window.centre == CentreTab::sentence;
    if (!quiet) {
        ImGui::SameLine(0, 4 * ui.scale);
        if (ImGui::Button(texts().bar.export_file)) bench.window.open_dialog(Dialog::save);
        tooltip(texts().bar.export_hint);
    }
    ImGui::SameLine(0, 18 * ui.scale);
    draw_tasks(ui);
    ImGui::SameLine(0, 4 * ui.scale);
    draw_levels(ui);
    const bool wide = ImGui::GetWindowWidth() >= kWithDevice * ui.scale,
               restores = !bench.window.restorable.empty();
    const float right = ImGui::GetWindowWidth() - (quiet ? 100 : wide ? 560 : 208) * ui.scale;
    const float taken =
        button_width(texts().story.walk) + 26 * ui.scale + (restores ? button_width(texts().bar.restore) : 0);
    if (ui.levels.x + ui.levels.width + taken <= right) {
        const ImVec2 at = ImGui::GetCursorPos();
        ImGui::SameLine(0, 8 * ui.scale);
        if (!draw_walk_button(ui)) ImGui::SetCursorPos(at);
    }
    draw_file(ui);
    if (restores) {
        ImGui::SameLine(0, 10 * ui.scale);
        if (ImGui::Button(texts().bar.restore)) open_any(bench, std::exchange(bench.window.restorable, ""));
    }
    if (!quiet && ImGui::GetWindowWidth() < 720 * ui.scale) return;
    ImGui::SameLine(right);
    if (!quiet && wide) {
        draw_precision(ui);
        ImGui::SameLine(0, 8 * ui.scale);
        draw_device(ui);
        ImGui::SameLine(0, 12 * ui.scale);
    }
    if (!quiet) draw_undo(ui);
    if (ImGui::Button(bench.window.theme == Theme::dark ? texts().bar.light : texts().bar.dark))
        bench.window.theme = bench.window.theme == Theme::dark ? Theme::light : Theme::dark;
    ImGui::SameLine(0, 4 * ui.scale);
    if (ImGui::Button("?")) bench.window.open_dialog(Dialog::help);
    tooltip(texts().bar.help_hint);
    const ImVec2 low = ImGui::GetItemRectMin(), size = ImGui::GetItemRectSize();
    ui.help = {low.x, low.y, size.x, size.y};
}

}  // namespace fovea::visualizer

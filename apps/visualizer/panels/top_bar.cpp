#include "panels/panels.hpp"

#include "data/session_file.hpp"
#include "document/imported_file.hpp"
#include "texts/texts.hpp"

#include <fovea/model/learned.hpp>

#include <utility>

namespace fovea::visualizer {
namespace {

// A synthetic map belongs to no level or model, whatever the settings are.
bool shows_synthetic_map(const Workbench& bench) {
    return bench.window.centre == CentreTab::map && bench.map && bench.map.head()->head().always_causal;
}

void draw_levels(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    const bool wide = ImGui::GetWindowWidth() >= 1100 * ui.scale;
    const ImVec2 first = ImGui::GetCursorScreenPos();
    for (int level = 1; level <= kLevelCount; ++level) {
        const Settings& s = bench.document.settings();
        const bool current = !s.file && !shows_model(s) && s.level == level && !shows_synthetic_map(bench);
        if (level > 1) ImGui::SameLine(0, 4 * ui.scale);
        // A changed level no longer matches its name: only its text has the color.
        const bool plain = current && is_plain_level(s);
        if (current) {
            ImGui::PushStyleColor(ImGuiCol_Button, plain ? colors.accent : colors.raised);
            ImGui::PushStyleColor(ImGuiCol_ButtonHovered, plain ? colors.accent : colors.line);
            ImGui::PushStyleColor(ImGuiCol_Text, plain ? colors.accent_text : colors.accent);
        }
        const std::string label =
            std::to_string(level) + (current && wide ? "  " + level_name(level) + (plain ? "" : ", changed")
                                     : current && !plain ? "*"
                                                         : "");
        if (ImGui::Button((label + "###level" + std::to_string(level)).c_str())) bench.show_level(level);
        if (!plain && ImGui::IsItemHovered())
            ImGui::SetTooltip("%s", fill(current ? texts().bar.changed_level_hint : texts().bar.level_hint,
                                         {level_name(level), std::to_string(level)})
                                        .c_str());
        if (current) ImGui::PopStyleColor(3);
    }
    const ImVec2 last = ImGui::GetItemRectMax();
    ui.levels = {first.x, first.y, last.x - first.x, last.y - first.y};
}

// Lists the trained models next to the levels.
void draw_tasks(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    const bool current = shows_model(s) && !s.model && !shows_synthetic_map(bench);
    const Palette& colors = palette(bench.window.theme);
    const std::string name = current ? s.task : texts().bar.learned;
    ImGui::SetNextItemWidth(ImGui::CalcTextSize("induction").x + 44 * ui.scale);
    if (current) {
        ImGui::PushStyleColor(ImGuiCol_FrameBg, colors.accent);
        ImGui::PushStyleColor(ImGuiCol_FrameBgHovered, colors.accent);
        ImGui::PushStyleColor(ImGuiCol_Button, colors.accent);
        ImGui::PushStyleColor(ImGuiCol_Text, colors.accent_text);
    }
    const bool open = ImGui::BeginCombo("##task", name.c_str());
    if (current) ImGui::PopStyleColor(4);
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
    ImGui::SameLine(0, 4 * ui.scale);
    if (ImGui::Button(texts().bar.export_file)) bench.window.open_dialog(Dialog::save);
    tooltip(texts().bar.export_hint);
    ImGui::SameLine(0, 18 * ui.scale);
    draw_tasks(ui);
    ImGui::SameLine(0, 8 * ui.scale);
    draw_levels(ui);
    draw_file(ui);
    if (!bench.window.restorable.empty()) {
        ImGui::SameLine(0, 10 * ui.scale);
        if (ImGui::Button(texts().bar.restore)) open_any(bench, std::exchange(bench.window.restorable, ""));
    }
    if (ImGui::GetWindowWidth() >= 1100 * ui.scale) {
        ImGui::SameLine(ImGui::GetWindowWidth() - 560 * ui.scale);
        draw_precision(ui);
        ImGui::SameLine(0, 8 * ui.scale);
        draw_device(ui);
        ImGui::SameLine(0, 12 * ui.scale);
    } else if (ImGui::GetWindowWidth() >= 720 * ui.scale) {
        ImGui::SameLine(ImGui::GetWindowWidth() - 208 * ui.scale);
    } else {
        return;
    }
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
    if (ImGui::Button(bench.window.theme == Theme::dark ? texts().bar.light : texts().bar.dark))
        bench.window.theme = bench.window.theme == Theme::dark ? Theme::light : Theme::dark;
    ImGui::SameLine(0, 4 * ui.scale);
    if (ImGui::Button("?")) bench.window.open_dialog(Dialog::help);
    tooltip(texts().bar.help_hint);
    const ImVec2 low = ImGui::GetItemRectMin(), size = ImGui::GetItemRectSize();
    ui.help = {low.x, low.y, size.x, size.y};
}

}  // namespace fovea::visualizer

// The likeliest tokens after the picked one, next to those without the reader's
// changes, and what each layer would say if it were the last.
#include "panels/panels.hpp"
#include "texts/texts.hpp"
#include "theme/theme.hpp"

#include <imgui_stdlib.h>

#include <algorithm>

namespace fovea::visualizer {
namespace {

std::string percent(double probability) { return format_fixed(100 * probability, 1) + " %"; }

std::string shown_text(const PanelContext& ui, const NextToken& token) {
    return in_drawing_order(next_text(ui.bench.document.settings(), token.id));
}

void draw_likeliest(PanelContext& ui, const PromptNext& table) {
    const bool changed = !table.before.empty();
    const Palette& colors = ui.colors();
    ImGui::BeginChild("likeliest", {(changed ? 430 : 300) * ui.scale, 0});
    if (ImGui::BeginTable("next", changed ? 4 : 2,
                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerH)) {
        ImGui::TableSetupColumn(texts().next.next, 0, 110 * ui.scale);
        ImGui::TableSetupColumn(changed ? texts().next.changed : texts().next.probability, 0, 150 * ui.scale);
        if (changed) {
            ImGui::TableSetupColumn(texts().next.without, 0, 60 * ui.scale);
            ImGui::TableSetupColumn(texts().next.said_without, 0, 90 * ui.scale);
        }
        ImGui::TableHeadersRow();
        const std::vector<NextToken>& entries = table.after.back();
        for (size_t i = 0; i < entries.size(); ++i) {
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            ImGui::TextUnformatted(shown_text(ui, entries[i]).c_str());
            ImGui::TableNextColumn();
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const float line = ImGui::GetTextLineHeight();
            ImGui::GetWindowDrawList()->AddRectFilled(
                {at.x, at.y + 2 * ui.scale},
                {at.x + std::max(float(entries[i].probability) * 84 * ui.scale, 1.0f),
                 at.y + line - 2 * ui.scale},
                i == 0 ? colors.accent : colors.mark, 2 * ui.scale);
            ImGui::SetCursorPosX(ImGui::GetCursorPosX() + 90 * ui.scale);
            ImGui::TextUnformatted(percent(entries[i].probability).c_str());
            if (!changed) continue;
            ImGui::TableNextColumn();
            soft_text(percent(table.unchanged[i].probability));
            ImGui::TableNextColumn();
            soft_text(shown_text(ui, table.before[i]));
        }
        ImGui::EndTable();
    }
    ImGui::EndChild();
}

void draw_lens(PanelContext& ui, const PromptNext& table) {
    const Palette& colors = ui.colors();
    ImGui::BeginChild("lens", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
    soft_text(texts().next.lens);
    tooltip(texts().next.lens_hint);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = 104 * ui.scale, line = ImGui::GetTextLineHeight();
    constexpr size_t kShown = 4;
    const auto left = float(table.after.size());
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    for (size_t n = 0; n < table.after.size(); ++n) {
        const float x = at.x + float(n) * width;
        const std::string name = n == 0 ? texts().next.none : "L" + std::to_string(n - 1);
        draw_text(ui.fonts.small, {x, at.y}, colors.text_soft, name);
        for (size_t i = 0; i < std::min(kShown, table.after[n].size()); ++i) {
            const NextToken& entry = table.after[n][i];
            const float y = at.y + line + float(i) * (line + 3 * ui.scale);
            const bool final_one = entry.id == table.after.back()[0].id;
            const float right = x + width - 10 * ui.scale;
            // The bar under the words: a short one leaves them on their own ground.
            draw.AddRectFilled({x, y + line - 2 * ui.scale},
                               {x + std::max(float(entry.probability) * (right - x), 1.0f), y + line},
                               final_one ? colors.accent : colors.mark);
            ImFont* const small = ui.fonts.small;
            const std::string share = format_fixed(100 * entry.probability, 0) + " %";
            const float taken = text_width(small, share);
            const ImVec4 clip{x, y, right - taken - 4 * ui.scale, y + line};
            draw.AddText(small, small->FontSize, {x, y}, final_one ? colors.accent : colors.text,
                         shown_text(ui, entry).c_str(), nullptr, 0, &clip);
            draw_text(small, {right - taken, y}, colors.text_soft, share);
        }
    }
    ImGui::Dummy({left * width, float(kShown + 1) * (line + 3 * ui.scale)});
    ImGui::EndChild();
}

// Changes the shown head of a published model: the factor of its context, or its replacement.
void draw_head_change(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    const HeadPlace place{s.mapping.layer, bench.view.head};
    HeadChange change = change_of(s, place);
    const auto commit = [&](uint64_t gesture) {
        Settings next = s;
        change_head(next, change);
        bench.document.change(next, gesture);
    };
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(head_name(place.layer, place.head).c_str());
    ImGui::SameLine(0, 8 * ui.scale);
    ImGui::SetNextItemWidth(130 * ui.scale);
    if (ImGui::SliderFloat("##scale", &change.scale, 0, 2,
                           change.scale == 0   ? texts().next.off
                           : change.scale == 1 ? texts().next.unchanged
                                               : "\xc3\x97 %.2f",
                           ImGuiSliderFlags_AlwaysClamp)) {
        change.patch.clear();
        commit(ImGui::GetID("##scale"));
    }
    tooltip(texts().next.scale_hint);
    ImGui::SameLine(0, 8 * ui.scale);
    ImGui::SetNextItemWidth(260 * ui.scale);
    std::string& typed = bench.window.patch_text;
    const bool entered =
        ImGui::InputTextWithHint("##patch", texts().next.patch, &typed, ImGuiInputTextFlags_EnterReturnsTrue);
    tooltip(texts().next.patch_hint);
    if (entered && !typed.empty()) {
        change.patch = typed;
        change.scale = 1;
        commit(0);
    }
    if (!change.patch.empty()) {
        ImGui::SameLine(0, 8 * ui.scale);
        soft_text(fill(texts().next.patched, {in_drawing_order(change.patch)}));
    }
    if (s.changed.empty()) return;
    ImGui::SameLine(0, 8 * ui.scale);
    if (ImGui::Button(s.changed.size() == 1
                          ? texts().next.reset
                          : fill(texts().next.reset_all, {std::to_string(s.changed.size())}).c_str())) {
        Settings next = s;
        next.changed.clear();
        bench.document.change(next);
    }
}

}  // namespace

void draw_next_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    if (!shows_model(s)) {
        soft_paragraph(texts().next.empty);
        return;
    }
    if (s.model) draw_head_change(ui);
    const PromptNext* table = bench.next_table();
    if (!table) {
        soft_text(bench.computation.next_problem().empty() ? texts().next.computing
                                                           : bench.computation.next_problem());
        return;
    }
    const std::vector<std::string>& tokens = bench.computation.tokens();
    std::string behind;
    for (uint64_t i = table->row > 3 ? table->row - 3 : 0; i <= table->row && i < tokens.size(); ++i)
        behind += (behind.empty() ? "" : " ") + (i == table->row ? token_name(bench, i) : tokens[i]);
    soft_text(fill(texts().next.after, {in_drawing_order(behind)}));
    draw_likeliest(ui, *table);
    ImGui::SameLine(0, 18 * ui.scale);
    draw_lens(ui, *table);
}

}  // namespace fovea::visualizer

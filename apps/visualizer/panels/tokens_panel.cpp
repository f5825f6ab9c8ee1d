// The text, and for the picked query the keys by weight.
#include "panels/panels.hpp"

#include "document/imported_file.hpp"
#include "panels/panel_table.hpp"
#include "texts/texts.hpp"
#include "theme/theme.hpp"

#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <numeric>

namespace fovea::visualizer {
namespace {

constexpr size_t kMaxBars = 64;

void draw_bar(PanelContext& ui, const Workbench::Weights& weights, uint64_t key, float weight,
              float largest) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    const float width = ImGui::GetContentRegionAvail().x, height = ImGui::GetTextLineHeight() + 6 * ui.scale;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(int(key));
    if (ImGui::InvisibleButton("bar", {width, height})) bench.view.picked_column = int(key);
    const std::vector<uint32_t>& hidden = bench.document.settings().hidden_keys;
    const bool is_hidden = std::binary_search(hidden.begin(), hidden.end(), uint32_t(key));
    tooltip(is_hidden ? texts().tokens.unmask_hint : texts().tokens.mask_hint);
    if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) {
        Settings next = bench.document.settings();
        toggle_key(next, uint32_t(key));
        bench.document.change(next);
    }
    const bool strong =
        ImGui::IsItemHovered() || (bench.shown().stage->over_keys && bench.view.picked_column == int(key));
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float label = width * 0.42f, number = 58 * ui.scale, room = width - label - number;
    const float length = largest > 0 ? room * weight / largest : 0;
    const bool masked = weights.stage->hidden(weights.head, uint64_t(bench.view.picked_row), key);
    const bool dropped = weights.stage->dropped(weights.head, uint64_t(bench.view.picked_row), key);
    if (!masked && !dropped)
        draw.AddRectFilled({at.x + label, at.y + 3 * ui.scale},
                           {at.x + label + std::max(length, 1.0f), at.y + height - 3 * ui.scale},
                           strong ? colors.accent : colors.mark, 3 * ui.scale);
    const ImVec4 clip{at.x, at.y, at.x + label - 6 * ui.scale, at.y + height};
    draw.AddText(ui.fonts.body, ui.fonts.body->FontSize, {at.x, at.y + 3 * ui.scale},
                 strong ? colors.text : colors.text_soft, drawn_name(bench, key).c_str(), nullptr, 0, &clip);
    const std::string text = is_hidden || masked ? "masked" : dropped ? "dropped" : format_fixed(weight, 4);
    draw_text(ui.fonts.mono, {at.x + width - number + 8 * ui.scale, at.y + 4 * ui.scale},
              masked || dropped ? colors.text_soft : colors.text, text);
    ImGui::PopID();
}

bool has_own_tokens(const Settings& s) {
    return s.file && (s.mapping.kind == ImportKind::qkv || s.mapping.kind == ImportKind::fused ||
                      (s.mapping.kind != ImportKind::tables && !s.file->tokens.empty()));
}

// Typed text is edited letter by letter in reading order; otherwise it is drawn as it is written.
bool draw_text_field(PanelContext& ui, Settings& next) {
    const std::string drawn = in_drawing_order(next.text);
    const ImGuiID id = ImGui::GetID("##text");
    const bool covers = drawn != next.text && ImGui::GetCurrentContext()->ActiveId != id;
    if (covers) ImGui::PushStyleColor(ImGuiCol_Text, 0);
    const bool typed = ImGui::InputTextWithHint("##text", text_hint(next).c_str(), &next.text);
    if (!covers) return typed;
    ImGui::PopStyleColor();
    const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax(),
                 padding = ImGui::GetStyle().FramePadding;
    const ImVec4 clip{low.x + padding.x, low.y, high.x - padding.x, high.y};
    ImGui::GetWindowDrawList()->AddText(ui.fonts.body, ui.fonts.body->FontSize, {clip.x, low.y + padding.y},
                                        ui.colors().text, drawn.c_str(), nullptr, 0, &clip);
    return typed;
}

// For an own text of a model that reads letters or numbers: explains how it reads, and where words are read.
void offer_words(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    if (s.file || !reads_no_words(s) || s.text == level_session(s.level, s.task).text) return;
    ImGui::PushFont(ui.fonts.small);
    ImGui::AlignTextToFramePadding();
    soft_text(fill(texts().tokens.reads, {text_hint(s)}));
    ImGui::PopFont();
    same_line_if_room(button_width(texts().tokens.use_words), 8 * ui.scale);
    if (ImGui::SmallButton(texts().tokens.use_words)) {
        Settings next = level_settings(2, s);
        next.text = s.text;
        bench.document.change(next);
    }
    tooltip(texts().tokens.use_words_hint);
}

// "6 words", and the choice of what a token is; a file of queries and keys has its own tokens.
void draw_tokenizer(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    const std::string count = std::to_string(bench.computation.tokens().size()) + " ";
    if (has_own_tokens(s) || shows_model(s)) {
        heading(ui, texts().tokens.title, (count + "tokens").c_str());
        return;
    }
    ImGui::PushFont(ui.fonts.strong);
    ImGui::TextUnformatted(texts().tokens.title);
    ImGui::PopFont();
    ImGui::SameLine(0, 8 * ui.scale);
    const ImVec2 at = ImGui::GetCursorPos();
    ImGui::SetCursorPos({at.x, 6 * ui.scale});
    ImGui::SetNextItemWidth(128 * ui.scale);
    if (ImGui::BeginCombo("##tokenizer", (count + std::string(tokenizer_name(s.tokenizer))).c_str())) {
        for (int i = 0; i < kTokenizerCount; ++i) {
            const auto how = Tokenizer(i);
            if (!ImGui::Selectable(std::string(tokenizer_name(how)).c_str(), s.tokenizer == how)) continue;
            Settings next = s;
            next.tokenizer = how;
            bench.document.change(next);
        }
        ImGui::EndCombo();
    }
    tooltip(texts().tokens.tokenizer_hint);
    ImGui::Dummy({0, 2 * ui.scale});
}

}  // namespace

void draw_text_controls(PanelContext& ui) {
    Workbench& bench = ui.bench;
    Settings next = bench.document.settings();
    bool typed = false;
    ImGui::SetNextItemWidth(-1);
    if (has_own_tokens(next))
        soft_text(next.file->tokens.empty() ? texts().tokens.unnamed : texts().tokens.of_file);
    else
        typed = draw_text_field(ui, next);
    if (typed) {
        bench.document.change(next, ImGui::GetID("##text"));
        if (shows_model(next)) bench.pick_largest(UINT64_MAX);
    }
    offer_words(ui);
}

void draw_tokens_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    draw_tokenizer(ui);
    const ImVec2 below = ImGui::GetCursorPos();
    int lines = bench.window.token_lines;
    constexpr const char* kHow[] = {"list", "lines"};
    // Next to the heading if there is room.
    const bool beside = ImGui::GetWindowWidth() >= 290 * ui.scale;
    if (beside) ImGui::SetCursorPos({ImGui::GetWindowWidth() - 112 * ui.scale, 6 * ui.scale});
    if (tabs(ui, kHow, lines)) bench.window.token_lines = lines == 1;
    if (beside) ImGui::SetCursorPos(below);
    draw_text_controls(ui);
    ImGui::Dummy({0, 4 * ui.scale});
    if (!bench.computation.complete()) return;
    if (!bench.document.settings().hidden_keys.empty()) {
        if (ImGui::Button(
                fill(texts().tokens.unmask, {std::to_string(bench.document.settings().hidden_keys.size())})
                    .c_str())) {
            Settings next = bench.document.settings();
            next.hidden_keys.clear();
            bench.document.change(next);
        }
    }
    if (bench.window.token_lines) {
        draw_token_lines(ui);
        return;
    }
    const Workbench::Weights weights = bench.shown_weights();
    // Which weights these are, where they are not the weights.
    const StageText* const of = weights.stage->id && weights.stage->id != StageId::weights
                                    ? &stage_text(*weights.stage->id)
                                    : nullptr;
    const std::string from = fill(texts().tokens.from, {drawn_name(bench, uint64_t(bench.view.picked_row))}) +
                             (of ? ": " + in_a_sentence(of->label) : "");
    soft_text(from);
    const std::span<const float> row = weights.row(uint64_t(bench.view.picked_row));
    std::vector<uint64_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    const size_t shown = std::min(order.size(), kMaxBars);
    std::partial_sort(order.begin(), order.begin() + ptrdiff_t(shown), order.end(),
                      [&](uint64_t a, uint64_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 1 * ui.scale});
    for (size_t i = 0; i < shown; ++i)
        draw_bar(ui, weights, order[i], row[order[i]], shown ? row[order[0]] : 0);
    ImGui::PopStyleVar();
    if (shown < row.size())
        soft_text(fill(texts().tokens.keys_shown, {std::to_string(shown), std::to_string(row.size())}));
}

}  // namespace fovea::visualizer

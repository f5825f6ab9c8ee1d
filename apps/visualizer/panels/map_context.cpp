// The context of a map: its tokens, the keys that the picked query attends to, and the steps from queries to
// tiles.
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <fovea/runtime.hpp>

#include <algorithm>

namespace fovea::visualizer {
namespace {

std::string square(uint64_t rows, uint64_t keys) {
    return "[" + format_count(rows) + ", " + format_count(keys) + "]";
}

bool draw_key(PanelContext& ui, uint64_t key, float weight, float largest) {
    const MapPlace& place = ui.bench.map.place;
    const Palette& colors = ui.colors();
    const float s = ui.scale, width = ImGui::GetContentRegionAvail().x,
                height = ImGui::GetTextLineHeight() + 6 * s;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(int(key));
    const bool clicked = ImGui::InvisibleButton("key", {width, height});
    ImGui::PopID();
    const bool strong = ImGui::IsItemHovered() || place.picked_key == key;
    tooltip(texts().tokens.pick_hint);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float label = 84 * s, number = 66 * s, room = width - label - number;
    draw.AddRectFilled({at.x + label, at.y + 3 * s},
                       {at.x + label + std::max(room * weight / largest, 1.0f), at.y + height - 3 * s},
                       strong ? colors.accent : colors.mark, 3 * s);
    draw_text(ui.fonts.body, {at.x, at.y + 3 * s}, strong ? colors.text : colors.text_soft,
              format_count(key));
    draw_text(ui.fonts.mono, {at.x + width - number + 8 * s, at.y + 4 * s}, colors.text,
              format_value(weight, 4));
    return clicked;
}

void draw_keys(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const MapPick* pick = bench.map.pick();
    if (!pick) return soft_text(texts().map.computing);
    if (pick->largest.empty()) return;
    soft_paragraph(fill(texts().map.share, {format_count(pick->row), std::to_string(pick->largest.size()),
                                            format_fixed(100 * pick->share, 1)}));
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 1 * ui.scale});
    const float largest = std::max(pick->largest[0].second, 1e-30f);
    uint64_t clicked = bench.map.place.picked_key;
    for (const auto& [key, weight] : pick->largest)
        if (weight > 0 && draw_key(ui, key, weight, largest)) clicked = key;
    if (clicked != bench.map.place.picked_key) pick_on_map(bench, pick->row, clicked);
    ImGui::PopStyleVar();
    if (bench.map.head()->call().dropout_p > 0) soft_text(texts().map.before_dropout);
}

void draw_step(PanelContext& ui, const char* name, const std::string& shape, const std::string& how) {
    const Palette& colors = ui.colors();
    const float s = ui.scale, line = ImGui::GetTextLineHeight(), width = ImGui::GetContentRegionAvail().x;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float x = at.x + 12 * s, y = at.y + 4 * s;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    ImFont* small = ui.fonts.small;
    draw_text(ui.fonts.body, {x, y}, colors.text, name);
    const float shape_width = text_width(small, shape);
    draw_text(small, {at.x + width - shape_width - 10 * s, y + 2 * s}, colors.text_soft, shape);
    const ImVec2 size = small->CalcTextSizeA(small->FontSize, 1e6f, width - 24 * s, how.c_str());
    draw.AddText(small, small->FontSize, {x, y + line + 2 * s}, colors.text_soft, how.c_str(), nullptr,
                 width - 24 * s);
    ImGui::Dummy({width, line + size.y + 10 * s});
}

}  // namespace

void draw_map_tokens(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const LongMap* map = bench.map.head();
    heading(ui, "Context", map ? (format_count(map->tokens()) + " tokens").c_str() : "");
    ImGui::PushTextWrapPos();
    if (bench.map.is_coming())
        soft_text(texts().map.coming);
    else if (!map)
        soft_text(texts().map.none);
    else if (map->head().always_causal)
        soft_text(fill(texts().map.synthetic, {format_count(map->tokens() / 5 | 1)}));
    else
        soft_text(fill(texts().map.unnamed, {map->name()}));
    ImGui::PopTextWrapPos();
    ImGui::Dummy({0, 4 * ui.scale});
    if (map) draw_keys(ui);
}

void draw_map_pipeline(PanelContext& ui) {
    Workbench& bench = ui.bench;
    heading(ui, "Pipeline", texts().map.in_tiles);
    if (!bench.map) return;
    const LongMap& map = *bench.map.head();
    const FoveaAttentionDesc& d = map.call();
    const uint64_t rows = map.rows(), keys = map.tokens();
    const std::string whole = square(rows, keys);
    const auto width = [&](uint64_t count) {
        return "[" + format_count(count) + ", " + std::to_string(d.dim_qk) + "]";
    };
    draw_step(ui, "queries", width(rows),
              map.head().always_causal ? texts().map.planted : texts().map.of_file);
    draw_step(ui, "keys", width(keys), map.head().always_causal ? texts().map.planted : texts().map.of_file);
    Settings s = bench.document.settings();
    s.causal = s.causal || map.head().always_causal;
    // Cells for each weight are left out above a limit; the line below says so.
    if (map.head().left_out.find("mask") != std::string::npos && s.pattern != MaskPattern::padding)
        s.pattern = MaskPattern::none;
    CallExtras extras;
    if (map.head().file_mask && bench.document.settings().pattern == MaskPattern::none) extras.mask = {1};
    if (map.call().bias.present) extras.bias = {1};
    if (map.head().has_sink) extras.sinks = {map.head().sink};
    draw_step(
        ui, "scores", whole,
        fill(texts().map.scores, {format_number(1 / double(d.scale), 5), format_bytes(rows * keys * 4)}));
    draw_step(ui, "masked", whole,
              mask_text(s, extras) + (map.head().left_out.empty() ? "" : "; " + map.head().left_out));
    draw_step(ui, "log-sum-exp", "[" + format_count(rows) + "]",
              fill(texts().map.lse, {format_number(100 * map.rows_known(), 3)}));
    if (d.dropout_p > 0)
        draw_step(ui, "dropout", whole,
                  fill(texts().map.dropout,
                       {format_number(double(d.dropout_p), 3), std::to_string(d.dropout_seed)}));
    const MapProgress progress = bench.map.head()->tiles().progress();
    const std::string side = format_count(uint64_t{1} << progress.level);
    draw_step(ui, "weights", whole, fill(texts().map.weights, {side}));
}

}  // namespace fovea::visualizer

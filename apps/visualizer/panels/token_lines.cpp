// Queries on the left, keys on the right, and a line for each of a query's largest weights.
#include "panels/canvas.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea::visualizer {
namespace {

// The most lines of one picture; what is left out is said.
constexpr size_t kMaxLines = 20000;
constexpr float kLabels = 0.36f;  // share of the width on either side

struct TokenLine {
    uint64_t query, key;
    float weight;
};

// Adds the `top` largest weights of a query, the largest last so that it is drawn on top.
void add_lines(const Workbench& bench, uint64_t query, size_t top, std::vector<TokenLine>& out) {
    const std::span<const float> row = bench.shown_weights().row(query);
    const uint64_t keys = row.size();
    std::vector<uint64_t> order(keys);
    std::iota(order.begin(), order.end(), 0);
    const auto end = order.begin() + ptrdiff_t(std::min<uint64_t>(top, keys));
    std::partial_sort(order.begin(), end, order.end(),
                      [&](uint64_t a, uint64_t b) { return row[a] > row[b]; });
    for (auto at = end; at-- != order.begin();)
        if (row[*at] > 0) out.push_back({query, *at, row[*at]});
}

void draw_line_controls(PanelContext& ui) {
    WindowState& state = ui.bench.window;
    ImGui::SetNextItemWidth(104 * ui.scale);
    ImGui::SliderInt("##top", &state.lines_top, 1, 32, "top %d", ImGuiSliderFlags_AlwaysClamp);
    const char* const of_all = texts().tokens.every_query;
    same_line_if_room(
        ImGui::GetFrameHeight() + ImGui::GetStyle().ItemInnerSpacing.x + ImGui::CalcTextSize(of_all).x,
        8 * ui.scale);
    check_box(ui, of_all, &state.lines_of_all);
}

void draw_label(PanelContext& ui, ImVec2 at, float width, uint64_t token, bool is_query) {
    Workbench& bench = ui.bench;
    ViewState& view = bench.view;
    const Palette& colors = palette(bench.window.theme);
    int& picked = is_query ? view.picked_row : view.picked_column;
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(int(token * 2 + is_query));
    if (ImGui::InvisibleButton("token", {width, ImGui::GetTextLineHeightWithSpacing()})) {
        picked = int(token);
        view.pinned = true;
    } else if (ImGui::IsItemHovered() && !view.pinned) {
        picked = int(token);
    }
    ImGui::PopID();
    const std::string text = drawn_label(bench, token);
    ImFont* font = ui.fonts.body;
    const float wide = text_width(font, text);
    const ImVec4 clip{at.x, at.y, at.x + width, at.y + 2 * font->FontSize};
    ImGui::GetWindowDrawList()->AddText(
        font, font->FontSize, {is_query ? std::max(at.x, at.x + width - wide) : at.x, at.y},
        picked == int(token) ? colors.accent : colors.text_soft, text.c_str(), nullptr, 0, &clip);
}

void draw_lines(PanelContext& ui, ImVec2 origin, float left, float right,
                const std::vector<TokenLine>& lines) {
    const Palette& colors = ui.colors();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float step = ImGui::GetTextLineHeightWithSpacing(), middle = ImGui::GetTextLineHeight() / 2;
    for (const TokenLine& line : lines) {
        const bool picked = line.query == uint64_t(ui.bench.view.picked_row);
        const auto alpha = ImU32(40 + 215 * std::min(line.weight, 1.0f));
        const ImU32 color = ((picked ? colors.accent : colors.text_soft) & 0x00ffffff) | alpha << 24;
        draw.AddLine({left, origin.y + step * float(line.query) + middle},
                     {right, origin.y + step * float(line.key) + middle}, color,
                     (0.8f + 3.2f * std::min(line.weight, 1.0f)) * ui.scale);
    }
}

}  // namespace

float draw_arc(float from, float to, float foot, float tall, float thickness, ImU32 color, float loop) {
    const float wide = std::abs(to - from);
    const float top = std::min(tall, wide == 0 ? 0.4f * tall : 0.3f * tall + 0.25f * wide);
    const float spread = wide == 0 ? loop : 0, handle = foot - top / 0.75f;  // as a Bezier's top is lower
    ImGui::GetWindowDrawList()->AddBezierCubic({from, foot}, {from - spread, handle}, {to + spread, handle},
                                               {to, foot}, color, thickness);
    return foot - top;
}

void canvas_arcs(PanelContext& ui, const Canvas& c, float foot) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    const uint64_t queries = bench.shown_weights().stage->rows;
    std::vector<TokenLine> lines;
    const auto picked = uint64_t(bench.view.picked_row);
    if (bench.window.lines_of_all)
        for (uint64_t q = 0; q < queries; ++q)
            if (q != picked) add_lines(bench, q, size_t(bench.window.lines_top), lines);
    add_lines(bench, picked, size_t(bench.window.lines_top), lines);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float s = ui.scale, y = std::max(c.origin.y, c.at.y) - foot, tall = (kArcRow - 8) * s;
    draw.PushClipRect({c.at.x, y - tall - 4 * s}, {c.at.x + c.size.x, y + 2 * s}, true);
    const auto x_of = [&](uint64_t token) { return c.origin.x + (float(token) + 0.5f) * c.cell_width; };
    for (const TokenLine& line : lines) {
        const bool own = line.query == picked;
        const float from = x_of(line.query), to = x_of(line.key), weight = std::min(line.weight, 1.0f);
        const auto alpha = ImU32(own ? 60 + 195 * weight : 110 * weight);
        const ImU32 color = ((own ? colors.accent : colors.text_soft) & 0x00ffffff) | alpha << 24;
        const float thickness = (0.8f + (own ? 4.2f : 2.2f) * weight) * s;
        (void)draw_arc(from, to, y, tall, thickness, color, std::min(9 * s, 0.4f * c.cell_width));
        if (own) draw.AddCircleFilled({to, y}, std::max(thickness * 0.7f, 1.5f * s), color);
    }
    draw.PopClipRect();
}

void draw_token_lines(PanelContext& ui) {
    Workbench& bench = ui.bench;
    draw_line_controls(ui);
    const Workbench::Weights weights = bench.shown_weights();
    const uint64_t queries = weights.stage->rows, keys = weights.stage->columns;
    ImGui::BeginChild("lines");
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x, side = width * kLabels, gap = 8 * ui.scale;
    const float step = ImGui::GetTextLineHeightWithSpacing();
    // Only what is scrolled into view has labels and, where every query has lines, is drawn.
    const auto first = uint64_t(std::max(ImGui::GetScrollY() / step, 0.0f));
    const uint64_t shown = uint64_t(ImGui::GetWindowHeight() / step) + 2;
    std::vector<TokenLine> lines;
    if (bench.window.lines_of_all)
        for (uint64_t q = first; q < std::min(first + shown, queries); ++q)
            if (q != uint64_t(bench.view.picked_row))
                add_lines(bench, q, size_t(bench.window.lines_top), lines);
    add_lines(bench, uint64_t(bench.view.picked_row), size_t(bench.window.lines_top), lines);
    const size_t all = lines.size();
    if (all > kMaxLines) lines.erase(lines.begin(), lines.end() - ptrdiff_t(kMaxLines));
    draw_lines(ui, origin, origin.x + side + gap, origin.x + width - side - gap, lines);
    for (uint64_t i = first; i < std::min(first + shown, std::max(queries, keys)); ++i) {
        const float y = origin.y + step * float(i);
        if (i < queries) draw_label(ui, {origin.x, y}, side, i, true);
        if (i < keys) draw_label(ui, {origin.x + width - side, y}, side, i, false);
    }
    ImGui::SetCursorScreenPos({origin.x, origin.y + step * float(std::max(queries, keys))});
    if (all > kMaxLines)
        soft_text(fill(texts().tokens.lines_shown, {std::to_string(kMaxLines), std::to_string(all)}));
    else
        ImGui::Dummy({1, 1});
    ImGui::EndChild();
}

}  // namespace fovea::visualizer

#include "panels/head_thumbnail.hpp"

#include "panels/canvas.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {

std::string scores_text(const TokenScores& scores) {
    std::string text;
    for (const TokenScoreName& one : token_score_names())
        if (const float score = scores.*one.value; !std::isnan(score))
            text +=
                (text.empty() ? "" : ", ") + std::string(one.label) + " " + format_fixed(double(score), 2);
    return text;
}

void order_controls(PanelContext& ui, int count) {
    HeadOrder& order = ui.bench.window.head_order;
    ImGui::AlignTextToFramePadding();
    soft_text(texts().heads.ordered_by);
    ImGui::SameLine(0, 8 * ui.scale);
    ImGui::SetNextItemWidth(132 * ui.scale);
    ImGui::Combo("##order", &order.figure, kHeadOrders, count);
    if (order.figure == 0) return;
    ImGui::SameLine(0, 8 * ui.scale);
    if (ImGui::Button(order.rising ? texts().heads.smallest_first : texts().heads.largest_first))
        order.turn();
}

Thumbnail thumbnail_of(const Stage& stage, uint32_t head) {
    return {stage.buffer,
            stage.hiding,
            uint32_t(head * stage.rows * stage.columns),
            uint32_t(stage.rows),
            uint32_t(stage.columns),
            stage.ranges[head],
            stage.dropping};
}

void draw_thumbnail(PanelContext& ui, const Thumbnail& of, ImVec2 at, ImVec2 size) {
    const ImGuiIO& io = ImGui::GetIO();
    const Palette& colors = ui.colors();
    const float sx = io.DisplayFramebufferScale.x, sy = io.DisplayFramebufferScale.y;
    const Coloring coloring = coloring_of({}, of.range);
    MatrixView v{};
    v.left = v.origin_x = at.x * sx, v.top = v.origin_y = at.y * sy;
    v.width = size.x * sx, v.height = size.y * sy;
    v.cell_width = v.width / float(of.columns), v.cell_height = v.height / float(of.rows);
    v.first_element = of.first_element;
    v.row_stride = v.columns = of.columns;
    v.rows = of.rows;
    v.range_low = float(coloring.low), v.range_high = float(coloring.high);
    v.colormap = uint32_t(std::find(kColormaps.begin(), kColormaps.end(), coloring.map) - kColormaps.begin());
    v.flags = (of.hiding ? MATRIX_FLAG_HIDING : 0) | (of.dropping ? MATRIX_FLAG_DROPPED : 0);
    v.hatch_period = kHatchPeriod * ui.scale;
    v.ground = ui.transparent ? ui.ground : colors.matrix_ground, v.hatch = colors.hatch,
    v.dropped = colors.mark, v.highlight = colors.text;
    v.picked_row = v.picked_column = -1;
    ui.matrices.add(*ImGui::GetWindowDrawList(), *of.values, v, of.hiding, of.dropping);
}

ScreenRect frame_cells(const PanelContext& ui, const Stage& stage, const CellRect& cells, ImVec2 at,
                       ImVec2 size) {
    const Palette& colors = ui.colors();
    const float s = ui.scale;
    const auto span = [s](int begin, uint64_t count, uint64_t of, float origin, float side, float& low,
                          float& high) {
        const float cell = side / float(of), least = std::min(4 * s, side);
        low = origin + float(begin) * cell, high = low + float(count) * cell;
        if (high - low < least) {
            low = std::clamp((low + high - least) / 2, origin, origin + side - least);
            high = low + least;
        }
    };
    ImVec2 low, high;
    span(cells.column_begin, cells.columns(), stage.columns, at.x, size.x, low.x, high.x);
    span(cells.row_begin, cells.rows(), stage.rows, at.y, size.y, low.y, high.y);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRect({low.x - s, low.y - s}, {high.x + s, high.y + s}, colors.matrix_ground, 0, 0, 4 * s);
    draw.AddRect({low.x - s, low.y - s}, {high.x + s, high.y + s}, colors.accent, 0, 0, 2 * s);
    return {low.x - s, low.y - s, high.x - low.x + 2 * s, high.y - low.y + 2 * s};
}

void head_tooltip(const std::string& name, const HeadStats& s, const TokenScores& scores, bool of_model) {
    const std::string of_text = scores_text(scores);
    std::string text = fill(texts().heads.statistics,
                            {name, format_fixed(s.entropy, 3), format_fixed(100 * s.relative_entropy, 0),
                             format_fixed(s.mean_distance, 2), format_fixed(100 * s.first_token_mass, 1),
                             format_fixed(100 * s.previous_token, 1), format_fixed(s.largest_weight, 3)});
    if (!of_text.empty()) text += fill(texts().heads.on_text, {of_text});
    text += of_model ? texts().heads.model_keys : texts().heads.keys;
    ImGui::SetTooltip("%s", text.c_str());
}

}  // namespace fovea::visualizer

// The shown stage's matrix with its controls, marginals, range bar with histogram, and minimap.
#include "panels/canvas.hpp"

#include "document/comparison.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr float kBarArea = 128, kMarginal = 46, kHistogram = 30, kCellWithDigits = 46;

void draw_map_combo(PanelContext& ui) {
    ViewState& view = ui.bench.view;
    ImGui::SetNextItemWidth(128 * ui.scale);
    const std::string current =
        view.colors.automatic_map ? texts().matrix.auto_colors : std::string(colormap_name(view.colors.map));
    if (!ImGui::BeginCombo("##map", current.c_str())) return;
    if (ImGui::Selectable(texts().matrix.automatic, view.colors.automatic_map))
        view.colors.automatic_map = true;
    for (const Colormap map : kColormaps) {
        if (!ImGui::Selectable(std::string(colormap_name(map)).c_str(),
                               !view.colors.automatic_map && view.colors.map == map))
            continue;
        view.colors.automatic_map = false;
        view.colors.map = map;
    }
    ImGui::EndCombo();
}

void draw_matrix_controls(PanelContext& ui) {
    ViewState& view = ui.bench.view;
    ImGui::SetNextItemWidth(128 * ui.scale);
    // Short, so that it is whole; the list has the names.
    constexpr const char* kShort[kSpreadCount] = {"auto", "linear", "log", "\xc2\xb1log"};
    const std::string spread = std::string(texts().matrix.scale) + kShort[size_t(view.colors.spread)];
    if (ImGui::BeginCombo("##spread", spread.c_str())) {
        for (int i = 0; i < kSpreadCount; ++i)
            if (ImGui::Selectable(spread_name(Spread(i)), view.colors.spread == Spread(i)))
                view.colors.spread = Spread(i);
        ImGui::EndCombo();
    }
    ImGui::SameLine(0, 6 * ui.scale);
    draw_map_combo(ui);
    ImGui::SameLine(0, 6 * ui.scale);
    if (ImGui::Button(texts().matrix.fit)) view.zoom = 0;
    ImGui::SameLine(0, 6 * ui.scale);
    Workbench& bench = ui.bench;
    if (bench.window.locked_tab < 0) {
        if (ImGui::Button(texts().matrix.lock)) bench.past.lock();
        tooltip(texts().matrix.lock_hint);
    } else {
        if (ImGui::Button(texts().matrix.close)) bench.past.unlock(size_t(bench.window.locked_tab));
        tooltip(texts().matrix.close_hint);
    }
}

// Draws the entropy of each row to the right and the mass of each key below.
void draw_marginals(PanelContext& ui, const Canvas& c) {
    const Palette& colors = ui.colors();
    const HeadSummary& summary = ui.bench.head_summary();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float s = ui.scale, room = (kMarginal - 14) * s;
    const VisibleCells cells = visible_cells(c);
    const auto largest = [](const std::vector<float>& of) {
        return std::max(*std::max_element(of.begin(), of.end()), 1e-20f);
    };
    const float most_entropy = largest(summary.row_entropies), most_mass = largest(summary.column_sums);
    const float entropy_from = bars_begin(summary.row_entropies);
    const float entropy_span = std::max(most_entropy - entropy_from, 1e-20f);
    const float x = std::min(c.origin.x + c.cell_width * float(c.stage->columns), c.at.x + c.size.x) + 10 * s;
    const float y = std::min(c.origin.y + c.cell_height * float(c.stage->rows), c.at.y + c.size.y) + 10 * s;
    const auto thickness = [&](float cell) { return cell >= 6 * s ? std::min(cell * 0.5f, 14 * s) : cell; };
    draw.PushClipRect({x, c.at.y}, {x + room, c.at.y + c.size.y}, true);
    for (int row = cells.row_begin; row < cells.row_end; ++row) {
        const float middle = c.origin.y + (float(row) + 0.5f) * c.cell_height,
                    half = thickness(c.cell_height) / 2;
        draw.AddRectFilled(
            {x, middle - half},
            {x + room * (summary.row_entropies[size_t(row)] - entropy_from) / entropy_span, middle + half},
            row == ui.bench.view.picked_row ? colors.accent : colors.mark);
    }
    draw.PopClipRect();
    draw.PushClipRect({c.at.x, y}, {c.at.x + c.size.x, y + room}, true);
    for (int column = cells.column_begin; column < cells.column_end; ++column) {
        const float middle = c.origin.x + (float(column) + 0.5f) * c.cell_width,
                    half = thickness(c.cell_width) / 2;
        draw.AddRectFilled({middle - half, y},
                           {middle + half, y + room * summary.column_sums[size_t(column)] / most_mass},
                           column == ui.bench.view.picked_column ? colors.accent : colors.mark);
    }
    draw.PopClipRect();
    ImFont* small = ui.fonts.small;
    const float top = std::max(c.origin.y, c.at.y), left = std::max(c.origin.x, c.at.x);
    const std::string entropy =
        entropy_from > 0 ? fill(texts().matrix.entropy_from, {format_number(double(entropy_from), 3)})
                         : texts().matrix.entropy;
    draw_text(small, {x, top - small->FontSize - 6 * s}, colors.text_soft, entropy);
    const float width = text_width(small, texts().matrix.mass);
    draw_text(small, {left - width - 10 * s, y + 2 * s}, colors.text_soft, texts().matrix.mass);
}

// Drag the upper half for the top of the range, the lower for its bottom; a right click fits it to the
// values.
void drag_range(PanelContext& ui, const Canvas& c, ImVec2 at, ImVec2 size) {
    ViewState& view = ui.bench.view;
    ImGui::SetCursorScreenPos(at);
    ImGui::InvisibleButton("range", size,
                           ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight);
    const ImGuiIO& io = ImGui::GetIO();
    tooltip(texts().matrix.range_hint);
    if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) view.colors.range_low = view.colors.range_high = NAN;
    if (!ImGui::IsItemActive() || io.MouseDelta.y == 0) return;
    const bool upper = io.MouseClickedPos[0].y < at.y + size.y / 2;
    const Coloring& now = c.coloring;
    const double step = -double(io.MouseDelta.y / size.y);
    const double span = std::max(now.high - now.low, 1e-12);
    if (upper)
        view.colors.range_high = float(std::max(now.high + step * span, now.low + 1e-3 * span));
    else
        view.colors.range_low = float(std::min(now.low + step * span, now.high - 1e-3 * span));
}

}  // namespace

void canvas_range_bar(PanelContext& ui, const Canvas& c, float x) {
    const Palette& colors = ui.colors();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const HeadSummary& summary = ui.bench.head_summary();
    // Values without a color are below the bar.
    const float s = ui.scale,
                marks = float(summary.has_hidden + summary.has_dropped) * (ui.fonts.small->FontSize + 5 * s);
    const float most = std::max(std::min(c.size.y - (marks > 0 ? marks + 10 * s : 0), 520 * s), 40 * s);
    const float height =
        std::max(std::min(c.cell_height * float(c.stage->rows), most), std::min(160 * s, most));
    const float y = c.at.y + std::max(std::min(c.origin.y - c.at.y, c.size.y - height), 0.0f), width = 12 * s;
    const size_t bins = summary.histogram.size();
    const uint32_t fullest =
        std::max(*std::max_element(summary.histogram.begin(), summary.histogram.end()), 1u);
    for (size_t i = 0; i < bins; ++i) {
        if (summary.histogram[i] == 0) continue;
        // By the square root, so that rare values are visible next to common ones.
        const float share = std::sqrt(float(summary.histogram[i]) / float(fullest));
        const float bottom = y + height * (1 - float(i) / float(bins));
        draw.AddRectFilled(
            {x + (kHistogram - 4) * s - (kHistogram - 4) * s * share, bottom - height / float(bins)},
            {x + (kHistogram - 4) * s, bottom - 0.5f}, colors.mark);
    }
    const float bar = x + kHistogram * s;
    draw_color_bar(ui, c.coloring, {bar, y, width, height}, 3, summary.clamped);
    if (marks > 0) canvas_marks(ui, summary, {bar, y + height + 10 * s});
    const ViewState& view = ui.bench.view;
    const float place = view.picked_row < 0 ? NAN
                                            : float(c.coloring.place(double(c.value(
                                                  uint64_t(view.picked_row), uint64_t(view.picked_column)))));
    if (std::isfinite(place)) {
        const float at = y + height * (1 - place);
        draw.AddTriangleFilled({bar - 5 * s, at - 4 * s}, {bar - 5 * s, at + 4 * s}, {bar, at},
                               colors.accent);
    }
    drag_range(ui, c, {x, y}, {kHistogram * s + width, height});
}

void draw_matrix_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (!bench.computation.complete()) {
        soft_text(
            fill(texts().matrix.computing, {format_fixed(100 * bench.computation.run().progress(), 0)}));
        return;
    }
    // While Shift is held: the kept A, or B of one result.
    const Comparison compared = comparison_of(bench);
    const bool shows_other = bench.view.show_other && bench.window.locked_tab < 0;
    const bool kept = shows_other && bench.past.kept() && compared.why_not.empty();
    const bool other = kept || (shows_other && !bench.past.kept() && bench.view.compared_head >= 0);
    const Shown shown = bench.shown();
    const float fade = bench.motion.fade();
    const Stage& stage = kept          ? *compared.a
                         : fade < 0.5f ? bench.computation.stages()[bench.motion.fade_from()]
                                       : *shown.stage;
    const uint32_t head = kept ? compared.head_a : other ? uint32_t(bench.view.compared_head) : shown.head;
    // The stage before, which fades, may be a smaller one than the pick was made in.
    bench.view.picked_row = std::min(bench.view.picked_row, int(stage.rows) - 1);
    bench.view.picked_column = std::min(bench.view.picked_column, int(stage.columns) - 1);
    const float s = ui.scale;
    const ImVec2 below = ImGui::GetCursorPos();
    if (ImGui::GetWindowWidth() >= 640 * s) {
        ImGui::SetCursorPos({ImGui::GetWindowWidth() - 374 * s, ui.controls_top});
        draw_matrix_controls(ui);
        ImGui::SetCursorPos(below);
    }
    const bool has_marginals = stage.over_keys && stage.id == StageId::weights;
    const ImVec2 cursor = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    // Cells have priority: first the marginals give way, then the color bar.
    const auto area = [&](float beside, float bar) {
        return ImVec2(room.x - (kLabelColumn + bar) * s - beside, room.y - kLabelRow * s - beside);
    };
    const auto has_digits = [&](ImVec2 size) {
        return std::min(size.x / float(stage.columns), size.y / float(stage.rows)) >= kCellWithDigits * s;
    };
    const bool few = has_digits(area(8 * s, 0));  // cells enough to have digits at all
    // Without digits the matrix has at least this share of the panel, slanted words included.
    constexpr float kLeastShare = 0.6f;
    const auto keeps_share = [&](ImVec2 size, bool slanted) {
        if (slanted) size.y -= (label_row(ui, stage, size) - kLabelRow) * s;
        const auto longest = float(std::max(stage.rows, stage.columns));
        const float cell = std::min(size.x / float(stage.columns), size.y / float(stage.rows));
        return cell * longest >= kLeastShare * std::min(ui.centre.width, ui.centre.height);
    };
    const auto has_room = [&](ImVec2 size) { return few ? has_digits(size) : keeps_share(size, true); };
    const bool marginals = has_marginals && has_room(area(kMarginal * s, kBarArea));
    const float side = marginals ? kMarginal * s : 8 * s;
    const bool bar = has_room(area(side, kBarArea));
    const ImVec2 size = area(side, bar ? kBarArea : 0);
    // Lines from word to word above the words, where they are asked for.
    const bool arcs = bench.window.token_lines && has_marginals && !kept && !other &&
                      bench.window.locked_tab < 0 && stage.rows == stage.columns &&
                      stage.columns <= kMaxArcTokens && size.y >= 2 * kArcRow * s;
    const float above = arcs ? kArcRow : 0;
    const bool tight = !few && stage.over_keys && !keeps_share(size, true);  // columns have indices
    constexpr float kTightRow = 28;
    const float labels = tight ? kTightRow - kLabelRow
                               : label_row(ui, stage, {size.x, size.y - above * s}) - kLabelRow,
                top = above + labels;
    Canvas canvas =
        lay_out_canvas(ui, stage, head, {cursor.x + kLabelColumn * s, cursor.y + (kLabelRow + top) * s},
                       {size.x, size.y - top * s});
    canvas.slanted = labels > 0;
    if (kept) canvas.tokens = &bench.past.kept()->result->tokens();
    canvas_mouse(ui, canvas, "cells");
    canvas_cells(ui, canvas);
    canvas_digits(ui, canvas);
    canvas_selection(ui, canvas);
    canvas_labels(ui, canvas);
    if (arcs) canvas_arcs(ui, canvas, (kLabelRow + labels) * s);
    canvas_minimap(ui, canvas);
    if (marginals && !other) draw_marginals(ui, canvas);
    const float right =
        std::min(canvas.origin.x + canvas.cell_width * float(stage.columns), canvas.at.x + canvas.size.x);
    if (bar) canvas_range_bar(ui, canvas, right + side + 8 * s);
    // From the stage before to this one: the first goes into the ground, the second comes out of it.
    if (fade >= 1) return;
    const float cover = fade < 0.5f ? 2 * fade : 2 - 2 * fade;
    const ImU32 ground = palette(bench.window.theme).panel;
    ImGui::GetWindowDrawList()->AddRectFilled(cursor, {cursor.x + room.x, cursor.y + room.y},
                                              (ground & 0x00ffffff) | ImU32(255 * cover) << 24);
}

}  // namespace fovea::visualizer

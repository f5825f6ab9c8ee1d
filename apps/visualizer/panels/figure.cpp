#include "panels/figure.hpp"

#include "panels/canvas.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

constexpr float kMargin = 16, kTitleHeight = 30, kBar = 118, kMaxSide = 760, kMaxFigureCell = 72,
                kMinArea = 160;

CellRect cells_of(const Workbench& bench) {
    const Stage& stage = *bench.shown().stage;
    const std::optional<CellRect>& selected = bench.view.selection;
    return selected && selected->within(stage.rows, stage.columns)
               ? *selected
               : CellRect{0, int(stage.rows) - 1, 0, int(stage.columns) - 1};
}

float cell_side(const CellRect& cells, float scale) {
    const auto longest = float(std::max(cells.rows(), cells.columns()));
    return std::max(std::min(kMaxSide / longest, kMaxFigureCell), 1 / scale);
}

}  // namespace

ImVec2 figure_size(const Workbench& bench, bool legend, float scale) {
    const CellRect cells = cells_of(bench);
    const float side = cell_side(cells, scale);
    return {2 * kMargin + kLabelColumn + side * float(cells.columns()) + (legend ? kBar : 0),
            2 * kMargin + kLabelRow + (legend ? kTitleHeight : 0) +
                std::max(side * float(cells.rows()), legend ? kMinArea : 0.0f)};
}

void draw_figure(PanelContext& ui, bool legend) {
    Workbench& bench = ui.bench;
    const float s = ui.scale;
    const Shown shown = bench.shown();
    const CellRect cells = cells_of(bench);
    const float side = cell_side(cells, s) * s;
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
    ImGui::Begin("figure", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoBackground);
    // A picture has no picked cell.
    const ViewState view = bench.view;
    bench.view.picked_row = bench.view.picked_column = -1;
    Canvas canvas;
    canvas.stage = shown.stage;
    canvas.head = shown.head;
    canvas.tokens = shown.tokens;
    canvas.at = {(kMargin + kLabelColumn) * s, (kMargin + kLabelRow + (legend ? kTitleHeight : 0)) * s};
    canvas.size = {side * float(cells.columns()), side * float(cells.rows())};
    canvas.cell_width = canvas.cell_height = side;
    canvas.origin = {canvas.at.x - side * float(cells.column_begin),
                     canvas.at.y - side * float(cells.row_begin)};
    canvas.coloring = coloring_of(bench.view.colors, shown.stage->ranges.at(shown.head));
    canvas_cells(ui, canvas);
    canvas_digits(ui, canvas);
    canvas_labels(ui, canvas);
    if (legend) {
        const bool locked = bench.window.locked_tab >= 0 && bench.window.centre == CentreTab::matrix;
        const std::string name = locked ? bench.computation.locked()[size_t(bench.window.locked_tab)].name
                                        : shown.stage->name + ", head " + std::to_string(shown.head);
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        draw.AddText(ui.fonts.strong, ui.fonts.strong->FontSize, {kMargin * s, kMargin * s},
                     palette(bench.window.theme).text, name.c_str());
        const float width =
            ui.fonts.strong->CalcTextSizeA(ui.fonts.strong->FontSize, 1e6f, 0, name.c_str()).x;
        draw.AddText(ui.fonts.body, ui.fonts.body->FontSize, {kMargin * s + width + 10 * s, kMargin * s},
                     palette(bench.window.theme).text_soft, shown.stage->formula.c_str());
        canvas_range_bar(ui, canvas, canvas.at.x + canvas.size.x + 12 * s);
    }
    bench.view = view;
    ImGui::End();
}

}  // namespace fovea::visualizer

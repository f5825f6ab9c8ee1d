// Which query may see which key: patterns of the engine, and a mask painted by hand.
#include "panels/canvas.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fovea::visualizer {
namespace {

// A painted mask is kept in links and sessions, a bit for each cell.
constexpr uint64_t kMaxPaintedSide = 1024;
enum Brush { brush_cell, brush_rectangle, brush_row, brush_column };

struct Grid {
    uint64_t rows, keys;
    std::vector<uint8_t> cells;  // 1 is visible, of everything that is not painted too
};

Grid whole_mask(const Workbench& bench, uint64_t rows, uint64_t keys) {
    const Settings& s = bench.document.settings();
    Grid grid{rows, keys, visible_cells(s, rows, keys)};
    // The file's own, of the shown head, until a pattern or paint takes its place.
    const CallExtras& extras = bench.computation.result()->projected.extras;
    const uint64_t height = extras.mask_rows;
    const size_t from = extras.mask_heads > 1 ? bench.view.head * height * keys : 0;
    if (s.pattern == MaskPattern::none && from + height * keys <= extras.mask.size() && height > 0)
        for (size_t i = 0; i < rows * keys; ++i) grid.cells[i] &= extras.mask[from + i % (height * keys)];
    return grid;
}

// The rules of before become paint, so that each cell can be changed.
Settings as_painted(const Settings& s, const Grid& grid) {
    Settings next = s;
    next.painted = {grid.cells, uint32_t(grid.rows), uint32_t(grid.keys)};
    next.under = std::string(s.pattern == MaskPattern::painted ? std::string_view(s.under) : mask_key(s));
    next.pattern = MaskPattern::painted;
    next.causal = next.windowed = false;
    next.hidden_keys.clear();
    return next;
}

void draw_patterns(PanelContext& ui, const Grid& grid) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    bool first = true;
    const auto button = [&](const char* label, bool current, auto change) {
        if (!std::exchange(first, false)) same_line_if_room(button_width(label), 4 * ui.scale);
        const Palette& colors = palette(bench.window.theme);
        if (current) ImGui::PushStyleColor(ImGuiCol_Text, colors.accent);
        if (ImGui::Button(label)) {
            Settings next = s;
            next.causal = next.windowed = false;
            next.pattern = MaskPattern::none;
            change(next);
            bench.document.change(next);
        }
        if (current) ImGui::PopStyleColor();
    };
    const bool plain = s.pattern == MaskPattern::none;
    button("none", plain && !s.causal && !s.windowed, [](Settings&) {});
    button("causal", plain && s.causal && !s.windowed, [](Settings& n) { n.causal = true; });
    button("window", plain && s.windowed, [](Settings& n) {
        n.causal = n.windowed = true;
        n.window_right = 0;
    });
    for (int i = 1; i < int(MaskPattern::painted); ++i)
        button(std::string(mask_pattern_name(MaskPattern(i))).c_str(), s.pattern == MaskPattern(i),
               [&](Settings& n) { n.pattern = MaskPattern(i); });
    same_line_if_room(button_width(texts().mask.invert), 16 * ui.scale);
    if (ImGui::Button(texts().mask.invert)) {
        Settings next = as_painted(s, grid);
        for (uint8_t& cell : next.painted.cells) cell = !cell;
        bench.document.change(next);
    }
    same_line_if_room(button_width(texts().mask.symmetric), 4 * ui.scale);
    ImGui::BeginDisabled(grid.rows != grid.keys);
    if (ImGui::Button(texts().mask.symmetric)) {
        Settings next = as_painted(s, grid);
        for (uint64_t i = 0; i < grid.rows; ++i)
            for (uint64_t j = 0; j < grid.keys; ++j)
                next.painted.cells[i * grid.keys + j] =
                    grid.cells[i * grid.keys + j] | grid.cells[j * grid.keys + i];
        bench.document.change(next);
    }
    ImGui::EndDisabled();
}

void draw_brushes(PanelContext& ui, const Grid& grid) {
    const char* const brushes[] = {texts().mask.cell, texts().mask.rectangle, texts().mask.row,
                                   texts().mask.column};
    ImGui::AlignTextToFramePadding();
    soft_text(texts().mask.brush);
    ImGui::SameLine(0, 10 * ui.scale);
    tabs(ui, brushes, ui.bench.window.brush);
    const uint64_t visible = uint64_t(std::count(grid.cells.begin(), grid.cells.end(), 1));
    uint64_t empty = 0;
    for (uint64_t i = 0; i < grid.rows; ++i)
        empty += std::find(&grid.cells[i * grid.keys], &grid.cells[i * grid.keys] + grid.keys, 1) ==
                 &grid.cells[i * grid.keys] + grid.keys;
    same_line_if_room(120 * ui.scale, 20 * ui.scale);
    soft_text(
        fill(empty == 0   ? texts().mask.visible
             : empty == 1 ? texts().mask.one_masked
                          : texts().mask.many_masked,
             {format_fixed(100 * double(visible) / double(grid.cells.size()), 1), std::to_string(empty)}));
}

void paint(PanelContext& ui, const Canvas& canvas, const Grid& grid) {
    Workbench& bench = ui.bench;
    WindowState& state = bench.window;
    ImGui::SetCursorScreenPos(canvas.at);
    ImGui::InvisibleButton("paint", canvas.size);
    canvas_zoom(ui, canvas);
    int row = 0, column = 0;
    if (!cell_under_mouse(canvas, row, column)) return;
    if (ImGui::IsItemHovered()) bench.view.picked_row = row, bench.view.picked_column = column;
    if (ImGui::IsItemActivated()) {
        state.brush_shows = !grid.cells[uint64_t(row) * grid.keys + uint64_t(column)];
        state.brush_row = row, state.brush_column = column;
        ++state.strokes;
    }
    if (!ImGui::IsItemActive()) return;
    int r0 = row, r1 = row, c0 = column, c1 = column;
    if (state.brush == brush_rectangle)
        r0 = std::min(row, state.brush_row), r1 = std::max(row, state.brush_row),
        c0 = std::min(column, state.brush_column), c1 = std::max(column, state.brush_column);
    if (state.brush == brush_row) c0 = 0, c1 = int(grid.keys) - 1;
    if (state.brush == brush_column) r0 = 0, r1 = int(grid.rows) - 1;
    Settings next = as_painted(bench.document.settings(), grid);
    for (int i = r0; i <= r1; ++i)
        std::fill_n(&next.painted.cells[uint64_t(i) * grid.keys + uint64_t(c0)], c1 - c0 + 1,
                    uint8_t(state.brush_shows));
    // One stroke is one step of undo.
    bench.document.change(next, 0x50000000u + state.strokes);
}

}  // namespace

void draw_mask_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const uint64_t rows = bench.computation.run().desc().len_q, keys = bench.computation.run().desc().len_kv;
    if (rows > kMaxPaintedSide || keys > kMaxPaintedSide) {
        soft_text(fill(texts().mask.too_large,
                       {format_count(rows), format_count(keys), std::to_string(kMaxPaintedSide)}));
        return;
    }
    const Grid grid = whole_mask(bench, rows, keys);
    draw_patterns(ui, grid);
    draw_brushes(ui, grid);
    const Stage* weights = bench.computation.find_stage(StageId::weights);
    if (!weights || !bench.computation.complete()) return;
    const float s = ui.scale;
    const ImVec2 cursor = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    const ImVec2 area{room.x - (kLabelColumn + 16) * s, room.y - (kLabelRow + 8) * s};
    const float labels = label_row(ui, *weights, area);  // words as the matrix has them
    Canvas canvas = lay_out_canvas(ui, *weights, std::min(bench.view.head, uint32_t(weights->heads - 1)),
                                   {cursor.x + kLabelColumn * s, cursor.y + labels * s},
                                   {area.x, area.y - (labels - kLabelRow) * s});
    canvas.slanted = labels > kLabelRow;
    paint(ui, canvas, grid);
    canvas_cells(ui, canvas);
    canvas_digits(ui, canvas);
    canvas_labels(ui, canvas);
}

}  // namespace fovea::visualizer

// The flow on one screen: small matrices from the tokens' vectors to what leaves the layer, each linked with
// those that it is computed from, and the picked token's way through them.
#include "document/cell_inputs.hpp"
#include "panels/head_thumbnail.hpp"
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea::visualizer {
namespace {

// Units of the layout.
constexpr float kMaxFlowCell = 30, kSquareFrom = 3, kMaxWidth = 190, kMinGap = 16, kMaxGap = 44, kNames = 76,
                kLongestBend = 64;
constexpr uint64_t kMaxWritten = 3;  // values of a vector that are written below its matrix

struct Placed {
    ImVec2 at, size;                 // area of the cells
    std::vector<ScreenRect> frames;  // frames around its highlighted path cells
};

// The size of a stage's picture within a room: cells of `cell` where all matrices have these, 0: where they
// cannot, each as it fits, square while its cells can be told apart.
ImVec2 picture_size(const Stage& stage, ImVec2 room, float cell, float scale) {
    float width = std::min(room.x / float(stage.columns), kMaxFlowCell * scale),
          height = std::min(room.y / float(stage.rows), kMaxFlowCell * scale);
    if (cell == 0) cell = std::min(width, height);
    if (cell >= kSquareFrom * scale || stage.over_keys) width = height = cell;
    return {std::max(std::floor(width * float(stage.columns)), 1.0f),
            std::max(std::floor(height * float(stage.rows)), 1.0f)};
}

// One side of a cell for all matrices, and how wide the columns are with it, each at least as its names are;
// 0 where a matrix is too large for that.
float common_cell(const PanelContext& ui, const std::vector<PathMatrix>& path, ImVec2 room, float words,
                  std::vector<float>& widths) {
    const float s = ui.scale;
    const size_t columns = path.back().column + 1;
    std::vector<float> names(columns, 0), most(columns, 0), stacked(columns, 0);
    float rows = 1;
    for (const PathMatrix& matrix : path) {
        const size_t at = matrix.column;
        names[at] = std::max(names[at], text_width(ui.fonts.small, matrix.stage->name));
        most[at] = std::max(most[at], float(matrix.stage->columns));
        rows = std::max(rows, float(matrix.stage->rows));
        ++stacked[at];
    }
    const float high = (room.y / *std::max_element(stacked.begin(), stacked.end()) - words) / rows;
    for (float cell = std::floor(std::min(kMaxFlowCell * s, high)); cell >= kSquareFrom * s; --cell) {
        widths.clear();
        for (size_t i = 0; i < columns; ++i) widths.push_back(std::max(cell * most[i], names[i]));
        if (std::accumulate(widths.begin(), widths.end(), 0.0f) <= room.x) return cell;
    }
    widths.assign(columns, std::min(room.x / float(columns), kMaxWidth * s));
    return 0;
}

// The picked token's values in this matrix: one, or a short vector; else empty.
std::string numbers_of(const PathMatrix& matrix, int digits) {
    if (matrix.cells.empty()) return "";
    const CellRect& cells = matrix.cells.front();
    if (cells.rows() > 1 || cells.columns() > kMaxWritten) return "";
    const std::span<const float> values = matrix.stage->head_values(matrix.head);
    std::string text;
    for (int column = cells.column_begin; column <= cells.column_last; ++column) {
        const float value = values[size_t(cells.row_begin) * matrix.stage->columns + size_t(column)];
        const bool hidden = value == -INFINITY;
        text +=
            (text.empty() ? "" : " ") + (hidden ? "\xe2\x88\x92\xe2\x88\x9e" : format_fixed(value, digits));
    }
    return text;
}

// Below the matrix, with as many digits as there is room for.
void draw_numbers(const PanelContext& ui, const PathMatrix& matrix, const Placed& placed, float room,
                  float right) {
    ImFont* const mono = ui.fonts.mono;
    const float size = std::min(mono->FontSize, ui.fonts.small->FontSize);
    for (const int digits : {4, 2}) {
        const std::string text = numbers_of(matrix, digits);
        const float width = mono->CalcTextSizeA(size, 1e6f, 0, text.c_str()).x;
        if (width > room) continue;
        // Further left where it would else not end within the panel.
        const float x = std::min(placed.at.x, right - width);
        ImGui::GetWindowDrawList()->AddText(mono, size, {x, placed.at.y + placed.size.y + 4 * ui.scale},
                                            ui.colors().accent, text.c_str());
        return;
    }
}

// A cell of a matrix of the way becomes the pick. In matrices of vectors the token is picked, as what asks or
// what answers, while the shown stage is one of pairs.
void pick_on_path(Workbench& bench, const PathMatrix& matrix, int row, int column) {
    const Stage& stage = *matrix.stage;
    ViewState& view = bench.view;
    if (stage.over_keys || !bench.stage().over_keys) {
        if (&stage != &bench.stage()) bench.show_stage(size_t(&stage - bench.computation.stages().data()));
        if (stage.heads > 1) view.head = matrix.head;
        view.picked_row = row, view.picked_column = column;
    } else if (stage.id == StageId::keys || stage.id == StageId::values) {
        view.picked_column = std::min(row, int(bench.stage().columns) - 1);
    } else {
        view.picked_row = std::min(row, int(bench.stage().rows) - 1);
    }
}

void show_large(Workbench& bench, const PathMatrix& matrix) {
    if (!matrix.cells.empty()) return bench.show_input({matrix.stage, matrix.head, matrix.cells.front()});
    bench.show_stage(size_t(matrix.stage - bench.computation.stages().data()));
    bench.window.centre = CentreTab::matrix;
}

// Hovering picks unless the pick is pinned, a click pins or lets go, two of them show the matrix large: as
// the large matrix has it.
void mouse_on_cells(Workbench& bench, const PathMatrix& matrix, const Placed& placed) {
    ImGui::SetCursorScreenPos(placed.at);
    const bool clicked = ImGui::InvisibleButton("cells", placed.size);
    if (!ImGui::IsItemHovered()) return;
    const ImGuiIO& io = ImGui::GetIO();
    const Stage& stage = *matrix.stage;
    const auto cell = [](float at, float origin, float side, uint64_t count) {
        return std::clamp(int((at - origin) / side * float(count)), 0, int(count) - 1);
    };
    const int row = cell(io.MousePos.y, placed.at.y, placed.size.y, stage.rows),
              column = cell(io.MousePos.x, placed.at.x, placed.size.x, stage.columns);
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return show_large(bench, matrix);
    const bool moved = io.MouseDelta.x != 0 || io.MouseDelta.y != 0;
    if (clicked) {
        const ViewState before = bench.view;
        pick_on_path(bench, matrix, row, column);
        const bool again = before.pinned && before.stage == bench.view.stage &&
                           before.picked_row == bench.view.picked_row &&
                           before.picked_column == bench.view.picked_column;
        bench.view.pinned = !again;
    } else if (!bench.view.pinned && moved) {
        pick_on_path(bench, matrix, row, column);
    }
}

// The name above a matrix, which is also the way to the large one.
void draw_name(PanelContext& ui, const PathMatrix& matrix, ImVec2 at, float width) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    ImFont* const font = ui.fonts.small;
    const std::string& name = matrix.stage->name;
    ImGui::SetCursorScreenPos(at);
    if (ImGui::InvisibleButton("name",
                               {std::max(width, text_width(font, name)), font->FontSize + 2 * ui.scale}))
        show_large(bench, matrix);
    const bool hovered = ImGui::IsItemHovered() || ImGui::IsItemFocused();
    if (ImGui::IsItemHovered()) {
        const Stage& stage = *matrix.stage;
        ImGui::SetTooltip("%s", fill(texts().flow.matrix_hint,
                                     {name, stage.formula, format_shape(Shape{stage.rows, stage.columns})})
                                    .c_str());
    }
    const bool current = &bench.stage() == matrix.stage;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw_text(font, at, current ? colors.accent : colors.text, name);
    if (hovered)
        draw.AddLine({at.x, at.y + font->FontSize + ui.scale},
                     {at.x + text_width(font, name), at.y + font->FontSize + ui.scale}, colors.text,
                     ui.scale);
}

// Draws the tokens next to the first matrix: all of them if rows are high enough, else the picked ones.
void draw_tokens(PanelContext& ui, const PathMatrix& matrix, const Placed& placed) {
    const Palette& colors = ui.colors();
    ImFont* const font = ui.fonts.small;
    const float row_height = placed.size.y / float(matrix.stage->rows);
    const auto lit = [&](uint64_t row) {
        return std::any_of(matrix.cells.begin(), matrix.cells.end(), [&](const CellRect& cells) {
            return cells.rows() == 1 && uint64_t(cells.row_begin) == row;
        });
    };
    for (uint64_t row = 0; row < matrix.stage->rows; ++row) {
        if (row_height < font->FontSize && !lit(row)) continue;
        const std::string name = drawn_label(ui.bench, row);
        const float right = placed.at.x - 6 * ui.scale, left = right - (kNames - 8) * ui.scale,
                    top = std::floor(placed.at.y + (float(row) + 0.5f) * row_height - font->FontSize / 2);
        const ImVec4 clip{left, top, right, top + 2 * font->FontSize};
        ImGui::GetWindowDrawList()->AddText(
            font, font->FontSize, {std::max(left, right - text_width(font, name)), top},
            lit(row) ? colors.accent : colors.text_soft, name.c_str(), nullptr, 0, &clip);
    }
}

// From a matrix, or the lit cells of it, to what is computed from it. Of two tokens' vectors the one that
// asks becomes the query, the one that answers key and value.
void draw_link(const PanelContext& ui, const Placed& from, const PathMatrix& to_matrix, const Placed& to) {
    const Palette& colors = ui.colors();
    const float s = ui.scale;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float right = from.at.x + from.size.x + 2 * s, left = to.at.x - 2 * s;
    // Passes matrices in between in a straight line, and bends before its end.
    const float bends = std::max(right, left - kLongestBend * s);
    const auto curve = [&](float a, float b, ImU32 color) {
        const float bend = std::max((left - bends) * 0.5f, 8 * s);
        if (bends > right) draw.AddLine({right, a}, {bends, a}, color, 2 * s);
        draw.AddBezierCubic({bends, a}, {bends + bend, a}, {left - bend, b}, {left, b}, color, 2 * s);
    };
    const auto middle = [](const ScreenRect& frame) { return frame.y + frame.height / 2; };
    if (from.frames.empty() || to.frames.empty())
        return curve(from.at.y + from.size.y / 2, to.at.y + to.size.y / 2, colors.line);
    const float end = middle(to.frames.front());
    const std::optional<StageId> id = to_matrix.stage->id;
    const bool of_answer = id == StageId::keys || id == StageId::values;
    if (!of_answer) curve(middle(from.frames.front()), end, colors.accent);
    if (of_answer || (to_matrix.stage->over_keys && from.frames.size() > 1))
        curve(middle(from.frames.back()), end, colors.accent);
}

std::string way_text(const Workbench& bench) {
    const ViewState& view = bench.view;
    const Stage& stage = bench.stage();
    const auto quoted = [&](int token) {
        return "\xe2\x80\x9c" + drawn_name(bench, uint64_t(token)) + "\xe2\x80\x9d";
    };
    if (stage.over_keys)
        return fill(texts().flow.attends, {quoted(view.picked_row), quoted(view.picked_column)});
    if (stage.row_tokens) return fill(texts().flow.path, {quoted(view.picked_row)});
    return texts().flow.pick;
}

}  // namespace

void draw_flow_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const float s = ui.scale;
    if (!bench.computation.measured()) return soft_text("computing");
    const ViewState& view = bench.view;
    std::vector<PathMatrix> path = token_path(*bench.computation.result(), bench.stage(), view.head,
                                              uint64_t(view.picked_row), uint64_t(view.picked_column));
    if (path.empty()) return soft_text(texts().flow.empty);
    if (ImGui::Button(texts().flow.play)) bench.motion.play_path();
    tooltip(texts().flow.play_hint);
    ImGui::SameLine(0, 10 * s);
    ImGui::AlignTextToFramePadding();
    soft_paragraph(way_text(bench));
    // Columns that the token has not reached yet are not highlighted.
    const size_t come = bench.motion.path_columns_come();
    for (PathMatrix& matrix : path)
        if (matrix.column >= come) matrix.cells.clear();

    const ImVec2 origin = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    const size_t columns = path.back().column + 1;
    const float line = ui.fonts.small->FontSize, words = 2 * line + 10 * s;  // room above and below a matrix
    const float names = kNames * s, gap = std::clamp(0.045f * room.x, kMinGap * s, kMaxGap * s);
    std::vector<float> widths;
    const float cell =
        common_cell(ui, path, {room.x - names - 8 * s - gap * float(columns - 1), room.y}, words, widths);
    const float used = names + std::accumulate(widths.begin(), widths.end(), gap * float(columns - 1));
    std::vector<float> lefts{origin.x + names + std::max((room.x - used) / 2 - 8 * s, 0.0f)};
    for (const float width : widths) lefts.push_back(lefts.back() + width + gap);
    std::vector<Placed> placed(path.size());
    for (size_t i = 0; i < path.size(); ++i) {
        const PathMatrix& matrix = path[i];
        const auto same = [&](const PathMatrix& other) { return other.column == matrix.column; };
        const auto beside = size_t(std::count_if(path.begin(), path.end(), same)),
                   nth = size_t(std::count_if(path.begin(), path.begin() + ptrdiff_t(i), same));
        // Three are stacked; a matrix computed from queries and keys is centered between them, the rest in
        // the middle.
        const float height = room.y / float(std::max<size_t>(beside, 1));
        const float middle = beside > 1                ? (float(nth) + 0.5f) * height
                             : matrix.stage->over_keys ? room.y * 0.4f
                                                       : room.y * 0.5f;
        const float width = widths[matrix.column];
        const ImVec2 size =
            picture_size(*matrix.stage, {width, std::min(height, room.y * 0.62f) - words}, cell, s);
        placed[i].size = size;
        placed[i].at = {std::floor(lefts[matrix.column] + (width - size.x) / 2),
                        std::floor(origin.y + middle - size.y / 2)};
    }
    for (size_t i = 0; i < path.size(); ++i) {
        const PathMatrix& matrix = path[i];
        ImGui::PushID(int(i));
        draw_thumbnail(ui, thumbnail_of(*matrix.stage, matrix.head), placed[i].at, placed[i].size);
        for (const CellRect& cells : matrix.cells)
            placed[i].frames.push_back(frame_cells(ui, *matrix.stage, cells, placed[i].at, placed[i].size));
        for (const size_t from : matrix.from) draw_link(ui, placed[from], matrix, placed[i]);
        if (matrix.column == 0 && matrix.stage->row_tokens && i == 0) draw_tokens(ui, matrix, placed[i]);
        draw_numbers(ui, matrix, placed[i], widths[matrix.column] + gap - 4 * s,
                     ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x);
        draw_name(ui, matrix, {placed[i].at.x, placed[i].at.y - line - 5 * s}, placed[i].size.x);
        mouse_on_cells(bench, matrix, placed[i]);
        ImGui::PopID();
    }
}

}  // namespace fovea::visualizer

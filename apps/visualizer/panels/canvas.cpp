#include "panels/canvas.hpp"

#include "theme/theme.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fovea::visualizer {
void draw_color_bar(const PanelContext& ui, const Coloring& coloring, const ScreenRect& bar, int digits,
                    const Clamped& clamped) {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ColorTable table = color_table(coloring.map);
    constexpr int kStrips = 64;
    for (int i = 0; i < kStrips; ++i) {
        const Rgb color = table[size_t(255 - i * 255 / (kStrips - 1))];
        draw.AddRectFilled({bar.x, bar.y + bar.height * float(i) / kStrips},
                           {bar.x + bar.width, bar.y + bar.height * float(i + 1) / kStrips + 0.5f},
                           IM_COL32(color.r, color.g, color.b, 255));
    }
    ImFont* font = ui.fonts.small;
    const float s = ui.scale, lowest = bar.y + bar.height - font->FontSize;
    const ImU32 cap = ui.colors().warning;
    const float middle = bar.x + bar.width / 2, half = bar.width / 2, tip = 6 * s;
    if (clamped.above)
        draw.AddTriangleFilled({middle - half, bar.y - s}, {middle + half, bar.y - s},
                               {middle, bar.y - s - tip}, cap);
    const float foot = bar.y + bar.height + s;
    if (clamped.below)
        draw.AddTriangleFilled({middle + half, foot}, {middle - half, foot}, {middle, foot + tip}, cap);
    for (int tick = 0; tick <= 4; ++tick) {
        const float share = float(tick) / 4, at = bar.y + bar.height * (1 - share) - font->FontSize / 2;
        draw_text(font, {bar.x + bar.width + 6 * s, std::clamp(at, bar.y - 2 * s, lowest)},
                  ui.colors().text_soft,
                  (tick == 4 && clamped.above   ? "\xe2\x89\xa5 "
                   : tick == 0 && clamped.below ? "\xe2\x89\xa4 "
                                                : "") +
                      format_number(coloring.value_at(double(share)), digits));
    }
}

namespace {

constexpr float kMaxCell = 104, kMaxZoomedCell = 400, kDigitsFrom = 46, kDigitsCell = 56, kLabelsFrom = 10,
                kGridFrom = 8, kMinimap = 104, kDragFrom = 4, kWordsFrom = 40, kSlantedRow = 74;

// The n-th label is shown where labels have room; otherwise every 2nd, 5th, 10th ... index.
int label_step(float cell, float needed) {
    int step = 1;
    for (int ten = 1; cell * float(step) < needed && ten < 1000000; ten *= 10) {
        for (const int next : {1, 2, 5}) {
            step = next * ten;
            if (cell * float(step) >= needed) break;
        }
    }
    return step;
}

void fit_cells(Canvas& c, float scale) {
    const Stage& s = *c.stage;
    c.cell_width = std::min(c.size.x / float(s.columns), kMaxCell * scale);
    c.cell_height = std::min(c.size.y / float(s.rows), kMaxCell * scale);
    if (s.over_keys) {
        c.cell_width = c.cell_height = std::min(c.cell_width, c.cell_height);
        return;
    }
    // A few long rows are not drawn as threads, nor as walls.
    c.cell_height = std::min(c.cell_height, std::max(c.cell_width, 28 * scale));
    c.cell_width = std::min(c.cell_width, std::max(c.cell_height * 2, 28 * scale));
}

MatrixView view_of(const PanelContext& ui, const Canvas& c) {
    const ImGuiIO& io = ImGui::GetIO();
    const float sx = io.DisplayFramebufferScale.x, sy = io.DisplayFramebufferScale.y;
    const Palette& colors = ui.colors();
    const Stage& s = *c.stage;
    MatrixView v{};
    // The part of the area that the matrix covers.
    const float right = std::min(c.at.x + c.size.x, c.origin.x + c.cell_width * float(s.columns)),
                bottom = std::min(c.at.y + c.size.y, c.origin.y + c.cell_height * float(s.rows));
    const ImVec2 begin = {std::max(c.at.x, c.origin.x), std::max(c.at.y, c.origin.y)};
    v.left = begin.x * sx, v.top = begin.y * sy;
    v.width = (right - begin.x) * sx, v.height = (bottom - begin.y) * sy;
    v.origin_x = c.origin.x * sx, v.origin_y = c.origin.y * sy;
    v.cell_width = c.cell_width * sx, v.cell_height = c.cell_height * sy;
    v.first_element = uint32_t(c.head * s.rows * s.columns);
    v.other_first_element = uint32_t(uint64_t(c.minus_head) * s.rows * s.columns);
    v.row_stride = v.columns = uint32_t(s.columns);
    v.rows = uint32_t(s.rows);
    v.range_low = float(c.coloring.low), v.range_high = float(c.coloring.high);
    v.linear_within = float(c.coloring.linear_within);
    v.colormap =
        uint32_t(std::find(kColormaps.begin(), kColormaps.end(), c.coloring.map) - kColormaps.begin());
    v.flags = (c.coloring.spread == Spread::logarithmic ? MATRIX_FLAG_LOG : 0) |
              (c.coloring.spread == Spread::symmetric_log ? MATRIX_FLAG_SYMLOG : 0) |
              (c.cell_width >= kGridFrom * ui.scale ? MATRIX_FLAG_GRID : 0) |
              (s.hiding && c.hatch_hidden ? MATRIX_FLAG_HIDING : 0) | (c.minus ? MATRIX_FLAG_DIFFERENCE : 0) |
              (s.dropping && !c.minus ? MATRIX_FLAG_DROPPED : 0) | (c.upper_only ? MATRIX_FLAG_UPPER : 0);
    v.hatch_period = kHatchPeriod * ui.scale;
    v.ground = ui.transparent ? ui.ground : colors.matrix_ground, v.hatch = colors.hatch,
    v.dropped = colors.mark, v.highlight = colors.text;
    v.picked_row = ui.bench.view.picked_row, v.picked_column = ui.bench.view.picked_column;
    return v;
}

}  // namespace

float Canvas::value(uint64_t row, uint64_t column) const {
    const size_t cells = stage->rows * stage->columns, index = row * stage->columns + column;
    const float own = stage->values[head * cells + index];
    return minus ? own - minus->values[size_t(minus_head) * cells + index] : own;
}

bool Canvas::all_visible() const {
    return cell_width * float(stage->columns) <= size.x + 1 && cell_height * float(stage->rows) <= size.y + 1;
}

// The pan that brings a pick that keys moved into the room.
static void follow_pick(ViewState& view, const Canvas& c) {
    const bool always = view.follow == ViewState::Follow::middle;
    if (std::exchange(view.follow, ViewState::Follow::none) == ViewState::Follow::none) return;
    const auto pan = [always](float& share, int picked, float cell, uint64_t count, float room) {
        const float all = cell * float(count), at = share * all + float(picked) * cell;
        if (always || at < 0 || at + cell > room) share = (room / 2 - (float(picked) + 0.5f) * cell) / all;
    };
    pan(view.pan_x, view.picked_column, c.cell_width, c.stage->columns, c.size.x);
    pan(view.pan_y, view.picked_row, c.cell_height, c.stage->rows, c.size.y);
}

float label_row(const PanelContext& ui, const Stage& stage, ImVec2 size) {
    const float cell = std::min(size.x / float(stage.columns), size.y / float(stage.rows)) / ui.scale;
    const bool narrow = stage.over_keys && cell < kWordsFrom && cell >= kLabelsFrom;
    return narrow ? kSlantedRow : kLabelRow;
}

Canvas lay_out_canvas(PanelContext& ui, const Stage& stage, uint32_t head, ImVec2 at, ImVec2 size) {
    ViewState& view = ui.bench.view;
    Canvas c;
    c.stage = &stage;
    c.head = head;
    c.at = at;
    c.size = {std::max(size.x, 24.0f), std::max(size.y, 24.0f)};
    fit_cells(c, ui.scale);
    if (view.follow == ViewState::Follow::digits) {
        const float wanted = kDigitsCell * ui.scale / std::min(c.cell_width, c.cell_height);
        view.zoom = std::max(view.zoom, wanted > 1 ? wanted : 0);
        view.follow = ViewState::Follow::middle;
    }
    if (view.zoom > 0) {
        view.zoom = std::min(view.zoom, kMaxZoomedCell * ui.scale / std::min(c.cell_width, c.cell_height));
        c.cell_width *= view.zoom, c.cell_height *= view.zoom;
    }
    // A picture smaller than the room is centered; a larger one is panned.
    const float width = c.cell_width * float(stage.columns), height = c.cell_height * float(stage.rows);
    if (const auto first = std::exchange(view.first_cell, std::nullopt))
        view.pan_x = -first->column / float(stage.columns), view.pan_y = -first->row / float(stage.rows);
    follow_pick(view, c);
    const float pan_x = std::clamp(view.pan_x * width, std::min(c.size.x - width, 0.0f), 0.0f);
    const float pan_y = std::clamp(view.pan_y * height, std::min(c.size.y - height, 0.0f), 0.0f);
    view.pan_x = pan_x / width, view.pan_y = pan_y / height;
    c.origin = {std::floor(c.at.x + (width <= c.size.x ? (c.size.x - width) / 2 : pan_x)),
                std::floor(c.at.y + (height <= c.size.y ? (c.size.y - height) / 2 : pan_y))};
    c.coloring = coloring_of(view.colors, stage.ranges.at(head));
    return c;
}

float bars_begin(const std::vector<float>& values) {
    constexpr size_t kMany = 24;
    if (values.size() < kMany) return 0;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    if (!(*low > *high / 2)) return 0;
    return std::max(*low - (*high - *low) / 4, 0.0f);
}

VisibleCells visible_cells(const Canvas& c) {
    const auto first = [](float at, float origin, float cell) {
        return std::max(int(std::floor((at - origin) / cell)), 0);
    };
    return {first(c.at.y, c.origin.y, c.cell_height),
            std::min(first(c.at.y + c.size.y, c.origin.y, c.cell_height) + 1, int(c.stage->rows)),
            first(c.at.x, c.origin.x, c.cell_width),
            std::min(first(c.at.x + c.size.x, c.origin.x, c.cell_width) + 1, int(c.stage->columns))};
}

// Where several cells share the mouse's pixel, the one that the shader draws there (strongest_cell): NaN
// before all, then the largest.
bool cell_under_mouse(const Canvas& c, int& row, int& column) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    column = int(std::floor((mouse.x + 0.5f - c.origin.x) / c.cell_width));
    row = int(std::floor((mouse.y + 0.5f - c.origin.y) / c.cell_height));
    const int rows = int(c.stage->rows), columns = int(c.stage->columns);
    if (row < 0 || column < 0 || row >= rows || column >= columns) return false;
    if (std::min(c.cell_width, c.cell_height) >= 1) return true;
    const auto count = [](float cell) {
        return std::clamp(int(std::ceil(1 / cell)), 1, MATRIX_MOST_CELLS_A_SIDE);
    };
    const int end_row = std::min(row + count(c.cell_height), rows),
              end_column = std::min(column + count(c.cell_width), columns);
    float largest = -1;
    for (int i = row, first = column; i < end_row; ++i) {
        for (int j = first; j < end_column; ++j) {
            const float value = c.value(uint64_t(i), uint64_t(j));
            const float size = std::isnan(value)                                   ? 3.4e38f
                               : c.stage->hidden(c.head, uint64_t(i), uint64_t(j)) ? -0.5f
                                                                                   : std::abs(value);
            if (size > largest) largest = size, row = i, column = j;
        }
    }
    return true;
}

// After an item that covers the cells.
void canvas_zoom(PanelContext& ui, const Canvas& c) {
    ViewState& view = ui.bench.view;
    const ImGuiIO& io = ImGui::GetIO();
    if (!ImGui::IsItemHovered() || io.MouseWheel == 0) return;
    const float before = view.zoom > 0 ? view.zoom : 1;
    const float after = std::clamp(before * std::pow(1.15f, io.MouseWheel), 1.0f, 1e6f);
    const float width = c.cell_width * float(c.stage->columns) * after / before,
                height = c.cell_height * float(c.stage->rows) * after / before;
    view.pan_x = (io.MousePos.x - c.at.x - (io.MousePos.x - c.origin.x) / before * after) / width;
    view.pan_y = (io.MousePos.y - c.at.y - (io.MousePos.y - c.origin.y) / before * after) / height;
    view.zoom = after > 1 ? after : 0;
}

// From the cell where the right button went down to the one under the mouse.
static void select_dragged(ViewState& view, const Canvas& c) {
    const ImGuiIO& io = ImGui::GetIO();
    const auto cell = [](float at, float origin, float size, uint64_t count) {
        return std::clamp(int(std::floor((at - origin) / size)), 0, int(count) - 1);
    };
    const ImVec2 from = io.MouseClickedPos[1], to = io.MousePos;
    const auto [row_a, row_b] = std::minmax(cell(from.y, c.origin.y, c.cell_height, c.stage->rows),
                                            cell(to.y, c.origin.y, c.cell_height, c.stage->rows));
    const auto [column_a, column_b] = std::minmax(cell(from.x, c.origin.x, c.cell_width, c.stage->columns),
                                                  cell(to.x, c.origin.x, c.cell_width, c.stage->columns));
    view.selection = CellRect{row_a, row_b, column_a, column_b};
}

void canvas_selection(PanelContext& ui, const Canvas& c) {
    const Palette& colors = ui.colors();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.PushClipRect(c.at, {c.at.x + c.size.x, c.at.y + c.size.y}, true);
    // The marked cells have a frame; the selected cells have the other color and a tint.
    for (const bool selected : {false, true}) {
        const std::optional<CellRect>& r = selected ? ui.bench.view.selection : ui.bench.view.marked;
        if (!r || !r->within(c.stage->rows, c.stage->columns)) continue;
        const ImVec2 low{c.origin.x + c.cell_width * float(r->column_begin),
                         c.origin.y + c.cell_height * float(r->row_begin)},
            high{c.origin.x + c.cell_width * float(r->column_last + 1),
                 c.origin.y + c.cell_height * float(r->row_last + 1)};
        const ImU32 color = selected ? colors.warning : colors.accent;
        if (selected) draw.AddRectFilled(low, high, (color & 0x00ffffff) | 0x30000000);
        draw.AddRect(low, high, color, 2 * ui.scale, 0, 2.5f * ui.scale);
    }
    draw.PopClipRect();
}

void canvas_mouse(PanelContext& ui, const Canvas& c, const char* id) {
    ViewState& view = ui.bench.view;
    const ImGuiIO& io = ImGui::GetIO();
    ImGui::SetCursorScreenPos(c.at);
    ImGui::InvisibleButton(id, c.size, ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight);
    canvas_zoom(ui, c);
    if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, kDragFrom)) {
        view.pan_x += io.MouseDelta.x / (c.cell_width * float(c.stage->columns));
        view.pan_y += io.MouseDelta.y / (c.cell_height * float(c.stage->rows));
        return;
    }
    int row = 0, column = 0;
    if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Right, kDragFrom)) {
        select_dragged(view, c);
        return;
    }
    if (ImGui::IsItemDeactivated() && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) {
        if (io.MouseDragMaxDistanceSqr[1] < kDragFrom * kDragFrom) view.selection.reset();
        return;
    }
    const bool moved = io.MouseDelta.x != 0 || io.MouseDelta.y != 0;
    if (!ImGui::IsItemHovered() || !cell_under_mouse(c, row, column)) return;
    if (ImGui::IsItemDeactivated() && io.MouseDragMaxDistanceSqr[0] < kDragFrom * kDragFrom) {
        const bool again = view.pinned && view.picked_row == row && view.picked_column == column;
        view.pinned = !again;
        view.picked_row = row, view.picked_column = column;
    } else if (!view.pinned && moved && !ImGui::IsMouseDown(ImGuiMouseButton_Left)) {
        view.picked_row = row, view.picked_column = column;
    }
}

void canvas_cells(PanelContext& ui, const Canvas& c) {
    ui.matrices.add(*ImGui::GetWindowDrawList(), *c.stage->buffer, view_of(ui, c), c.stage->hiding,
                    c.minus ? c.minus->buffer : c.stage->dropping);
}

void canvas_digits(PanelContext& ui, const Canvas& c) {
    if (c.cell_width < kDigitsFrom * ui.scale || c.cell_height < 18 * ui.scale) return;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.PushClipRect(c.at, {c.at.x + c.size.x, c.at.y + c.size.y}, true);
    const ColorTable table = color_table(c.coloring.map);
    ImFont* font = c.cell_width >= 78 * ui.scale ? ui.fonts.body : ui.fonts.small;
    const VisibleCells cells = visible_cells(c);
    for (int row = cells.row_begin; row < cells.row_end; ++row) {
        for (int column = cells.column_begin; column < cells.column_end; ++column) {
            if (c.upper_only && column <= row) continue;
            const bool hidden = (!c.stage->hiding || c.hatch_hidden) &&
                                c.stage->hidden(c.head, uint64_t(row), uint64_t(column));
            // The score of a masked key is minus infinity; its weight, 0, needs no digits on the hatching.
            if (hidden && (c.stage->hiding || c.minus)) continue;
            // A dropped weight is exactly 0, not a small weight.
            const bool dropped = !c.minus && c.stage->dropped(c.head, uint64_t(row), uint64_t(column));
            const float value = c.value(uint64_t(row), uint64_t(column));
            const std::string text = hidden    ? "\xe2\x88\x92\xe2\x88\x9e"
                                     : dropped ? "0"
                                               : format_fixed(value, 4);
            const Rgb ink = text_color_on(color_for(c.coloring, table, value));
            const ImU32 color =
                hidden || dropped ? ui.colors().text_soft : IM_COL32(ink.r, ink.g, ink.b, 255);
            const ImVec2 size = font->CalcTextSizeA(font->FontSize, 1e6f, 0, text.c_str());
            const ImVec2 at{std::floor(c.origin.x + (float(column) + 0.5f) * c.cell_width - size.x / 2),
                            std::floor(c.origin.y + (float(row) + 0.5f) * c.cell_height - size.y / 2)};
            if (dropped)  // no digit on a hatching
                draw.AddRectFilled({at.x - 4 * ui.scale, at.y}, {at.x + size.x + 4 * ui.scale, at.y + size.y},
                                   ui.transparent ? ui.ground : ui.colors().matrix_ground);
            draw_text(font, at, color, text);
        }
    }
    draw.PopClipRect();
}

namespace {

std::string row_name(const Workbench& bench, const Canvas& c, uint64_t row) {
    if (!c.tokens) return in_drawing_order(row_name(bench, row));
    return c.stage->row_tokens ? in_drawing_order(token_name(*c.tokens, row)) : std::to_string(row);
}

std::string column_name(const Workbench& bench, const Canvas& c, uint64_t column) {
    if (!c.tokens) return in_drawing_order(column_name(bench, column));
    return c.stage->over_keys ? in_drawing_order(token_name(*c.tokens, column)) : std::to_string(column);
}

void label_rows(PanelContext& ui, const Canvas& c, ImFont* font) {
    const Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const VisibleCells cells = visible_cells(c);
    const float line = font->FontSize, room = (kLabelColumn - 12) * ui.scale;
    const bool words = c.slanted || c.cell_height >= kLabelsFrom * ui.scale;  // as the columns have
    const int step = label_step(c.cell_height, line);
    const float right = std::max(c.origin.x, c.at.x) - 10 * ui.scale;
    // The first and the last row's number is higher than a row of one pixel.
    draw.PushClipRect({right - room, c.at.y - line / 2}, {right, c.at.y + c.size.y + line / 2}, true);
    for (int row = cells.row_begin; row < cells.row_end; ++row) {
        if (row % step != 0) continue;
        const std::string label = words ? row_name(bench, c, uint64_t(row)) : std::to_string(row);
        const float width = font->CalcTextSizeA(line, 1e6f, 0, label.c_str()).x;
        draw.AddText(font, line,
                     {std::max(right - width, right - room),
                      std::floor(c.origin.y + (float(row) + 0.5f) * c.cell_height - line / 2)},
                     row == bench.view.picked_row ? colors.accent : colors.text, label.c_str());
    }
    draw.PopClipRect();
}

// Draws a text that rises to the right from its first letter's foot; its end is cut if there is no room.
void draw_slanted(ImFont* font, ImVec2 foot, ImU32 ink, std::string text, float room) {
    constexpr float kSlant = 0.7071068f;
    const auto length = [&] { return text_width(font, text); };
    while (text.size() > 1 && length() * kSlant > room) {
        while (text.size() > 1 && (text.back() & 0xc0) == 0x80) text.pop_back();
        text.pop_back();
    }
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.PushClipRectFullScreen();  // clips the text before it is rotated
    const int first = draw.VtxBuffer.Size;
    draw_text(font, {foot.x, foot.y - font->FontSize}, ink, text);
    for (int i = first; i < draw.VtxBuffer.Size; ++i) {
        ImVec2& at = draw.VtxBuffer[i].pos;
        const ImVec2 from = {at.x - foot.x, at.y - foot.y};
        at = {foot.x + (from.x + from.y) * kSlant, foot.y + (from.y - from.x) * kSlant};
    }
    draw.PopClipRect();
}

void label_columns(PanelContext& ui, const Canvas& c, ImFont* font) {
    const Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const VisibleCells cells = visible_cells(c);
    const float line = font->FontSize;
    const bool words = c.stage->over_keys && (c.slanted || c.cell_width >= kWordsFrom * ui.scale);
    const bool slanted = c.slanted && c.cell_width < kWordsFrom * ui.scale;
    // If only a few words are long, only those are slanted.
    const auto is_wide = [&](int column) {
        return font->CalcTextSizeA(line, 1e6f, 0, column_name(bench, c, uint64_t(column)).c_str()).x >
               c.cell_width;
    };
    int wide = 0;
    for (int column = cells.column_begin; slanted && column < cells.column_end; ++column)
        wide += is_wide(column);
    const bool few_wide = 4 * wide <= cells.column_end - cells.column_begin;
    const int step = label_step(c.cell_width, slanted ? line : words ? 0 : 3 * line);
    const float top = std::max(c.origin.y, c.at.y) - line - 8 * ui.scale;
    for (int column = cells.column_begin; column < cells.column_end; ++column) {
        if (column % step != 0) continue;
        const float middle = c.origin.x + (float(column) + 0.5f) * c.cell_width;
        if (middle < c.at.x || middle > c.at.x + c.size.x) continue;
        const std::string label = words ? column_name(bench, c, uint64_t(column)) : std::to_string(column);
        const ImU32 ink = column == bench.view.picked_column ? colors.accent : colors.text;
        if (slanted && !(few_wide && !is_wide(column))) {
            const float above = few_wide ? line : 0;  // room for the letters between them
            draw_slanted(font, {middle, top + line - above + 2 * ui.scale}, ink, label,
                         (kSlantedRow - 14) * ui.scale - above);
            continue;
        }
        const float room = c.cell_width * float(step);
        const float width = std::min(font->CalcTextSizeA(line, 1e6f, 0, label.c_str()).x, room - 4);
        const ImVec4 clip{middle - room / 2, top, middle + room / 2, top + 2 * line};
        draw.AddText(font, line, {std::floor(middle - width / 2), top}, ink, label.c_str(), nullptr, 0,
                     &clip);
    }
    if (!c.stage->over_keys) return;
    // Which side is which.
    const char* const sides = "query \xe2\x86\x93  key \xe2\x86\x92";
    ImFont* small = ui.fonts.small;
    const float width = text_width(small, sides);
    draw_text(small, {std::max(c.origin.x, c.at.x) - width - 10 * ui.scale, top + line - small->FontSize},
              colors.text_soft, sides);
}

}  // namespace

float canvas_marks(const PanelContext& ui, const HeadSummary& of, ImVec2 at) {
    const Palette& colors = ui.colors();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    ImFont* font = ui.fonts.small;
    const float s = ui.scale, side = std::round(font->FontSize), line = font->FontSize + 5 * s;
    float y = at.y;
    const auto mark = [&](const char* name, ImU32 color, bool rising) {
        const ImVec2 low{at.x, y}, high{at.x + side, y + side};
        draw.AddRectFilled(low, high, colors.matrix_ground);
        draw.PushClipRect(low, high, true);
        for (float x = -side; x < side; x += side / 3)
            draw.AddLine({low.x + x, rising ? high.y : low.y}, {low.x + x + side, rising ? low.y : high.y},
                         color, 1.3f * s);
        draw.PopClipRect();
        draw_text(font, {high.x + 6 * s, y}, colors.text_soft, name);
        y += line;
    };
    if (of.has_hidden) mark("masked", colors.hatch, true);
    if (of.has_dropped) mark("dropped", colors.mark, false);
    return y - at.y;
}

void canvas_labels(PanelContext& ui, const Canvas& c) {
    ImFont* font = c.cell_width >= 40 * ui.scale ? ui.fonts.body : ui.fonts.small;
    label_rows(ui, c, font);
    label_columns(ui, c, font);
}

void canvas_minimap(PanelContext& ui, const Canvas& c) {
    if (c.all_visible()) return;
    const Palette& colors = ui.colors();
    const Stage& s = *c.stage;
    const float longest = float(std::max(s.rows, s.columns)), side = kMinimap * ui.scale;
    const ImVec2 size = {std::max(side * float(s.columns) / longest, 8.0f),
                         std::max(side * float(s.rows) / longest, 8.0f)};
    const ImVec2 at = {c.at.x + c.size.x - size.x - 10 * ui.scale,
                       c.at.y + c.size.y - size.y - 10 * ui.scale};
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled({at.x - 3 * ui.scale, at.y - 3 * ui.scale},
                       {at.x + size.x + 3 * ui.scale, at.y + size.y + 3 * ui.scale}, colors.raised,
                       3 * ui.scale);
    Canvas whole = c;
    whole.at = whole.origin = at;
    whole.size = size;
    whole.cell_width = size.x / float(s.columns), whole.cell_height = size.y / float(s.rows);
    MatrixView v = view_of(ui, whole);
    v.picked_row = v.picked_column = -1;
    ui.matrices.add(draw, *s.buffer, v, s.hiding, c.minus ? c.minus->buffer : s.dropping);
    const auto place = [&](float x, float y) {
        return ImVec2(
            at.x + std::clamp((x - c.origin.x) / (c.cell_width * float(s.columns)), 0.0f, 1.0f) * size.x,
            at.y + std::clamp((y - c.origin.y) / (c.cell_height * float(s.rows)), 0.0f, 1.0f) * size.y);
    };
    draw.AddRect(place(c.at.x, c.at.y), place(c.at.x + c.size.x, c.at.y + c.size.y), colors.accent, 0, 0,
                 2 * ui.scale);
}

}  // namespace fovea::visualizer

// One stage as a map of its numbers: tokens on both axes, digits where there is room, wheel zooms about the
// cursor, drag pans, a click picks.
#include "panels/panels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fovea::visualizer {
namespace {

constexpr float kLabelColumn = 92, kLabelRow = 34, kBarWidth = 74, kMostCell = 104, kDigitsFrom = 46,
                kLabelsFrom = 12;

struct Frame {
    const Stage& stage;
    ImVec2 at, size;  // of the cells' area
    float cell_width, cell_height;
    ImVec2 origin;  // of cell (0, 0)
    ColourRange range;
    ColourMap map;
    std::span<const float> values;  // of the head that is shown
};

ColourRange range_of(std::span<const float> values, bool logarithmic) {
    ColourRange range = fitted_range(values);
    if (logarithmic && range.scale == ColourScale::linear && range.high > 0) {
        range.low = range.high * 1e-4;
        range.scale = ColourScale::logarithmic;
    }
    return range;
}

Frame lay_out(PanelContext& ui) {
    Session& session = ui.session;
    ViewState& view = session.view;
    const Stage& stage = session.stage();
    const float s = ui.scale;
    Frame f{stage, {}, {}, 0, 0, {}, {}, ColourMap::viridis, {}};
    const ImVec2 cursor = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    f.at = {cursor.x + kLabelColumn * s, cursor.y + kLabelRow * s};
    f.size = {std::max(room.x - (kLabelColumn + kBarWidth) * s, 40.0f),
              std::max(room.y - kLabelRow * s, 40.0f)};
    const float fit =
        std::min({f.size.x / float(stage.columns), f.size.y / float(stage.rows), kMostCell * s});
    const float cell = view.zoom > 0 ? view.zoom : fit;
    f.cell_width = f.cell_height = cell;
    // What is smaller than the room is centred; what is larger is panned.
    const float width = cell * float(stage.columns), height = cell * float(stage.rows);
    if (width <= f.size.x) view.pan_x = 0;
    if (height <= f.size.y) view.pan_y = 0;
    view.pan_x = std::clamp(view.pan_x, std::min(f.size.x - width, 0.0f), 0.0f);
    view.pan_y = std::clamp(view.pan_y, std::min(f.size.y - height, 0.0f), 0.0f);
    f.origin = {std::floor(f.at.x + (width <= f.size.x ? (f.size.x - width) / 2 : view.pan_x)),
                std::floor(f.at.y + (height <= f.size.y ? (f.size.y - height) / 2 : view.pan_y))};
    const uint64_t count = stage.rows * stage.columns;
    f.values = stage.values.subspan(view.head * count, count);
    f.range = range_of(f.values, view.logarithmic);
    f.map = view.automatic_map
                ? (f.range.scale == ColourScale::symmetric ? ColourMap::blue_orange : ColourMap::viridis)
                : view.map;
    return f;
}

void handle_input(PanelContext& ui, const Frame& f) {
    ViewState& view = ui.session.view;
    ImGuiIO& io = ImGui::GetIO();
    ImGui::SetCursorScreenPos(f.at);
    ImGui::InvisibleButton("cells", f.size, ImGuiButtonFlags_MouseButtonLeft);
    const bool hovered = ImGui::IsItemHovered();
    if (hovered && io.MouseWheel != 0) {
        const float before = f.cell_width;
        const float after = std::clamp(before * std::pow(1.15f, io.MouseWheel), 1.0f, 400 * ui.scale);
        view.pan_x = io.MousePos.x - f.at.x - (io.MousePos.x - f.origin.x) / before * after;
        view.pan_y = io.MousePos.y - f.at.y - (io.MousePos.y - f.origin.y) / before * after;
        view.zoom = after;
    }
    if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) {
        view.pan_x += io.MouseDelta.x;
        view.pan_y += io.MouseDelta.y;
    }
    // Hovering picks while the button is up; so does a click.
    const bool moved = io.MouseDelta.x != 0 || io.MouseDelta.y != 0;
    if (!hovered || ImGui::IsMouseDown(ImGuiMouseButton_Left) || !moved) return;
    const int column = int(std::floor((io.MousePos.x - f.origin.x) / f.cell_width));
    const int row = int(std::floor((io.MousePos.y - f.origin.y) / f.cell_height));
    if (row < 0 || column < 0 || row >= int(f.stage.rows) || column >= int(f.stage.columns)) return;
    view.picked_row = row;
    view.picked_column = column;
}

void draw_cells(PanelContext& ui, const Frame& f) {
    const Session& session = ui.session;
    const ImGuiIO& io = ImGui::GetIO();
    const float sx = io.DisplayFramebufferScale.x, sy = io.DisplayFramebufferScale.y;
    const Palette& colours = palette(session.theme);
    MatrixView v{};
    v.left = f.at.x * sx, v.top = f.at.y * sy, v.width = f.size.x * sx, v.height = f.size.y * sy;
    v.origin_x = f.origin.x * sx, v.origin_y = f.origin.y * sy;
    v.cell_width = f.cell_width * sx, v.cell_height = f.cell_height * sy;
    v.first_element = uint32_t(session.view.head * f.stage.rows * f.stage.columns);
    v.row_stride = v.columns = uint32_t(f.stage.columns);
    v.rows = uint32_t(f.stage.rows);
    const double reach = std::max(std::abs(f.range.low), std::abs(f.range.high));
    const bool symmetric = f.range.scale == ColourScale::symmetric;
    v.range_low = float(symmetric ? -reach : f.range.low),
    v.range_high = float(symmetric ? reach : f.range.high);
    v.colour_map = uint32_t(std::find(kColourMaps.begin(), kColourMaps.end(), f.map) - kColourMaps.begin());
    v.flags = (f.range.scale == ColourScale::logarithmic ? MATRIX_FLAG_LOG : 0) |
              (f.cell_width >= 8 * ui.scale ? MATRIX_FLAG_GRID : 0);
    v.ground = colours.panel, v.hatch = colours.hatch, v.highlight = colours.text;
    v.picked_row = session.view.picked_row, v.picked_column = session.view.picked_column;
    ui.matrices.add(*ImGui::GetWindowDrawList(), *f.stage.buffer, v);
}

struct Visible {
    int row_begin, row_end, column_begin, column_end;
};

Visible visible_cells(const Frame& f) {
    const auto first = [](float at, float origin, float cell) {
        return std::max(int(std::floor((at - origin) / cell)), 0);
    };
    return {first(f.at.y, f.origin.y, f.cell_height),
            std::min(first(f.at.y + f.size.y, f.origin.y, f.cell_height) + 1, int(f.stage.rows)),
            first(f.at.x, f.origin.x, f.cell_width),
            std::min(first(f.at.x + f.size.x, f.origin.x, f.cell_width) + 1, int(f.stage.columns))};
}

void draw_digits(PanelContext& ui, const Frame& f) {
    if (f.cell_width < kDigitsFrom * ui.scale) return;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.PushClipRect(f.at, {f.at.x + f.size.x, f.at.y + f.size.y}, true);
    const ColourTable table = colour_table(f.map);
    ImFont* font = f.cell_width >= 78 * ui.scale ? ui.fonts.body : ui.fonts.small;
    const Visible cells = visible_cells(f);
    for (int row = cells.row_begin; row < cells.row_end; ++row) {
        for (int column = cells.column_begin; column < cells.column_end; ++column) {
            const float value = f.values[size_t(row) * f.stage.columns + size_t(column)];
            const bool hidden = std::isinf(value) && value < 0;
            const std::string text = hidden ? "\xe2\x88\x92\xe2\x88\x9e" : format_fixed(value, 4);
            const Rgb ink = text_colour_on(colour_of(value, table, f.range));
            const ImU32 colour =
                hidden ? palette(ui.session.theme).text_soft : IM_COL32(ink.r, ink.g, ink.b, 255);
            const ImVec2 size = font->CalcTextSizeA(font->FontSize, 1e6f, 0, text.c_str());
            draw.AddText(font, font->FontSize,
                         {std::floor(f.origin.x + (float(column) + 0.5f) * f.cell_width - size.x / 2),
                          std::floor(f.origin.y + (float(row) + 0.5f) * f.cell_height - size.y / 2)},
                         colour, text.c_str());
        }
    }
    draw.PopClipRect();
}

// The n-th label is shown where labels have room; otherwise every 2nd, 5th, 10th ... index.
int label_step(float cell, float needed) {
    int step = 1;
    for (const int next : {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}) {
        step = next;
        if (cell * float(next) >= needed) break;
    }
    return step;
}

void draw_labels(PanelContext& ui, const Frame& f) {
    const Session& session = ui.session;
    const Palette& colours = palette(session.theme);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const Visible cells = visible_cells(f);
    ImFont* font = f.cell_width >= 40 * ui.scale ? ui.fonts.body : ui.fonts.small;
    const float line = font->FontSize;
    const bool words = f.cell_height >= kLabelsFrom * ui.scale;
    const int row_step = label_step(f.cell_height, line);
    const float left = std::max(f.origin.x, f.at.x);
    draw.PushClipRect({f.at.x - kLabelColumn * ui.scale, f.at.y}, {f.at.x + f.size.x, f.at.y + f.size.y},
                      true);
    for (int row = cells.row_begin; row < cells.row_end; ++row) {
        if (row % row_step != 0) continue;
        const std::string label =
            f.stage.row_tokens && words ? token_label(session, uint64_t(row)) : std::to_string(row);
        const float width = font->CalcTextSizeA(line, 1e6f, 0, label.c_str()).x;
        draw.AddText(font, line,
                     {std::max(left - width - 10 * ui.scale, f.at.x - kLabelColumn * ui.scale),
                      f.origin.y + (float(row) + 0.5f) * f.cell_height - line / 2},
                     row == session.view.picked_row ? colours.accent : colours.text, label.c_str());
    }
    draw.PopClipRect();
    const int column_step = label_step(f.cell_width, f.cell_width >= 40 * ui.scale ? 0 : 3 * line);
    const bool column_words = f.stage.over_keys && column_step == 1 && f.cell_width >= 40 * ui.scale;
    const float top = std::max(f.origin.y, f.at.y) - line - 8 * ui.scale;
    for (int column = cells.column_begin; column < cells.column_end; ++column) {
        if (column % column_step != 0) continue;
        const std::string label =
            column_words ? token_label(session, uint64_t(column)) : std::to_string(column);
        const float middle = f.origin.x + (float(column) + 0.5f) * f.cell_width;
        const float width = std::min(font->CalcTextSizeA(line, 1e6f, 0, label.c_str()).x,
                                     f.cell_width * float(column_step) - 4);
        if (middle < f.at.x || middle > f.at.x + f.size.x) continue;
        const ImVec4 clip{middle - f.cell_width * float(column_step) / 2, top,
                          middle + f.cell_width * float(column_step) / 2, top + 2 * line};
        draw.AddText(font, line, {middle - width / 2, top},
                     column == session.view.picked_column ? colours.accent : colours.text, label.c_str(),
                     nullptr, 0, &clip);
    }
}

void draw_colour_bar(PanelContext& ui, const Frame& f) {
    const Palette& colours = palette(ui.session.theme);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float s = ui.scale, height = std::min(f.cell_height * float(f.stage.rows), f.size.y);
    const float x = std::min(f.origin.x + f.cell_width * float(f.stage.columns), f.at.x + f.size.x) + 16 * s;
    const float y = std::max(f.origin.y, f.at.y), width = 12 * s;
    const ColourTable table = colour_table(f.map);
    const int steps = 64;
    for (int i = 0; i < steps; ++i) {
        const Rgb c = table[size_t(255 - i * 255 / (steps - 1))];
        draw.AddRectFilled({x, y + height * float(i) / steps},
                           {x + width, y + height * float(i + 1) / steps + 0.5f},
                           IM_COL32(c.r, c.g, c.b, 255));
    }
    for (int tick = 0; tick <= 4; ++tick) {
        const float share = float(tick) / 4, at = y + height * (1 - share);
        const std::string text = format_number(f.range.value_at(share), 3);
        draw.AddText(ui.fonts.small, ui.fonts.small->FontSize,
                     {x + width + 6 * s, std::clamp(at - ui.fonts.small->FontSize / 2, y - 2 * s,
                                                    y + height - ui.fonts.small->FontSize)},
                     colours.text_soft, text.c_str());
    }
}

void draw_controls(PanelContext& ui) {
    ViewState& view = ui.session.view;
    const Stage& stage = ui.session.stage();
    heading(ui, stage.name.c_str(), stage.formula.c_str());
    // The controls stand in the heading's line, at its right end.
    const ImVec2 below = ImGui::GetCursorPos();
    ImGui::SetCursorPos({std::max(ImGui::GetWindowWidth() - 304 * ui.scale, 10.0f), 8 * ui.scale});
    if (ImGui::Button("Fit")) view.zoom = 0;
    ImGui::SameLine(0, 6 * ui.scale);
    ImGui::Checkbox("log", &view.logarithmic);
    ImGui::SameLine(0, 10 * ui.scale);
    ImGui::SetNextItemWidth(150 * ui.scale);
    const std::string current =
        view.automatic_map ? "colours: automatic" : std::string(colour_map_name(view.map));
    if (ImGui::BeginCombo("##map", current.c_str())) {
        if (ImGui::Selectable("automatic", view.automatic_map)) view.automatic_map = true;
        for (const ColourMap map : kColourMaps) {
            if (ImGui::Selectable(std::string(colour_map_name(map)).c_str(),
                                  !view.automatic_map && view.map == map)) {
                view.automatic_map = false;
                view.map = map;
            }
        }
        ImGui::EndCombo();
    }
    ImGui::SetCursorPos(below);
}

}  // namespace

void draw_matrix_panel(PanelContext& ui) {
    draw_controls(ui);
    if (!ui.session.complete()) {
        ImGui::TextDisabled("computing, %.0f%%", 100 * ui.session.run().progress());
        return;
    }
    const Frame frame = lay_out(ui);
    handle_input(ui, frame);
    draw_cells(ui, frame);
    draw_digits(ui, frame);
    draw_labels(ui, frame);
    draw_colour_bar(ui, frame);
}

}  // namespace fovea::visualizer

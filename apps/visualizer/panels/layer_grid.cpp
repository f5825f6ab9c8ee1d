// Layers x heads of an imported model: a thumbnail each, in the grid of the model or ordered and filtered by
// a figure. A click shows a head as A, Shift and a click compares with it as B.
#include "matrix/coloring.hpp"
#include "panels/head_thumbnail.hpp"
#include "texts/texts.hpp"

#include <fovea/model/learned.hpp>

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr size_t kMaxSideBySide = 8;
constexpr float kLayerColumn = 40, kHeads = 12, kGap = 8, kSmallest = 34, kScrolled = 60, kLargest = 240;

struct Place {  // The place of a head in the grid's buffers.
    const GridLayer* layer;
    const GridHead* head;
};

std::vector<Place> all_heads(const HeadGrid& grid) {
    std::vector<Place> places;
    for (const GridLayer& layer : grid.layers())
        for (const GridHead& head : layer.heads) places.push_back({&layer, &head});
    return places;
}

std::vector<double> figures_of(const std::vector<Place>& places, int figure) {
    std::vector<double> figures;
    for (const Place& place : places)
        figures.push_back(head_figure(place.head->stats, place.head->scores, figure));
    return figures;
}

// 'A', 'B' or ' ': which of both a head is in the comparison of now.
char mark_of(const Workbench& bench, uint32_t layer, uint32_t head) {
    const bool here = layer == bench.document.settings().mapping.layer;
    const KeptResult* kept = bench.past.kept();
    if (kept && kept->result->settings.file == bench.document.settings().file &&
        kept->result->settings.mapping.layer == layer && kept->head == head)
        return 'A';
    if (here && bench.view.head == head) return kept ? 'B' : 'A';
    return here && !kept && bench.view.compared_head == int(head) ? 'B' : ' ';
}

// A head that is off has a cross, one that is changed otherwise a stroke.
void draw_change(PanelContext& ui, HeadPlace head, ImVec2 at, float side) {
    const Settings& settings = ui.bench.document.settings();
    if (!shows_model(settings) || change_text(settings, head).empty()) return;
    const ImU32 color = ui.colors().warning;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddLine({at.x + side, at.y}, {at.x, at.y + side}, color, 2 * ui.scale);
    if (is_off(settings, head)) draw.AddLine(at, {at.x + side, at.y + side}, color, 2 * ui.scale);
}

}  // namespace

std::string job_of(const Settings& s, const GridHead& head) {
    const std::string known = head_label(s, {head.layer, head.head});
    return known.empty() && (s.model || s.learned) ? std::string(head_job(head.scores)) : known;
}

void draw_grid_head(PanelContext& ui, const GridLayer& layer, const GridHead& head, float side) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(int(head.layer * 4096 + head.head));
    const bool chosen = ImGui::InvisibleButton("head", {side, side});
    ImGui::PopID();
    const bool hovered = ImGui::IsItemHovered();
    draw_thumbnail(ui,
                   {&layer.pixels, nullptr, head.head * layer.rows * layer.columns, layer.rows, layer.columns,
                    head.range},
                   at, {side, side});
    const char mark = mark_of(bench, head.layer, head.head);
    const float gap = 2 * ui.scale;
    if (mark != ' ' || hovered)
        ImGui::GetWindowDrawList()->AddRect({at.x - gap, at.y - gap}, {at.x + side + gap, at.y + side + gap},
                                            mark == 'A'   ? colors.accent
                                            : mark == 'B' ? colors.warning
                                                          : colors.text_soft,
                                            3 * ui.scale, 0, gap);
    const Settings& settings = bench.document.settings();
    draw_change(ui, {head.layer, head.head}, at, side);
    const std::string label = job_of(settings, head);
    if (hovered)
        head_tooltip(head_name(head.layer, head.head) + (label.empty() ? "" : ", " + label) +
                         (shows_model(settings) ? change_text(settings, {head.layer, head.head}) : ""),
                     head.stats, head.scores, shows_model(settings));
    if (shows_model(settings) && ImGui::IsItemClicked(ImGuiMouseButton_Right)) {
        Settings next = settings;
        toggle_head(next, {head.layer, head.head});
        bench.document.change(next);
    }
    if (!chosen) return;
    if (ImGui::GetIO().KeyShift)
        bench.compare_with_head(head.layer, head.head);
    else
        bench.show_head(head.layer, head.head);
}

namespace {

// Each row of the model is a row here; what is scrolled out of sight is not drawn.
void draw_rows(PanelContext& ui, const HeadGrid& grid, float side) {
    const float s = ui.scale;
    ImFont* small = ui.fonts.small;
    const Palette& colors = ui.colors();
    ImGuiListClipper clipper;
    const ImVec2 top = ImGui::GetCursorScreenPos();
    for (size_t h = 0; !grid.layers().empty() && h < grid.layers()[0].heads.size(); ++h) {
        const std::string number = (h == 0 ? "H" : "") + std::to_string(h);
        const float width = text_width(small, number);
        draw_text(small,
                  {top.x + kLayerColumn * s + float(h) * (side + kGap * s) + (side - width) / 2, top.y},
                  colors.text_soft, number);
    }
    ImGui::Dummy({0, kHeads * s});
    clipper.Begin(int(grid.layers().size()), side + kGap * s);
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            const GridLayer& layer = grid.layers()[size_t(i)];
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const std::string name = "L" + std::to_string(layer.layer);
            const bool current = layer.layer == ui.bench.document.settings().mapping.layer;
            draw_text(small, {at.x + 4 * s, at.y + (side - small->FontSize) / 2},
                      current ? colors.accent : colors.text_soft, name);
            if (!layer.problem.empty())
                draw_text(small, {at.x + kLayerColumn * s, at.y + (side - small->FontSize) / 2},
                          colors.warning, layer.problem);
            for (size_t h = 0; h < layer.heads.size(); ++h) {
                ImGui::SetCursorScreenPos({at.x + kLayerColumn * s + float(h) * (side + kGap * s), at.y});
                draw_grid_head(ui, layer, layer.heads[h], side);
            }
            ImGui::SetCursorScreenPos(at);
            ImGui::Dummy({side, side + kGap * s - ImGui::GetStyle().ItemSpacing.y});
        }
    }
}

// The few heads of a small model, as high as the strip is, each with what it does.
void draw_side_by_side(PanelContext& ui, const std::vector<Place>& places) {
    const float s = ui.scale, label = 20 * s;
    ImGui::BeginChild("heads", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float least = 34 * s;
    const float side = std::max(
        std::min(room.y - label, room.x / float(std::max<size_t>(places.size(), 1)) - 24 * s), least);
    const float step = std::max(side + 24 * s, 140 * s);
    const Settings& settings = ui.bench.document.settings();
    const Palette& colors = ui.colors();
    for (size_t i = 0; i < places.size(); ++i) {
        const HeadPlace head{places[i].head->layer, places[i].head->head};
        const float x = at.x + 4 * s + float(i) * step;
        ImGui::SetCursorScreenPos({x, at.y + 3 * s});
        draw_grid_head(ui, *places[i].layer, *places[i].head, side);
        const bool off = is_off(settings, head);
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        const std::string name = head_name(head.layer, head.head) + (off ? texts().layers.off : " ");
        ImFont& font = *ui.fonts.small;
        draw.AddText(&font, font.FontSize, {x, at.y + side + 6 * s}, colors.text_soft, name.c_str());
        draw.AddText(&font, font.FontSize,
                     {x + font.CalcTextSizeA(font.FontSize, 1e6f, 0, name.c_str()).x, at.y + side + 6 * s},
                     colors.text, job_of(settings, *places[i].head).c_str());
    }
    ImGui::Dummy({4 * s, side + label});
    ImGui::EndChild();
}

void draw_ordered(PanelContext& ui, const std::vector<Place>& places, float side) {
    const HeadOrder& by = ui.bench.window.head_order;
    const std::vector<double> figures = figures_of(places, by.figure);
    const std::vector<size_t> order = ordered_heads(figures, by);
    const float s = ui.scale, step_x = side + (kGap + 30) * s, step_y = side + 24 * s;
    const int columns = std::max(int((ImGui::GetContentRegionAvail().x - 4 * s) / step_x), 1);
    const int rows = (int(order.size()) + columns - 1) / columns;
    ImGui::PushFont(ui.fonts.small);
    ImGuiListClipper clipper;
    clipper.Begin(rows, step_y);
    while (clipper.Step()) {
        for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
            const ImVec2 at = ImGui::GetCursorScreenPos();
            for (int column = 0; column < columns && row * columns + column < int(order.size()); ++column) {
                const size_t n = order[size_t(row * columns + column)];
                const Place& place = places[n];
                const float x = at.x + 4 * s + float(column) * step_x;
                ImGui::SetCursorScreenPos({x, at.y + 3 * s});
                draw_grid_head(ui, *place.layer, *place.head, side);
                const std::string label = head_name(place.head->layer, place.head->head) + "  " +
                                          figure_text(figures[n], by.figure);
                ImGui::GetWindowDrawList()->AddText({x, at.y + side + 6 * s}, ui.colors().text_soft,
                                                    label.c_str());
            }
            ImGui::SetCursorScreenPos(at);
            ImGui::Dummy({side, step_y - ImGui::GetStyle().ItemSpacing.y});
        }
    }
    ImGui::PopFont();
}

void draw_controls(PanelContext& ui, const HeadGrid& grid, const std::vector<Place>& places) {
    WindowState& state = ui.bench.window;
    order_controls(ui, int(std::size(kHeadOrders)));
    if (HeadOrder& order = state.head_order; order.figure > 0) {
        ImGui::SameLine(0, 8 * ui.scale);
        ImGui::SetNextItemWidth(150 * ui.scale);
        const double edge = double(order.edge) * largest_figure(figures_of(places, order.figure));
        const std::string shown = fill(order.rising ? texts().layers.up_to : texts().layers.at_least,
                                       {figure_text(edge, order.figure)});
        ImGui::SliderFloat("##edge", &order.edge, 0, 1, shown.c_str(), ImGuiSliderFlags_AlwaysClamp);
        tooltip(order.rising ? texts().layers.leave_above : texts().layers.leave_below);
    }
    if (!grid.complete()) {
        ImGui::SameLine(0, 12 * ui.scale);
        soft_text(fill(texts().layers.progress,
                       {std::to_string(grid.layers().size() + 1), std::to_string(grid.layer_count())}));
    }
}

}  // namespace

void draw_layer_grid(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const HeadGrid* grid = bench.head_grid();
    const bool in_strip = bench.window.centre != CentreTab::layers;
    if (!grid) {
        soft_paragraph(texts().layers.empty);
        if (ImGui::Button(texts().layers.open)) bench.window.open_dialog(Dialog::open);
        ImGui::SameLine(0, 8 * ui.scale);
        if (ImGui::Button(texts().layers.learned)) bench.show_task(learned_tasks().front());
        return;
    }
    const std::vector<Place> places = all_heads(*grid);
    draw_controls(ui, *grid, places);
    size_t most = 1;
    if (in_strip && places.size() <= kMaxSideBySide && bench.window.head_order.figure == 0) {
        draw_side_by_side(ui, places);
        return;
    }
    for (const GridLayer& layer : grid->layers()) most = std::max(most, layer.heads.size());
    const float s = ui.scale;
    ImGui::BeginChild("grid", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float fit_x = (room.x - kLayerColumn * s) / float(most) - kGap * s,
                fit_y = (room.y - 24 * s) / float(std::max<size_t>(grid->layer_count(), 1)) - kGap * s;
    // All of it where that is large enough to be read; else larger, and scrolled.
    const float side = std::floor(
        std::clamp(std::min(fit_x, fit_y >= 36 * s ? fit_y : kScrolled * s), kSmallest * s, kLargest * s));
    ImGui::Dummy({0, 1 * s});
    if (bench.window.head_order.figure == 0)
        draw_rows(ui, *grid, side);
    else
        draw_ordered(ui, places, std::clamp(side, 64 * s, 96 * s));
    ImGui::EndChild();
}

}  // namespace fovea::visualizer

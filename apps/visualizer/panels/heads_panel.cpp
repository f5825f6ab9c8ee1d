// All heads of the shown stage, small, with their figures; a click shows one, Shift and a click compares with
// it.
#include "panels/head_thumbnail.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr int kOrdersWithoutText = 5;  // index into kHeadOrders

std::vector<size_t> heads_in_order(Workbench& bench) {
    const std::vector<HeadStats>& stats = bench.computation.head_stats();
    HeadOrder order = bench.window.head_order;
    order.edge = order.rising ? 1.0f : 0.0f;  // one layer's heads are all shown
    std::vector<double> figures(bench.stage().heads);
    if (stats.size() != figures.size()) order.figure = 0;
    for (size_t head = 0; order.figure > 0 && head < figures.size(); ++head)
        figures[head] = head_figure(stats[head], {}, order.figure);
    return ordered_heads(figures, order);
}

void draw_head(PanelContext& ui, uint32_t head, float side) {
    Workbench& bench = ui.bench;
    ViewState& view = bench.view;
    const Stage& stage = bench.stage();
    const Palette& colors = palette(bench.window.theme);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool chosen = ImGui::InvisibleButton("head", {side, side});
    const bool hovered = ImGui::IsItemHovered();
    if (chosen && ImGui::GetIO().KeyShift && !bench.past.kept())
        view.compared_head = int(head);
    else if (chosen)
        view.head = head;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw_thumbnail(ui, thumbnail_of(stage, head), at, {side, side});
    // With a kept A, the shown head is B.
    const bool kept = bench.past.kept() != nullptr, shown = view.head == head;
    const bool is_a = shown && !kept, is_b = kept ? shown : view.compared_head == int(head);
    const float gap = 2 * ui.scale;
    if (is_a || is_b || hovered)
        draw.AddRect({at.x - gap, at.y - gap}, {at.x + side + gap, at.y + side + gap},
                     is_a   ? colors.accent
                     : is_b ? colors.warning
                            : colors.text_soft,
                     3 * ui.scale, 0, gap);
    const std::vector<HeadStats>& stats = bench.computation.head_stats();
    std::string label = std::to_string(head) + (is_a && view.compared_head >= 0 ? " A" : is_b ? " B" : "");
    if (const int figure = bench.window.head_order.figure; figure > 0 && head < stats.size())
        label += "  " + figure_text(head_figure(stats[head], {}, figure), figure);
    ImGui::PushFont(ui.fonts.small);
    soft_text(label);
    ImGui::PopFont();
    if (!hovered || head >= stats.size()) return;
    head_tooltip("head " + std::to_string(head), stats[head], {NAN, NAN, NAN, NAN});
}

// As high as the strip allows, above a scroll bar where there must be one: by the window's own height, as the
// room that is left follows from the scroll bar.
float thumbnail_side(const PanelContext& ui, uint64_t heads, float gap) {
    const ImGuiStyle& style = ImGui::GetStyle();
    const float room = ImGui::GetWindowWidth() - 2 * style.WindowPadding.x;
    const float side = std::max(
        ImGui::GetWindowHeight() - ImGui::GetCursorPosY() - style.WindowPadding.y - 26 * ui.scale, 24.0f);
    const bool fits = float(heads) * (side + gap) - gap <= room;
    return fits ? side : std::max(side - style.ScrollbarSize, 24.0f);
}

}  // namespace

void draw_heads_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (!bench.computation.complete()) return;
    // Another matrix's heads under a map would be taken for the map's.
    if (bench.window.centre == CentreTab::map && bench.map) {
        ImGui::PushTextWrapPos();
        if (bench.map.head()->head().heads > 1)
            soft_text(fill(texts().heads.under_map, {std::to_string(bench.map.head()->head().head),
                                                     std::to_string(bench.map.head()->head().heads)}));
        else
            soft_text(texts().map.one_head);
        ImGui::PopTextWrapPos();
        return;
    }
    // The grid in the middle shows all layers, so only the shown one is listed.
    const size_t layers = shown_layers(bench.document.settings()).size();
    if (layers > 1 && bench.window.centre != CentreTab::layers) {
        int which = bench.window.all_layers ? 1 : 0;
        const std::string all = fill(texts().heads.all_layers, {std::to_string(layers)});
        const char* names[] = {texts().heads.this_layer, all.c_str()};
        if (tabs(ui, names, which)) bench.window.all_layers = which == 1;
        ImGui::SameLine(0, 14 * ui.scale);
        if (bench.window.all_layers) {
            draw_layer_grid(ui);
            return;
        }
    }
    ImGui::AlignTextToFramePadding();
    const uint64_t heads = bench.stage().heads;
    ImGui::TextDisabled("%llu %s of %s,", static_cast<unsigned long long>(heads),
                        heads == 1 ? "head" : "heads", bench.stage().name.c_str());
    ImGui::SameLine(0, 4 * ui.scale);
    order_controls(ui, kOrdersWithoutText);
    const float gap = 14 * ui.scale, side = thumbnail_side(ui, heads, gap);
    bool first = true;
    for (const size_t head : heads_in_order(bench)) {
        if (!first) ImGui::SameLine(0, gap);
        first = false;
        ImGui::BeginGroup();
        ImGui::PushID(int(head));
        // Thumbnails out of sight are not drawn.
        const float x = ImGui::GetCursorScreenPos().x, begin = ImGui::GetWindowPos().x;
        if (x + side < begin || x > begin + ImGui::GetWindowWidth())
            ImGui::Dummy({side, side});
        else
            draw_head(ui, uint32_t(head), side);
        ImGui::PopID();
        ImGui::EndGroup();
    }
}

}  // namespace fovea::visualizer

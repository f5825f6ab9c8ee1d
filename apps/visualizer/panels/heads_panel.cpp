// All heads of the shown stage, small, with their figures; a click shows one, Shift and a click compares with
// it.
#include "panels/panels.hpp"

#include "matrix/colouring.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea::visualizer {
namespace {

constexpr const char* kOrders[] = {"number", "entropy", "distance", "first token", "previous token"};

double figure(const HeadStats& stats, int order) {
    switch (order) {
        case 1:
            return stats.entropy;
        case 2:
            return stats.mean_distance;
        case 3:
            return stats.first_token_mass;
        default:
            return stats.previous_token;
    }
}

std::vector<uint32_t> ordered_heads(Session& session) {
    std::vector<uint32_t> order(session.stage().heads);
    std::iota(order.begin(), order.end(), 0);
    const std::vector<HeadStats>& stats = session.head_stats();
    if (session.ui.head_order > 0 && stats.size() == order.size())
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
            return figure(stats[a], session.ui.head_order) > figure(stats[b], session.ui.head_order);
        });
    return order;
}

MatrixView thumbnail(const Session& session, const Stage& stage, uint32_t head, ImVec2 at, float side) {
    const ImGuiIO& io = ImGui::GetIO();
    const Palette& colours = palette(session.theme);
    const float sx = io.DisplayFramebufferScale.x, sy = io.DisplayFramebufferScale.y;
    const Colouring colouring = colouring_of(ViewState{}, stage.ranges.at(head));
    MatrixView v{};
    v.left = v.origin_x = at.x * sx, v.top = v.origin_y = at.y * sy;
    v.width = side * sx, v.height = side * sy;
    v.cell_width = v.width / float(stage.columns), v.cell_height = v.height / float(stage.rows);
    v.first_element = uint32_t(head * stage.rows * stage.columns);
    v.row_stride = v.columns = uint32_t(stage.columns);
    v.rows = uint32_t(stage.rows);
    v.range_low = float(colouring.low), v.range_high = float(colouring.high);
    v.colour_map =
        uint32_t(std::find(kColourMaps.begin(), kColourMaps.end(), colouring.map) - kColourMaps.begin());
    v.flags = stage.hiding ? MATRIX_FLAG_HIDING : 0;
    v.ground = colours.matrix_ground, v.hatch = colours.hatch, v.highlight = colours.text;
    v.picked_row = v.picked_column = -1;
    return v;
}

void draw_head(PanelContext& ui, uint32_t head, float side) {
    Session& session = ui.session;
    ViewState& view = session.view;
    const Stage& stage = session.stage();
    const Palette& colours = palette(session.theme);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool chosen = ImGui::InvisibleButton("head", {side, side});
    const bool hovered = ImGui::IsItemHovered();
    if (chosen && ImGui::GetIO().KeyShift && !session.kept())
        view.compared_head = int(head);
    else if (chosen)
        view.head = head;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    ui.matrices.add(draw, *stage.buffer, thumbnail(session, stage, head, at, side), stage.hiding);
    // Beside a kept A the shown head is B.
    const bool kept = session.kept() != nullptr, shown = view.head == head;
    const bool is_a = shown && !kept, is_b = kept ? shown : view.compared_head == int(head);
    const float gap = 2 * ui.scale;
    if (is_a || is_b || hovered)
        draw.AddRect({at.x - gap, at.y - gap}, {at.x + side + gap, at.y + side + gap},
                     is_a   ? colours.accent
                     : is_b ? colours.warning
                            : colours.text_soft,
                     3 * ui.scale, 0, gap);
    const std::vector<HeadStats>& stats = session.head_stats();
    std::string label = std::to_string(head + 1) + (is_a && view.compared_head >= 0 ? " A"
                                                    : is_b                          ? " B"
                                                                                    : "");
    if (session.ui.head_order > 0 && head < stats.size())
        label += "  " + format_number(figure(stats[head], session.ui.head_order), 3);
    ImGui::PushFont(ui.fonts.small);
    ImGui::TextDisabled("%s", label.c_str());
    ImGui::PopFont();
    if (!hovered || head >= stats.size()) return;
    const HeadStats& s = stats[head];
    ImGui::SetTooltip(
        "head %u\nentropy %.3f nats (%.0f%% of even)\nmean distance %.2f tokens\n"
        "first token %.1f%%, previous token %.1f%%\nlargest weight %.3f on average\n\n"
        "click: show, Shift + click: compare with",
        head + 1, s.entropy, 100 * s.relative_entropy, s.mean_distance, 100 * s.first_token_mass,
        100 * s.previous_token, s.largest_weight);
}

}  // namespace

void draw_heads_panel(PanelContext& ui) {
    Session& session = ui.session;
    if (!session.complete()) return;
    ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("%llu of %s, ordered by", static_cast<unsigned long long>(session.stage().heads),
                        session.stage().name.c_str());
    ImGui::SameLine(0, 8 * ui.scale);
    ImGui::SetNextItemWidth(128 * ui.scale);
    ImGui::Combo("##order", &session.ui.head_order, kOrders, int(std::size(kOrders)));
    const float side = std::max(ImGui::GetContentRegionAvail().y - 26 * ui.scale, 24.0f);
    bool first = true;
    for (const uint32_t head : ordered_heads(session)) {
        if (!first) ImGui::SameLine(0, 14 * ui.scale);
        first = false;
        ImGui::BeginGroup();
        ImGui::PushID(int(head));
        // What is scrolled out of sight is not drawn.
        const float x = ImGui::GetCursorScreenPos().x, begin = ImGui::GetWindowPos().x;
        if (x + side < begin || x > begin + ImGui::GetWindowWidth())
            ImGui::Dummy({side, side});
        else
            draw_head(ui, head, side);
        ImGui::PopID();
        ImGui::EndGroup();
    }
}

}  // namespace fovea::visualizer

// Two heads beside each other, sharing zoom, place and pick; or as halves of one matrix; or their difference.
#include "matrix/canvas.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

void choose_head(PanelContext& ui, const char* label, uint32_t& head) {
    const uint32_t count = uint32_t(ui.session.stage().heads);
    ImGui::SetNextItemWidth(96 * ui.scale);
    if (!ImGui::BeginCombo(label, ("head " + std::to_string(head + 1)).c_str())) return;
    for (uint32_t i = 0; i < count; ++i)
        if (ImGui::Selectable(("head " + std::to_string(i + 1)).c_str(), i == head)) head = i;
    ImGui::EndCombo();
}

void draw_controls(PanelContext& ui) {
    ViewState& view = ui.session.view;
    choose_head(ui, "A", view.head);
    ImGui::SameLine(0, 12 * ui.scale);
    uint32_t other = uint32_t(view.compared_head);
    choose_head(ui, "B", other);
    view.compared_head = int(other);
    ImGui::SameLine(0, 12 * ui.scale);
    if (ImGui::Button("Swap")) {
        view.compared_head = int(view.head);
        view.head = other;
    }
    ImGui::SameLine(0, 20 * ui.scale);
    int how = int(view.how);
    constexpr const char* kHow[] = {"side by side", "halves", "difference A \xe2\x88\x92 B"};
    if (tabs(ui, kHow, how)) view.how = CompareHow(how);
}

// How far apart two distributions are: 0 the same, ln 2 nothing in common.
double jensen_shannon(const Stage& stage, uint32_t a, uint32_t b, uint64_t row) {
    double sum = 0;
    for (uint64_t column = 0; column < stage.columns; ++column) {
        const double p = double(stage.head_values(a)[row * stage.columns + column]),
                     q = double(stage.head_values(b)[row * stage.columns + column]), m = (p + q) / 2;
        if (p > 0) sum += p * std::log(p / m) / 2;
        if (q > 0) sum += q * std::log(q / m) / 2;
    }
    return sum;
}

void draw_summary(PanelContext& ui, const Stage& stage, uint32_t a, uint32_t b) {
    const std::span<const float> va = stage.head_values(a), vb = stage.head_values(b);
    double largest = 0, sum = 0;
    size_t where = 0, count = 0;
    for (size_t i = 0; i < va.size(); ++i) {
        const double difference = std::abs(double(va[i]) - double(vb[i]));
        if (!std::isfinite(difference)) continue;
        sum += difference;
        ++count;
        if (difference > largest) largest = difference, where = i;
    }
    std::string text = "largest difference " + format_value(largest, 4) + " at " +
                       row_label(ui.session, where / stage.columns) + " \xe2\x86\x92 " +
                       column_label(ui.session, where % stage.columns) + ", mean " +
                       format_value(count ? sum / double(count) : 0, 4);
    if (stage.name == "weights")
        text += ", Jensen\xe2\x80\x93Shannon of this row " +
                format_value(jensen_shannon(stage, a, b, uint64_t(ui.session.view.picked_row)), 4);
    ImGui::TextDisabled("%s", text.c_str());
}

void draw_one(PanelContext& ui, Canvas canvas, const char* id, const char* title, bool labels) {
    canvas_mouse(ui, canvas, id);
    canvas_cells(ui, canvas);
    canvas_digits(ui, canvas);
    if (labels) canvas_labels(ui, canvas);
    canvas_minimap(ui, canvas);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddText(
        ui.fonts.strong, ui.fonts.strong->FontSize,
        {std::max(canvas.origin.x, canvas.at.x), std::max(canvas.origin.y, canvas.at.y) - 56 * ui.scale},
        palette(ui.session.theme).text, title);
}

void colour_difference(Canvas& canvas, uint32_t other) {
    canvas.minus_head = int(other);
    const Stage& stage = *canvas.stage;
    double reach = 0;
    for (size_t i = 0; i < stage.rows * stage.columns; ++i) {
        const double d =
            std::abs(double(stage.head_values(canvas.head)[i]) - double(stage.head_values(other)[i]));
        if (std::isfinite(d)) reach = std::max(reach, d);
    }
    canvas.colouring = {ColourMap::blue_orange, Spread::linear, -reach, reach, 0};
}

}  // namespace

void draw_compare_panel(PanelContext& ui) {
    Session& session = ui.session;
    ViewState& view = session.view;
    const Stage& stage = session.stage();
    if (!session.complete()) {
        ImGui::TextDisabled("computing, %.0f%%", 100 * session.run().progress());
        return;
    }
    if (stage.heads < 2) {
        ImGui::PushTextWrapPos();
        ImGui::TextDisabled("%s has one head. Levels 5 to 7 have more, and so do files.", stage.name.c_str());
        ImGui::PopTextWrapPos();
        return;
    }
    if (view.compared_head < 0) view.compared_head = int((view.head + 1) % stage.heads);
    draw_controls(ui);
    const uint32_t a = view.head, b = uint32_t(view.compared_head);
    draw_summary(ui, stage, a, b);
    const float s = ui.scale;
    const ImVec2 cursor = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    const float top = cursor.y + 62 * s, height = room.y - 70 * s;
    const std::string name_a = "A: head " + std::to_string(a + 1),
                      name_b = "B: head " + std::to_string(b + 1);
    if (view.how == CompareHow::side) {
        const float width = (room.x - (2 * kLabelColumn + 16) * s) / 2;
        const float second = cursor.x + (2 * kLabelColumn + 16) * s + width;
        draw_one(ui, lay_out_canvas(ui, stage, a, {cursor.x + kLabelColumn * s, top}, {width, height}), "a",
                 name_a.c_str(), true);
        draw_one(ui, lay_out_canvas(ui, stage, b, {second, top}, {width, height}), "b", name_b.c_str(), true);
        return;
    }
    Canvas canvas = lay_out_canvas(ui, stage, a, {cursor.x + kLabelColumn * s, top},
                                   {room.x - (kLabelColumn + 16) * s, height});
    if (view.how == CompareHow::difference) {
        colour_difference(canvas, b);
        draw_one(ui, canvas, "difference", (name_a + " minus " + name_b).c_str(), true);
        return;
    }
    // B's cells stand where they are, not mirrored: a causal B shows nothing.
    draw_one(ui, canvas, "halves", (name_a + " on and below the diagonal, B above").c_str(), true);
    Canvas upper = lay_out_canvas(ui, stage, b, canvas.at, canvas.size);
    upper.upper_only = true;
    canvas_cells(ui, upper);
    canvas_digits(ui, upper);
}

}  // namespace fovea::visualizer

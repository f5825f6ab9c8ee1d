// Two heads beside each other, sharing zoom, place and pick; or as halves of one matrix; or their difference.
// A is a head of the present result, or of one that was kept.
#include "matrix/canvas.hpp"
#include "model/kept_result.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

void choose_head(PanelContext& ui, const char* label, uint64_t count, uint32_t& head) {
    ImGui::SetNextItemWidth(96 * ui.scale);
    if (!ImGui::BeginCombo(label, ("head " + std::to_string(head + 1)).c_str())) return;
    for (uint32_t i = 0; i < count; ++i)
        if (ImGui::Selectable(("head " + std::to_string(i + 1)).c_str(), i == head)) head = i;
    ImGui::EndCombo();
}

void choose_heads(PanelContext& ui, const Comparison& c) {
    Session& session = ui.session;
    ViewState& view = session.view;
    uint32_t a = c.head_a, b = c.head_b;
    choose_head(ui, "A", c.a->heads, a);
    ImGui::SameLine(0, 12 * ui.scale);
    choose_head(ui, "B", c.b->heads, b);
    ImGui::SameLine(0, 12 * ui.scale);
    const bool swap = ImGui::Button("Swap");
    if (session.kept()) {
        session.show_kept_head(a);
        view.head = b;
        if (swap) session.swap_kept();
    } else {
        view.head = swap ? b : a;
        view.compared_head = int(swap ? a : b);
    }
    ImGui::SameLine(0, 20 * ui.scale);
    int how = int(view.how);
    constexpr const char* kHow[] = {"side by side", "halves", "difference A \xe2\x88\x92 B"};
    if (tabs(ui, kHow, how)) view.how = CompareHow(how);
    if (view.how == CompareHow::difference) return;
    const float right = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x;
    if (right + 140 * ui.scale < ImGui::GetWindowWidth()) ImGui::SameLine(0, 16 * ui.scale);
    ImGui::Checkbox("same range", &view.same_range);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("A number has the same colour in A and B");
}

void draw_keeping(PanelContext& ui) {
    Session& session = ui.session;
    const ImVec2 below = ImGui::GetCursorPos();
    ImGui::SetCursorPos({ImGui::GetWindowWidth() - 96 * ui.scale, 12 * ui.scale});
    if (ImGui::Button("Keep as A")) session.keep_result();
    if (ImGui::IsItemHovered())
        ImGui::SetTooltip(
            "The present result stays as A; change level, text, parameters or layer and\n"
            "B follows. Undo and redo move B, A stays.");
    ImGui::SetCursorPos(below);
    if (!session.kept()) return;
    const bool drop = ImGui::Button("Let A go");
    ImGui::SameLine(0, 10 * ui.scale);
    ImGui::TextDisabled("A kept: %s", session.kept()->title().c_str());
    if (drop) session.drop_kept();
}

std::string token_of(const Session& session, uint64_t index, bool is_token) {
    return is_token ? token_label(session, index) : std::to_string(index);
}

void draw_summary(PanelContext& ui, const Comparison& c) {
    const auto row = uint64_t(ui.session.view.picked_row);
    const HeadDifference d = difference_of(*c.a, c.head_a, *c.b, c.head_b, row);
    std::string text = "largest difference " + format_value(d.largest, 4) + " at " +
                       token_of(ui.session, d.row, c.b->row_tokens) + " \xe2\x86\x92 " +
                       token_of(ui.session, d.column, c.b->over_keys) + ", mean " + format_value(d.mean, 4);
    if (c.b->name == "weights")
        text += ", Jensen\xe2\x80\x93Shannon of this row " + format_value(d.jensen_shannon, 4);
    ImGui::PushTextWrapPos();
    ImGui::TextDisabled("%s", text.c_str());
    ImGui::PopTextWrapPos();
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

void colour_difference(Canvas& canvas, const Comparison& c) {
    canvas.minus = c.b;
    canvas.minus_head = c.head_b;
    // A cell masked in one of both has a difference too.
    canvas.hatch_hidden = same_cells_hidden(*c.a, c.head_a, *c.b, c.head_b);
    const double reach = difference_of(*c.a, c.head_a, *c.b, c.head_b, 0).largest;
    canvas.colouring = {ColourMap::blue_orange, Spread::linear, -reach, reach, 0};
}

void draw_pictures(PanelContext& ui, const Comparison& c) {
    const Session& session = ui.session;
    const float s = ui.scale;
    const ImVec2 cursor = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    const float top = cursor.y + 62 * s, height = room.y - 70 * s;
    const KeptResult* kept = session.kept();
    const auto name = [&](const char* letter, int level, uint32_t head) {
        return letter + (kept ? "level " + std::to_string(level) + ", " : std::string()) + "head " +
               std::to_string(head + 1);
    };
    const std::string name_a = name("A: ", kept ? kept->settings.level : 0, c.head_a),
                      name_b = name("B: ", session.settings().level, c.head_b);
    const ColourRange &range_a = c.a->ranges.at(c.head_a), &range_b = c.b->ranges.at(c.head_b);
    ColourRange both = range_a;
    both.low = std::min(range_a.low, range_b.low), both.high = std::max(range_a.high, range_b.high);
    if (range_b.scale == ColourScale::symmetric) both.scale = range_b.scale;
    const auto lay_out = [&](bool is_a, ImVec2 at, ImVec2 size) {
        Canvas canvas = lay_out_canvas(ui, is_a ? *c.a : *c.b, is_a ? c.head_a : c.head_b, at, size);
        if (is_a && kept) canvas.tokens = &kept->tokens;
        if (session.view.same_range) canvas.colouring = colouring_of(session.view, both);
        return canvas;
    };
    const ImVec2 first = {cursor.x + kLabelColumn * s, top};
    if (session.view.how == CompareHow::side) {
        const float width = (room.x - (2 * kLabelColumn + 16) * s) / 2;
        const ImVec2 second = {cursor.x + (2 * kLabelColumn + 16) * s + width, top};
        draw_one(ui, lay_out(true, first, {width, height}), "a", name_a.c_str(), true);
        draw_one(ui, lay_out(false, second, {width, height}), "b", name_b.c_str(), true);
        return;
    }
    Canvas canvas = lay_out(true, first, {room.x - (kLabelColumn + 16) * s, height});
    if (session.view.how == CompareHow::difference) {
        colour_difference(canvas, c);
        draw_one(ui, canvas, "difference", (name_a + " minus " + name_b).c_str(), true);
        return;
    }
    // B's cells stand where they are, not mirrored: a causal B shows nothing.
    draw_one(ui, canvas, "halves", (name_a + " on and below the diagonal, " + name_b + " above").c_str(),
             true);
    Canvas upper = lay_out(false, canvas.at, canvas.size);
    upper.upper_only = true;
    canvas_cells(ui, upper);
    canvas_digits(ui, upper);
}

}  // namespace

void draw_compare_panel(PanelContext& ui) {
    Session& session = ui.session;
    if (!session.complete()) {
        ImGui::TextDisabled("computing, %.0f%%", 100 * session.run().progress());
        return;
    }
    draw_keeping(ui);
    if (const Comparison c = comparison_of(session); c.why_not.empty()) choose_heads(ui, c);
    // Chosen anew, swapped or let go by the clicks above.
    const Comparison c = comparison_of(session);
    if (!c.why_not.empty()) {
        ImGui::PushTextWrapPos();
        ImGui::TextDisabled("%s", c.why_not.c_str());
        ImGui::PopTextWrapPos();
        return;
    }
    draw_summary(ui, c);
    draw_pictures(ui, c);
}

}  // namespace fovea::visualizer

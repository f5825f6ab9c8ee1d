// Two heads side by side that share zoom, place and pick; or as halves of one matrix; or their difference. A
// is a head of the present result, or of a kept one.
#include "document/comparison.hpp"
#include "panels/canvas.hpp"
#include "texts/texts.hpp"
#include "theme/theme.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fovea::visualizer {
namespace {

constexpr float kLegend = 84;  // room of the color bars

void choose_head(PanelContext& ui, const char* label, uint64_t count, uint32_t& head) {
    ImGui::SetNextItemWidth(96 * ui.scale);
    if (!ImGui::BeginCombo(label, fill(texts().compare.head, {std::to_string(head)}).c_str())) return;
    for (uint32_t i = 0; i < count; ++i)
        if (ImGui::Selectable(fill(texts().compare.head, {std::to_string(i)}).c_str(), i == head)) head = i;
    ImGui::EndCombo();
}

void choose_heads(PanelContext& ui, const Comparison& c) {
    Workbench& bench = ui.bench;
    ViewState& view = bench.view;
    uint32_t a = c.head_a, b = c.head_b;
    choose_head(ui, "A", c.a->heads, a);
    ImGui::SameLine(0, 12 * ui.scale);
    choose_head(ui, "B", c.b->heads, b);
    ImGui::SameLine(0, 12 * ui.scale);
    const bool swap = ImGui::Button(texts().compare.swap);
    if (bench.past.kept()) {
        bench.past.show_kept_head(a);
        view.head = b;
        if (swap) bench.past.swap();
    } else {
        view.head = swap ? b : a;
        view.compared_head = int(swap ? a : b);
    }
    int how = int(view.how);
    const char* const how_names[] = {texts().compare.side, texts().compare.halves,
                                     texts().compare.difference};
    same_line_if_room(button_width(how_names[0]), 20 * ui.scale);
    if (tabs(ui, how_names, how)) view.how = CompareHow(how);
    if (view.how == CompareHow::difference) return;
    const float right = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x;
    if (right + 140 * ui.scale < ImGui::GetWindowWidth()) ImGui::SameLine(0, 16 * ui.scale);
    check_box(ui, texts().compare.same_range, &view.same_range);
    tooltip(texts().compare.same_range_hint);
}

void draw_keeping(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const ImVec2 below = ImGui::GetCursorPos();
    // Next to the tabs if there is room.
    const bool beside = ImGui::GetWindowWidth() >= 520 * ui.scale && ui.controls_top >= 0;
    if (beside) ImGui::SetCursorPos({ImGui::GetWindowWidth() - 96 * ui.scale, 12 * ui.scale});
    if (ImGui::Button(texts().compare.save)) bench.past.keep();
    tooltip(texts().compare.save_hint);
    if (beside) ImGui::SetCursorPos(below);
    if (!bench.past.kept()) return;
    if (!beside) ImGui::SameLine(0, 10 * ui.scale);
    const bool drop = ImGui::Button(texts().compare.clear);
    ImGui::SameLine(0, 10 * ui.scale);
    soft_text(fill(texts().compare.saved, {in_drawing_order(bench.past.kept()->result->title())}));
    if (drop) bench.past.drop_kept();
}

std::string token_of(const Workbench& bench, uint64_t index, bool is_token) {
    return is_token ? drawn_name(bench, index) : std::to_string(index);
}

void draw_summary(PanelContext& ui, const Comparison& c) {
    const auto row = uint64_t(ui.bench.view.picked_row);
    const HeadDifference d = difference_of(*c.a, c.head_a, *c.b, c.head_b, row);
    const auto column = uint64_t(ui.bench.view.picked_column);
    const float a = c.a->head_values(c.head_a)[row * c.a->columns + column],
                b = c.b->head_values(c.head_b)[row * c.b->columns + column];
    std::vector<std::string> parts = {
        fill(texts().compare.picked,
             {c.b->name, format_value(a, 4), format_value(b, 4), format_value(a - b, 4)}),
        fill(texts().compare.largest, {format_value(d.largest, 4), token_of(ui.bench, d.row, c.b->row_tokens),
                                       token_of(ui.bench, d.column, c.b->over_keys)}),
        fill(texts().compare.mean, {format_value(d.mean, 4)})};
    if (c.b->id == StageId::weights)
        parts.push_back(fill(texts().compare.divergence, {format_value(d.jensen_shannon, 4)}));
    if (ImGui::GetContentRegionAvail().y < 300 * ui.scale) parts.resize(1);  // the matrices come first
    // Draws each part as a unit: Dear ImGui would break a line after a decimal point.
    const float gap = 16 * ui.scale;
    for (size_t i = 0; i < parts.size(); ++i) {
        const float end = ImGui::GetItemRectMax().x + gap + ImGui::CalcTextSize(parts[i].c_str()).x;
        if (i > 0 && end <= ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x) ImGui::SameLine(0, gap);
        soft_text(parts[i]);
    }
}

struct Legend {
    const char* title;
    Coloring coloring;
    Clamped clamped;
};

// One bar, or A's above B's, at the right end.
void draw_legends(PanelContext& ui, std::initializer_list<Legend> legends, float top, float height) {
    const float s = ui.scale, small = ui.fonts.small->FontSize, title = small + 6 * s;
    const float x = ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x - (kLegend - 14) * s;
    const float share = height / float(legends.size());
    const float bar = std::clamp(share - title - 16 * s, 40 * s, 320 * s);
    float y = top + (share - bar - title) / 2;
    for (const Legend& legend : legends) {
        ImGui::GetWindowDrawList()->AddText(ui.fonts.small, small, {x, y}, ui.colors().text_soft,
                                            legend.title);
        draw_color_bar(ui, legend.coloring, {x, y + title, 12 * s, bar}, 3, legend.clamped);
        y += share;
    }
}

void draw_one(PanelContext& ui, Canvas canvas, const char* id, const char* title, bool labels) {
    canvas_mouse(ui, canvas, id);
    canvas_cells(ui, canvas);
    canvas_digits(ui, canvas);
    if (labels) canvas_labels(ui, canvas);
    canvas_minimap(ui, canvas);
    // Above the cells, further left where it would else not end within the panel; smaller where it is as wide
    // as that.
    ImFont* font = ui.fonts.strong;
    const float begin = canvas.at.x - kLabelColumn * ui.scale;
    const float room =
        (ui.bench.view.how == CompareHow::side ? canvas.at.x + canvas.size.x
                                               : ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x) -
        begin;
    if (text_width(font, title) > room) font = ui.fonts.small;
    const float width = text_width(font, title);
    draw_text(font,
              {std::max(std::min(std::max(canvas.origin.x, canvas.at.x), begin + room - width), begin),
               std::max(canvas.origin.y, canvas.at.y) - (canvas.slanted ? 96 : 56) * ui.scale},
              ui.colors().text, title);
}

void color_difference(Canvas& canvas, const Comparison& c) {
    canvas.minus = c.b;
    canvas.minus_head = c.head_b;
    // A cell masked in one of both has a difference too.
    canvas.hatch_hidden = same_cells_hidden(*c.a, c.head_a, *c.b, c.head_b);
    const double reach = difference_of(*c.a, c.head_a, *c.b, c.head_b, 0).largest;
    canvas.coloring = {Colormap::blue_orange, Spread::linear, -reach, reach, 0};
}

void draw_both_legends(PanelContext& ui, const Canvas& a, const Canvas& b, float top, float height) {
    const auto of = [](const Canvas& c) { return clamped_by(c.coloring, c.stage->head_values(c.head)); };
    Clamped both = of(a);
    const Clamped of_b = of(b);
    if (!ui.bench.view.same_range)
        return draw_legends(ui, {{"A", a.coloring, both}, {"B", b.coloring, of_b}}, top, height);
    both.above = both.above || of_b.above, both.below = both.below || of_b.below;
    draw_legends(ui, {{texts().compare.both, a.coloring, both}}, top, height);
}

void draw_pictures(PanelContext& ui, const Comparison& c) {
    const Workbench& bench = ui.bench;
    const float s = ui.scale;
    const ImVec2 cursor = ImGui::GetCursorScreenPos(),
                 room = {ImGui::GetContentRegionAvail().x - kLegend * s, ImGui::GetContentRegionAvail().y};
    const ImVec2 each = {bench.view.how == CompareHow::side ? (room.x - (2 * kLabelColumn + 16) * s) / 2
                                                            : room.x - (kLabelColumn + 16) * s,
                         room.y - 70 * s};
    const float labels = (label_row(ui, *c.a, each) - kLabelRow) * s;
    const float top = cursor.y + 62 * s + labels, height = room.y - 70 * s - labels;
    const KeptResult* kept = bench.past.kept();
    // The names say what differs.
    const auto name = [&](const char* letter, uint32_t head, const std::string& differing) {
        const bool says_head = differing.empty() || c.head_a != c.head_b;
        return letter + (says_head ? fill(texts().compare.head, {std::to_string(head)}) : std::string()) +
               (says_head && !differing.empty() ? ", " : "") + differing;
    };
    const auto [differs_a, differs_b] =
        kept ? differing_settings(kept->result->settings, bench.document.settings())
             : std::pair<std::string, std::string>();
    const std::string name_a = name("A: ", c.head_a, differs_a), name_b = name("B: ", c.head_b, differs_b);
    const ColorRange &range_a = c.a->ranges.at(c.head_a), &range_b = c.b->ranges.at(c.head_b);
    ColorRange both = range_a;
    both.low = std::min(range_a.low, range_b.low), both.high = std::max(range_a.high, range_b.high);
    if (range_b.scale == ColorScale::symmetric) both.scale = range_b.scale;
    const auto lay_out = [&](bool is_a, ImVec2 at, ImVec2 size) {
        Canvas canvas = lay_out_canvas(ui, is_a ? *c.a : *c.b, is_a ? c.head_a : c.head_b, at, size);
        canvas.slanted = labels > 0;
        if (is_a && kept) canvas.tokens = &kept->result->tokens();
        if (bench.view.same_range) canvas.coloring = coloring_of(bench.view.colors, both);
        return canvas;
    };
    const ImVec2 first = {cursor.x + kLabelColumn * s, top};
    if (bench.view.how == CompareHow::side) {
        const float width = (room.x - (2 * kLabelColumn + 16) * s) / 2;
        const ImVec2 second = {cursor.x + (2 * kLabelColumn + 16) * s + width, top};
        const Canvas a = lay_out(true, first, {width, height}), b = lay_out(false, second, {width, height});
        draw_one(ui, a, "a", name_a.c_str(), true);
        draw_one(ui, b, "b", name_b.c_str(), true);
        draw_both_legends(ui, a, b, top, height);
        return;
    }
    Canvas canvas = lay_out(true, first, {room.x - (kLabelColumn + 16) * s, height});
    if (bench.view.how == CompareHow::difference) {
        color_difference(canvas, c);
        draw_one(ui, canvas, "difference", fill(texts().compare.minus, {name_a, name_b}).c_str(), true);
        draw_legends(ui, {{"A \xe2\x88\x92 B", canvas.coloring, {}}}, top, height);
        return;
    }
    // B's cells keep their places and are not mirrored: a causal B shows nothing.
    draw_one(ui, canvas, "halves", fill(texts().compare.both_halves, {name_a, name_b}).c_str(), true);
    Canvas upper = lay_out(false, canvas.at, canvas.size);
    upper.upper_only = true;
    canvas_cells(ui, upper);
    canvas_digits(ui, upper);
    draw_both_legends(ui, canvas, upper, top, height);
}

}  // namespace

void draw_compare_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (!bench.computation.complete()) {
        soft_text(
            fill(texts().matrix.computing, {format_fixed(100 * bench.computation.run().progress(), 0)}));
        return;
    }
    draw_keeping(ui);
    if (const Comparison c = comparison_of(bench); c.why_not.empty()) choose_heads(ui, c);
    // Chosen anew, swapped or let go by the clicks above.
    const Comparison c = comparison_of(bench);
    if (!c.why_not.empty()) {
        soft_paragraph(c.why_not);
        return;
    }
    draw_summary(ui, c);
    draw_pictures(ui, c);
}

}  // namespace fovea::visualizer

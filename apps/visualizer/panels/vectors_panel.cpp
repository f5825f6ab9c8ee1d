// Words, queries and keys as points of a plane. If one is dragged, the weights of the picked row follow. A
// query or key is only tried out here; dragging a word changes its vector and everything computed from it.
#include "data/session_file.hpp"
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

// Units of the layout.
constexpr float kMargin = 26, kReach = 14, kLabelGap = 8, kBarsWidth = 290, kMinPlot = 120;

// Where a place of the plane is on the screen.
struct PlotFrame {
    ImVec2 middle;
    float half;    // half of its side
    double reach;  // in the plane
    ImVec2 on_screen(std::array<double, 2> at) const {
        return {middle.x + half * float(at[0] / reach), middle.y - half * float(at[1] / reach)};
    }
    std::array<double, 2> in_plane(ImVec2 at) const {
        const auto part = [&](float value) { return std::clamp(double(value / half), -1.0, 1.0) * reach; };
        return {part(at.x - middle.x), part(middle.y - at.y)};
    }
};

bool same_point(const VectorPoint& a, const VectorPoint& b) { return a.kind == b.kind && a.token == b.token; }

bool is_picked(const Workbench& bench, const VectorPoint& point) {
    return point.kind == VectorKind::key
               ? bench.shown().stage->over_keys && int(point.token) == bench.view.picked_column
               : int(point.token) == bench.view.picked_row;
}

void move_held(Workbench& bench, std::array<double, 2> to, uint64_t gesture) {
    VectorPlot& vectors = bench.vectors;
    const VectorPoint& held = vectors.held;
    if (held.kind != VectorKind::word) return vectors.try_out(held.kind, held.token, to);
    if (!vectors.why_words_stay().empty()) return;
    const std::string edits = vectors.edits_with(bench.document.settings(), held.token, to);
    if (const Result<void> r = set_session_key(bench, "edits", edits, gesture); !r)
        bench.problems.report(r.error().field, r.error().text, true);
}

void take_back(Workbench& bench) {
    if (!bench.vectors.of_words) return bench.vectors.take_back();
    const std::string edits = bench.vectors.edits_with(bench.document.settings(), 0, {});
    if (const Result<void> r = set_session_key(bench, "edits", edits); !r)
        bench.problems.report(r.error().field, r.error().text, true);
}

// The mouse takes the nearest point within reach and moves it until it lets go.
void drag_points(PanelContext& ui, const PlotFrame& plot, const std::vector<VectorPoint>& points) {
    Workbench& bench = ui.bench;
    VectorPlot& vectors = bench.vectors;
    ImGui::SetCursorScreenPos({plot.middle.x - plot.half, plot.middle.y - plot.half});
    ImGui::InvisibleButton("plane", {2 * plot.half, 2 * plot.half});
    const ImGuiIO& io = ImGui::GetIO();
    const auto distance = [&](const VectorPoint& point) {
        const ImVec2 at = plot.on_screen(point.at);
        return std::hypot(at.x - io.MousePos.x, at.y - io.MousePos.y);
    };
    const auto nearest = std::min_element(
        points.begin(), points.end(),
        [&](const VectorPoint& a, const VectorPoint& b) { return distance(a) < distance(b); });
    const bool near = nearest != points.end() && distance(*nearest) <= kReach * ui.scale;
    if (ImGui::IsItemActivated() && near) {
        vectors.held = *nearest;
        (nearest->kind == VectorKind::key ? bench.view.picked_column : bench.view.picked_row) =
            int(nearest->token);
        bench.view.pinned = true;
    }
    const bool holds = ImGui::IsItemActive() && io.MouseDownDuration[0] >= 0 &&
                       ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2);
    // The point at which the button went down, even if the mouse has left it.
    const ImVec2 begin = io.MouseClickedPos[0], at = plot.on_screen(vectors.held.at);
    const bool began_there = std::hypot(at.x - begin.x, at.y - begin.y) <= kReach * ui.scale;
    if (holds && began_there) move_held(bench, plot.in_plane(io.MousePos), ImGui::GetID("plane"));
    if (!ImGui::IsItemHovered() || ImGui::IsItemActive() || !near) return;
    const char* const kinds[] = {texts().vectors.word_at, texts().vectors.query_at, texts().vectors.key_at};
    ImGui::SetTooltip("%s", fill(kinds[int(nearest->kind)],
                                 {drawn_name(bench, nearest->token), format_fixed(nearest->at[0], 3),
                                  format_fixed(nearest->at[1], 3)})
                                .c_str());
}

void draw_plot(PanelContext& ui, const PlotFrame& plot, const std::vector<VectorPoint>& points,
               std::span<const float> weights) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    const float s = ui.scale;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ImVec2 low{plot.middle.x - plot.half, plot.middle.y - plot.half},
        high{plot.middle.x + plot.half, plot.middle.y + plot.half};
    draw.AddRectFilled(low, high, colors.ground, 4 * s);
    draw.PushClipRect(low, high, true);
    const ImVec2 origin = plot.on_screen({0, 0});
    draw.AddLine({low.x, origin.y}, {high.x, origin.y}, colors.line, s);
    draw.AddLine({origin.x, low.y}, {origin.x, high.y}, colors.line, s);
    const auto weight_of = [&](const VectorPoint& p) {
        return p.kind == VectorKind::key && p.token < weights.size()
                   ? std::clamp(weights[p.token], 0.0f, 1.0f)
                   : 0.0f;
    };
    // Arrows of keys, as thick as their weights, and of the picked query: a score is their product.
    for (const VectorPoint& p : points) {
        if (p.kind == VectorKind::key)
            draw.AddLine(origin, plot.on_screen(p.at), colors.mark, (1 + 5 * weight_of(p)) * s);
    }
    for (const VectorPoint& p : points)
        if (p.kind == VectorKind::query && is_picked(bench, p))
            draw.AddLine(origin, plot.on_screen(p.at), colors.accent, 3 * s);
    struct Label {
        float x, y, width;
    };
    std::vector<Label> taken;
    std::vector<std::string> named;
    ImFont* const font = ui.fonts.small;
    // No label overlaps the ring of another query.
    for (const VectorPoint& p : points)
        if (p.kind == VectorKind::query && !is_picked(bench, p))
            taken.push_back(
                {plot.on_screen(p.at).x - 5 * s, plot.on_screen(p.at).y - font->FontSize / 2, 10 * s});
    for (const VectorPoint& p : points) {
        const ImVec2 at = plot.on_screen(p.at);
        const bool picked = is_picked(bench, p), query = p.kind == VectorKind::query;
        const ImU32 ink = picked ? colors.accent : query ? colors.text_soft : colors.text;
        if (query && !picked) {
            draw.AddCircle(at, 4 * s, colors.text_soft, 0, 1.5f * s);
            continue;  // they have the labels of the keys
        }
        draw.AddCircleFilled(at, (query ? 6 : 4 + 5 * weight_of(p)) * s, ink);
        if (p.tried) draw.AddCircle(at, 10 * s, colors.accent, 0, 1.5f * s);
        const std::string name =
            query ? fill(texts().vectors.query, {drawn_label(bench, p.token)}) : drawn_label(bench, p.token);
        const std::string place = name + format_fixed(double(at.x), 0) + " " + format_fixed(double(at.y), 0);
        if (std::find(named.begin(), named.end(), place) != named.end())
            continue;  // equal words have one label
        named.push_back(place);
        // The first place next to its point where a label overlaps no other.
        const float width = text_width(font, name), line = font->FontSize;
        float x = at.x + kLabelGap * s, y = at.y - line / 2;
        if (x + width > high.x) x = at.x - kLabelGap * s - width;
        const auto is_free = [&](float top) {
            return std::all_of(taken.begin(), taken.end(), [&](const Label& other) {
                return std::abs(other.y - top) >= line || other.x > x + width || x > other.x + other.width;
            });
        };
        for (const float by : {0.0f, -line, line, -2 * line, 2 * line, -3 * line, 3 * line, -4 * line,
                               4 * line, -5 * line, 5 * line})
            if (is_free(y + by)) {
                y += by;
                break;
            }
        taken.push_back({x, y, width});
        draw.AddText(font, line, {x, y}, ink, name.c_str());
    }
    draw.PopClipRect();
}

// The row's weights, and as faint bars what they are without what was tried out.
void draw_weights(PanelContext& ui, std::span<const float> weights, std::span<const float> before) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    const float s = ui.scale, width = ImGui::GetContentRegionAvail().x,
                line = ImGui::GetTextLineHeight() + 6 * s;
    const float label = 0.34f * width, number = 56 * s, room = std::max(width - label - number, 10.0f);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    for (size_t key = 0; key < weights.size(); ++key) {
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImGui::Dummy({width, line});
        const auto bar = [&](float weight, ImU32 color, float inset) {
            draw.AddRectFilled(
                {at.x + label, at.y + inset},
                {at.x + label + std::max(room * std::clamp(weight, 0.0f, 1.0f), s), at.y + line - inset},
                color, 2 * s);
        };
        bar(weights[key], int(key) == bench.view.picked_column ? colors.accent : colors.mark, 4 * s);
        if (bench.vectors.tries() && key < before.size()) {
            const float x = at.x + label + room * std::clamp(before[key], 0.0f, 1.0f);
            draw.AddLine({x, at.y + s}, {x, at.y + line - s}, colors.text, 2 * s);
        }
        const ImVec4 clip{at.x, at.y, at.x + label - 6 * s, at.y + line};
        draw.AddText(ui.fonts.body, ui.fonts.body->FontSize, {at.x, at.y + 3 * s}, colors.text,
                     drawn_name(bench, key).c_str(), nullptr, 0, &clip);
        draw_text(ui.fonts.mono, {at.x + label + room + 6 * s, at.y + 4 * s}, colors.text,
                  format_fixed(weights[key], 4));
    }
}

// The held point's coordinates, which the keyboard can change, too.
void draw_held(PanelContext& ui, const std::vector<VectorPoint>& points) {
    Workbench& bench = ui.bench;
    VectorPlot& vectors = bench.vectors;
    // Until something is moved it is the picked token's.
    if (!vectors.tries() && vectors.held.kind != VectorKind::key && !ImGui::IsAnyItemActive())
        vectors.held.token = uint32_t(std::max(bench.view.picked_row, 0));
    const auto held = std::find_if(points.begin(), points.end(),
                                   [&](const VectorPoint& p) { return same_point(p, vectors.held); });
    vectors.held = held != points.end() ? *held : points.front();
    const std::string whose = fill(vectors.held.kind == VectorKind::query ? texts().vectors.query
                                   : vectors.held.kind == VectorKind::key ? texts().vectors.key
                                                                          : texts().vectors.word,
                                   {drawn_name(bench, vectors.held.token)});
    ImGui::TextUnformatted(whose.c_str());
    float place[2] = {float(vectors.held.at[0]), float(vectors.held.at[1])};
    ImGui::SetNextItemWidth(-1);
    const auto half = float(vectors.reach());
    ImGui::BeginDisabled(vectors.of_words && !vectors.why_words_stay().empty());
    if (ImGui::DragFloat2("##place", place, 0.01f * half, 0, 0, "%.3f"))
        move_held(bench, {double(place[0]), double(place[1])}, ImGui::GetID("##place"));
    ImGui::EndDisabled();
    tooltip(texts().vectors.place_hint);
}

std::string about_text(const Workbench& bench) {
    const VectorPlot& vectors = bench.vectors;
    const uint64_t width = vectors.width();
    const std::string share = format_fixed(100 * vectors.plane().share, 0) + " %";
    if (vectors.of_words) {
        const std::string stay = vectors.why_words_stay();
        return fill(texts().vectors.about_words, {std::to_string(width), share}) + " " +
               (stay.empty() ? texts().vectors.drag_words : fill(texts().vectors.words_stay, {stay}));
    }
    const std::string what = width == 2 ? texts().vectors.two_numbers
                                        : fill(texts().vectors.many_numbers, {std::to_string(width), share});
    return what + " " + texts().vectors.about;
}

}  // namespace

void draw_vectors_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (!bench.computation.measured()) return soft_text("computing");
    const AttentionResult& result = *bench.computation.result();
    VectorPlot& vectors = bench.vectors;
    vectors.follow(result, bench.view.head);
    if (!vectors.why_not().empty()) return soft_text(vectors.why_not());
    const float s = ui.scale;
    if (vectors.has_words()) {
        const char* const of_names[] = {texts().vectors.queries_and_keys, texts().vectors.words};
        int of = vectors.of_words;
        if (tabs(ui, of_names, of))
            vectors.of_words = of == 1,
            vectors.held = {of == 1 ? VectorKind::word : VectorKind::query, uint32_t(bench.view.picked_row)};
    }
    ImGui::PushFont(ui.fonts.small);
    soft_paragraph(about_text(bench));
    ImGui::PopFont();
    std::vector<VectorPoint> points = vectors.points();
    // Draws picked points on top of the others.
    std::stable_partition(points.begin(), points.end(),
                          [&](const VectorPoint& p) { return !is_picked(bench, p); });
    // The picked row, as it is and as it would be.
    const Stage* stage = result.find_stage(StageId::dropped);
    if (!stage) stage = result.find_stage(StageId::weights);
    const auto row = uint64_t(std::clamp(bench.view.picked_row, 0, int(stage->rows) - 1));
    const uint32_t head = std::min(bench.view.head, uint32_t(stage->heads) - 1);
    const std::span<const float> before =
        stage->head_values(head).subspan(row * stage->columns, stage->columns);
    std::span<const float> weights = before;
    if (vectors.tries()) {
        const Result<F32Tensor>& tried = vectors.tried_weights();
        if (!tried) return soft_text(tried.error().text);
        weights = tried->row(row);
    }
    const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    const float bars = std::min(kBarsWidth * s, room.x * 0.42f), gap = 14 * s;
    const float side = std::max(std::min(room.x - bars - gap, room.y), kMinPlot * s);
    const PlotFrame plot{{at.x + side / 2, at.y + side / 2}, side / 2, 1.2 * vectors.reach()};
    draw_plot(ui, plot, points, weights);
    drag_points(ui, plot, points);
    ImGui::SetCursorScreenPos({at.x + side + gap, at.y});
    ImGui::BeginChild("row", {std::max(room.x - side - gap, 40.0f), room.y});
    draw_held(ui, points);
    const std::vector<CellEdit>& edits = bench.document.settings().edits;
    const bool moved =
        std::any_of(edits.begin(), edits.end(), [](const CellEdit& e) { return e.stage == StageId::inputs; });
    ImGui::BeginDisabled(vectors.of_words ? !moved : !vectors.tries());
    if (ImGui::Button(texts().vectors.reset)) take_back(bench);
    ImGui::EndDisabled();
    ImGui::Dummy({0, 4 * s});
    soft_text(fill(vectors.tries() ? texts().vectors.weights_tried : texts().vectors.weights,
                   {drawn_name(bench, row)}));
    draw_weights(ui, weights, before);
    ImGui::EndChild();
}

}  // namespace fovea::visualizer

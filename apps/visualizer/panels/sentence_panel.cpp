// The first view: the text in large type with arcs from the picked token. A line says what the head does, and
// its matrix has the stripe that shows it.
#include "document/imported_file.hpp"
#include "panels/canvas.hpp"
#include "panels/head_thumbnail.hpp"
#include "panels/panel_table.hpp"
#include "texts/texts.hpp"
#include "theme/theme.hpp"

#include <fovea/inspect/head_role.hpp>
#include <fovea/model/learned.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea::visualizer {
namespace {

constexpr float kMargin = 22, kArcs = 128, kSide = 116, kLeastSide = 64, kCaption = 320,
                kWithCaption = 900;                     // units of the layout
constexpr float kLeastArc = 0.03f, kLeastShare = 0.1f;  // weights that have an arc, and a number on it
constexpr size_t kMaxHeads = 4;

// The tokens of the text that are in the line, with their places on the screen.
struct Words {
    ImFont* font = nullptr;
    uint64_t first = 0;
    std::vector<std::string> names;
    std::vector<float> widths, gaps, middles;  // pixels; gaps are before the first token of a word
    uint64_t end() const { return first + names.size(); }
};

bool is_special(const std::string& name) {
    return name.size() > 2 && name.front() == '<' && name.back() == '>';
}

ImFont* font_of(const PanelContext& ui, const Words& words, size_t n) {
    return is_special(words.names[n]) ? ui.fonts.small : words.font;
}

// Places all tokens in the largest type, up to `largest`, in which they fit. If none does, tokens that are
// farther from the picked one are left out.
Words place_words(const PanelContext& ui, float left, float room, float largest) {
    const Workbench& bench = ui.bench;
    const uint64_t count = bench.shown_weights().stage->rows;
    Words words;
    std::vector<std::string> tokens;
    for (uint64_t n = 0; n < count; ++n) tokens.push_back(token_label(bench, n));
    const std::vector<bool> starts = word_starts(bench.document.settings().text, tokens);
    const auto measure = [&](ImFont* font) {
        words.font = font;
        words.widths.clear(), words.gaps.clear();
        float all = 0;
        for (size_t n = 0; n < words.names.size(); ++n) {
            words.widths.push_back(text_width(font_of(ui, words, n), words.names[n]));
            words.gaps.push_back(n < starts.size() && starts[n] ? 0.8f * font->FontSize : 0);
            all += words.widths.back() + 0.4f * font->FontSize + words.gaps.back();
        }
        return all;
    };
    for (uint64_t n = 0; n < count; ++n) words.names.push_back(drawn_label(bench, n));
    float all = 0;
    for (ImFont* const font : {ui.fonts.display, ui.fonts.large, ui.fonts.body})
        if (font->FontSize <= largest && (all = measure(font)) <= room) break;
    const auto last = size_t(std::clamp(bench.view.picked_row, 0, int(count) - 1));
    while (all > room && words.names.size() > 1) {
        const bool from_end = words.end() - 1 > last;
        const size_t at = from_end ? words.names.size() - 1 : 0;
        all -= words.widths[at] + 0.4f * words.font->FontSize + words.gaps[at];
        words.names.erase(words.names.begin() + ptrdiff_t(at));
        words.widths.erase(words.widths.begin() + ptrdiff_t(at));
        words.gaps.erase(words.gaps.begin() + ptrdiff_t(at));
        words.first += from_end ? 0 : 1;
    }
    const float more = std::min((room - all) / float(words.names.size()), 0.9f * words.font->FontSize);
    float x = left;
    for (size_t n = 0; n < words.widths.size(); ++n) {
        const float step = words.widths[n] + 0.4f * words.font->FontSize + std::max(more, 0.0f);
        x += words.gaps[n];
        words.middles.push_back(x + step / 2);
        x += step;
    }
    return words;
}

void pick_query(Workbench& bench, const Workbench::Weights& weights, uint64_t row) {
    const std::span<const float> values = weights.row(row);
    bench.view.picked_row = int(row);
    bench.view.picked_column = int(std::max_element(values.begin(), values.end()) - values.begin());
}

// A word picks its query while the mouse is on it; a click pins it.
void draw_words(PanelContext& ui, const Workbench::Weights& weights, const Words& words, float top) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    const float tall = words.font->FontSize + 8 * ui.scale;
    const ImVec2 moved = ImGui::GetIO().MouseDelta;
    for (size_t n = 0; n < words.names.size(); ++n) {
        const uint64_t token = words.first + n;
        const float half = words.widths[n] / 2 + 0.2f * words.font->FontSize;
        ImGui::PushID(int(token));
        ImGui::SetCursorScreenPos({words.middles[n] - half, top});
        const bool clicked = ImGui::InvisibleButton("word", {2 * half, tall});
        ImGui::PopID();
        const bool on = ImGui::IsItemHovered() && (moved.x != 0 || moved.y != 0);
        if (clicked) {
            bench.view.pinned = !(bench.view.pinned && bench.view.picked_row == int(token));
            pick_query(bench, weights, token);
        } else if (on && !bench.view.pinned) {
            pick_query(bench, weights, token);
        }
        const auto row = uint64_t(bench.view.picked_row);
        const bool asks = token == row, masked = weights.stage->hidden(weights.head, row, token);
        const bool seen = !masked && weights.row(row)[token] >= kLeastShare;
        ImFont* const font = font_of(ui, words, n);
        draw_text(font,
                  {std::floor(words.middles[n] - words.widths[n] / 2),
                   std::floor(top + words.font->Ascent - font->Ascent)},
                  asks     ? colors.accent
                  : seen   ? colors.text
                  : masked ? colors.mark
                           : colors.text_soft,
                  words.names[n]);
    }
}

void draw_arcs(const PanelContext& ui, const Workbench::Weights& weights, const Words& words, float foot,
               float tall) {
    const Palette& colors = ui.colors();
    const float s = ui.scale;
    const auto row = uint64_t(ui.bench.view.picked_row);
    if (row < words.first || row >= words.end()) return;
    const std::span<const float> values = weights.row(row);
    const float from = words.middles[row - words.first];
    for (uint64_t key = words.first; key < std::min<uint64_t>(words.end(), values.size()); ++key) {
        const float weight = std::min(values[key], 1.0f);
        if (!(weight >= kLeastArc)) continue;
        const float top =
            draw_arc(from, words.middles[key - words.first], foot, tall - 24 * s, (1 + 7 * weight) * s,
                     (colors.accent & 0x00ffffff) | ImU32(70 + 185 * weight) << 24, 12 * s);
        if (weight < kLeastShare) continue;
        ImFont* const font = weight >= 0.5f ? ui.fonts.strong : ui.fonts.small;
        const std::string share = format_fixed(100 * double(weight), 0) + " %";
        draw_text(font,
                  {(from + words.middles[key - words.first] - text_width(font, share)) / 2,
                   top - font->FontSize - 5 * s},
                  weight >= 0.5f ? colors.accent : colors.text_soft, share);
    }
}

// "induction"; of a model without labels by the scores of the head on this text.
std::string label_of(Workbench& bench) {
    const Settings& s = bench.document.settings();
    const HeadPlace place{s.mapping.layer, bench.view.head};
    if (const HeadGrid* const grid = bench.head_grid())
        for (const GridLayer& layer : grid->layers())
            for (const GridHead& head : layer.heads)
                if (head.layer == place.layer && head.head == place.head) return job_of(s, head);
    return head_label(s, place);
}

struct About {
    std::string line, note, stripe;
};

// Says what the head does, or what the level is about, whose weights come from a seed.
About about(Workbench& bench) {
    const Settings& s = bench.document.settings();
    if (!shows_model(s)) {
        if (reads_tensors(s)) return {file_title(bench), "", ""};
        return {level_text(s.level).title, fill(texts().sentence.of_level, {level_name(s.level)}), ""};
    }
    const HeadRole role = head_role(label_of(bench), s.task);
    const std::string head = head_name(s.mapping.layer, bench.view.head);
    return {role.sentence.empty() ? texts().sentence.no_role : role.sentence,
            s.model ? fill(texts().sentence.of_model, {head, s.model->name})
                    : fill(texts().sentence.of_task, {head, in_a_sentence(learned_of(s).title)}),
            role.stripe};
}

// A frame along the stripe and a line from its end to what it says, right of the matrix.
void draw_stripe(const PanelContext& ui, const Canvas& c, const WeightStripe& stripe, const std::string& text,
                 ImVec2 at) {
    const float s = ui.scale, cell = c.cell_width;
    const ImU32 color = ui.colors().warning;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const auto middle = [&](uint32_t n) {
        return ImVec2{c.origin.x + (float(int(stripe.column) + int(n) * stripe.step) + 0.5f) * cell,
                      c.origin.y + (float(stripe.row + n) + 0.5f) * cell};
    };
    const ImVec2 from = middle(0), to = middle(stripe.length - 1);
    const float angle = std::atan2(to.y - from.y, to.x - from.x), radius = 0.72f * cell;
    constexpr float kHalfTurn = 3.14159265f;
    draw.PathArcTo(from, radius, angle + kHalfTurn / 2, angle + 1.5f * kHalfTurn, 16);
    draw.PathArcTo(to, radius, angle - kHalfTurn / 2, angle + kHalfTurn / 2, 16);
    draw.PathStroke(palette(Theme::dark).warning, ImDrawFlags_Closed, 2.5f * s);  // on dark cells
    // At the height of the stripe's upper end, over masked cells only.
    const ImVec2 out{from.x + radius, from.y};
    draw.AddLine(out, {at.x - 8 * s, out.y}, color, 1.5f * s);
    draw.AddText(ui.fonts.strong, ui.fonts.strong->FontSize, {at.x, out.y - ui.fonts.strong->FontSize / 2},
                 color, text.c_str());
}

// "After “a” the model expects “f”: 99.2 %"
std::string expected_text(Workbench& bench) {
    const Settings& s = bench.document.settings();
    const PromptNext* const next = shows_model(s) ? bench.next_table() : nullptr;
    if (!next || next->after.empty() || next->after.back().empty()) return "";
    const NextToken& first = next->after.back().front();
    return fill(texts().sentence.expects,
                {drawn_name(bench, uint64_t(bench.view.picked_row)), in_drawing_order(next_text(s, first.id)),
                 format_fixed(100 * double(first.probability), 0)});
}

// The matrix at the left of the room with its stripe; returns where it ends.
float draw_matrix(PanelContext& ui, const Workbench::Weights& weights, const About& of, ImVec2 at,
                  ImVec2 room) {
    Workbench& bench = ui.bench;
    const float s = ui.scale, left = kLabelColumn * s;
    bench.view.zoom = 0;
    const float side = std::min(room.y - kLabelRow * s, room.x - left);
    const float above = label_row(ui, *weights.stage, {side, side}) * s;
    Canvas canvas =
        lay_out_canvas(ui, *weights.stage, weights.head, {at.x + left, at.y + above}, {side, room.y - above});
    canvas.slanted = above > kLabelRow * s;
    canvas_mouse(ui, canvas, "cells");
    canvas_cells(ui, canvas);
    canvas_digits(ui, canvas);
    canvas_labels(ui, canvas);
    const float right = canvas.origin.x + canvas.cell_width * float(weights.stage->columns);
    const std::span<const float> values = weights.stage->head_values(weights.head);
    const std::optional<WeightStripe> stripe =
        of.stripe.empty() ? std::nullopt : longest_stripe(values, weights.stage->columns);
    if (stripe) draw_stripe(ui, canvas, *stripe, of.stripe, {right + 24 * s, at.y});
    return right;
}

// The heads of a small model that have a job; a click shows one.
void draw_named_heads(PanelContext& ui, ImVec2 at, float room, float side) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    const HeadGrid* const grid = bench.head_grid();
    if (!grid) return;
    const float step = side + 44 * ui.scale;
    float x = at.x;
    size_t drawn = 0;
    for (const GridLayer& layer : grid->layers())
        for (const GridHead& head : layer.heads) {
            const std::string label = job_of(s, head);
            const bool named = !head_role(label, s.task).sentence.empty();
            if (!named || drawn == kMaxHeads || x + side > at.x + room) continue;
            ImGui::SetCursorScreenPos({x, at.y});
            draw_grid_head(ui, layer, head, side);
            draw_text(ui.fonts.small, {x, at.y + side + 7 * ui.scale}, ui.colors().text_soft,
                      head_name(head.layer, head.head) + "  " + label);
            x += std::max(step, text_width(ui.fonts.small, head_name(0, 0) + "  " + label) + 24 * ui.scale);
            ++drawn;
        }
}

void draw_column(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    // The field, the offer of words, and the button below them.
    const float controls = 3 * ImGui::GetFrameHeightWithSpacing() + ui.fonts.small->FontSize + 22 * ui.scale;
    if (const std::string expected = expected_text(bench); !expected.empty()) {
        const bool fits = text_width(ui.fonts.large, expected) <= ImGui::GetContentRegionAvail().x;
        ImGui::PushFont(fits ? ui.fonts.large : ui.fonts.strong);
        ImGui::TextUnformatted(expected.c_str());
        ImGui::PopFont();
    } else if (!shows_model(s) && !reads_tensors(s)) {
        ImGui::PushTextWrapPos();
        ImGui::TextUnformatted(level_lead(s.level).c_str());
        ImGui::PopTextWrapPos();
    }
    ImGui::Dummy({0, 8 * ui.scale});
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float below = 34 * ui.scale, room = ImGui::GetContentRegionAvail().y - controls - below;
    if (shows_model(s) && room >= kLeastSide * ui.scale) {
        const float side = std::min(room, kSide * ui.scale);
        draw_named_heads(ui, at, ImGui::GetContentRegionAvail().x, side);
        ImGui::SetCursorScreenPos(at);
        ImGui::Dummy({0, side + below});
    }
    ImGui::PushFont(ui.fonts.small);
    soft_text(texts().sentence.own);
    ImGui::PopFont();
    draw_text_controls(ui);
    ImGui::Dummy({0, 4 * ui.scale});
    if (ImGui::Button(texts().sentence.numbers)) bench.window.centre = CentreTab::matrix;
    tooltip(texts().sentence.numbers_hint);
}

}  // namespace

std::string describe_sentence(Workbench& bench) {
    const About of = about(bench);
    const std::string expected = expected_text(bench);
    return "does: " + of.line + (expected.empty() ? "" : "; " + expected) + "\n";
}

void draw_sentence_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (!bench.computation.complete())
        return soft_text(
            fill(texts().matrix.computing, {format_fixed(100 * bench.computation.run().progress(), 0)}));
    const Workbench::Weights weights = bench.shown_weights();
    // Another stage, or queries and keys of two texts, are shown by the matrix.
    if (weights.stage != bench.shown().stage || weights.stage->rows != weights.stage->columns)
        return void(bench.window.centre = CentreTab::matrix);
    const float s = ui.scale, margin = kMargin * s;
    const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
    const Palette& colors = palette(bench.window.theme);
    const float left = corner.x + margin, width = size.x - 2 * margin;
    const bool low = size.y < 620 * s;
    float y = ImGui::GetCursorScreenPos().y + (low ? 0 : 14 * s);
    About of = about(bench);
    const bool narrow = size.x < kWithCaption * s;  // no room next to the matrix
    if (narrow) of.stripe.clear();
    ImFont* heading = ui.fonts.strong;
    for (ImFont* const font : {ui.fonts.large, ui.fonts.display})
        if (text_width(font, of.line) <= width) heading = font;
    draw_text(heading, {left, y}, colors.text, of.line);
    y += heading->FontSize + 6 * s;
    draw_text(ui.fonts.body, {left, y}, colors.text_soft, of.note);
    y += ui.fonts.body->FontSize + 4 * s;
    const Words words = place_words(ui, left, width, heading->FontSize);
    const float tall = (low ? 0.75f : 1.0f) * kArcs * s;
    draw_arcs(ui, weights, words, y + tall, tall);
    draw_words(ui, weights, words, y + tall + 4 * s);
    y += tall + words.font->FontSize + (low ? 6 : 20) * s;
    const float rest = corner.y + size.y - y - 12 * s;
    const float right = draw_matrix(ui, weights, of, {left - 12 * s, y}, {0.5f * width, rest});
    // Next to it: what the model expects, its other heads, the text to type, and where to go from here.
    const float x = std::max(right + (narrow ? margin : kCaption * s), corner.x + 0.5f * size.x);
    ImGui::SetCursorScreenPos({x, y});
    ImGui::BeginChild("about", {corner.x + size.x - x - margin, rest + 10 * s}, false,
                      ImGuiWindowFlags_NoScrollbar);
    draw_column(ui);
    ImGui::EndChild();
}

}  // namespace fovea::visualizer

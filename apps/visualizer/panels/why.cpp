// Why the picked cell has its score: the largest pairs of what wrote to the query's and to the key's row.
#include "panels/panels.hpp"
#include "texts/texts.hpp"
#include "theme/theme.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr size_t kMaxPairs = 24;

std::string short_name(const Writer& writer, bool at_query) {
    const auto& words = texts().inspector;
    const std::string layer = std::to_string(writer.layer);
    switch (writer.kind) {
        case Writer::Kind::token:
            return words.token;
        case Writer::Kind::position:
            return words.position;
        case Writer::Kind::embedding_bias:
            return words.embedding_bias;
        case Writer::Kind::head:
            return head_name(writer.layer, writer.head);
        case Writer::Kind::feed_forward:
            return fill(words.feed_forward, {layer});
        case Writer::Kind::bias:
            return fill(words.bias, {layer});
        case Writer::Kind::reader_bias:
            break;
    }
    return at_query ? words.query_bias : words.key_bias;
}

// A value at the right end of its column, on the line of body text.
void draw_value(const PanelContext& ui, const std::string& text) {
    ImGui::TableNextColumn();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::round(ui.fonts.body->Ascent - ui.fonts.mono->Ascent));
    ImGui::PushFont(ui.fonts.mono);
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(ImGui::GetContentRegionAvail().x - width, 0.0f));
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopFont();
}

// True when a head was clicked.
bool draw_writer(PanelContext& ui, const Writer& writer, bool at_query) {
    ImGui::TableNextColumn();
    const std::string name = short_name(writer, at_query);
    if (writer.kind != Writer::Kind::head) {
        ImGui::TextUnformatted(name.c_str());
        return false;
    }
    const std::string label = head_label(ui.bench.document.settings(), {writer.layer, writer.head});
    ImGui::PushStyleColor(ImGuiCol_Text, ui.colors().accent);
    ImGui::PushID(at_query);
    const bool clicked = ImGui::Selectable(name.c_str());
    ImGui::PopID();
    ImGui::PopStyleColor();
    tooltip(fill(texts().inspector.open_writer, {name, label.empty() ? "" : ", " + label}));
    return clicked;
}

void draw_row(const PanelContext& ui, const std::string& name, double value) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(name.c_str());
    draw_value(ui, format_value(float(value)));
}

// The sum of all pairs and, each by its name, the terms added to it; and the sink, which only the row's sum
// has.
void draw_score(const PanelContext& ui, const ScoreWriters& of, const Derivation& d) {
    if (!ImGui::BeginTable("score", 2, ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerH))
        return;
    ImGui::TableSetupColumn("name", ImGuiTableColumnFlags_WidthStretch);
    draw_row(ui, fill(texts().inspector.all_pairs, {std::to_string(of.writers.size())}), of.sum);
    for (const ScoreWriters::Remainder& one : of.remainders) draw_row(ui, one.name, one.value);
    draw_row(ui, "score", of.score);
    if (d.has_sink) draw_row(ui, texts().inspector.sink_apart, double(d.sink));
    ImGui::EndTable();
}

}  // namespace

void draw_why(PanelContext& ui, const Derivation& d) {
    Workbench& bench = ui.bench;
    const ScoreWriters* const of = bench.why();
    if (!of) {
        const std::string& problem = bench.computation.why_problem();
        return soft_paragraph(problem.empty() ? texts().inspector.computing : problem);
    }
    draw_score(ui, *of, d);
    const std::vector<WriterEntry> pairs = largest_entries(*of, kMaxPairs);
    soft_paragraph(fill(texts().inspector.largest_pairs,
                        {std::to_string(pairs.size()), format_count(of->matrix.size())}));
    if (!ImGui::BeginTable("pairs", 4, ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerH))
        return;
    for (const char* title : {texts().inspector.at_query, texts().inspector.at_key})
        ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_WidthStretch);
    for (const char* title : {texts().inspector.share, "score"}) ImGui::TableSetupColumn(title);
    ImGui::TableHeadersRow();
    const Writer* chosen = nullptr;
    uint64_t token = 0;
    for (size_t i = 0; i < pairs.size(); ++i) {
        ImGui::TableNextRow();
        ImGui::PushID(int(i));
        for (const bool at_query : {true, false}) {
            const Writer& writer = of->writers[at_query ? pairs[i].query_writer : pairs[i].key_writer];
            if (draw_writer(ui, writer, at_query))
                chosen = &writer, token = at_query ? of->cell.query : of->cell.key;
        }
        const double share = 100 * pairs[i].value / of->score;
        // A masked score has no shares.
        draw_value(ui, std::isfinite(of->score) && of->score != 0 ? format_fixed(share, 0) + " %" : "");
        draw_value(ui, format_value(float(pairs[i].value)));
        ImGui::PopID();
    }
    ImGui::EndTable();
    if (chosen) bench.show_writer(*chosen, token);
}

}  // namespace fovea::visualizer

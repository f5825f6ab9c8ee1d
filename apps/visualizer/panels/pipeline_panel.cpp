// The stages from tokens to contexts: formula and live shape; a click shows the tensor.
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

constexpr float kRoomForWords = 460;  // height from which the level's words are above its stages

}  // namespace

// The table's text is HTML for the page.
std::string level_lead(int level) {
    std::string plain;
    bool tag = false;
    for (const char c : level_text(level).lead) {
        if (c == '<') tag = true;
        if (!tag) plain += c;
        if (c == '>') tag = false;
    }
    return in_window_words(plain);
}

void draw_pipeline_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& settings = bench.document.settings();
    const bool from_file = settings.file && settings.mapping.kind != ImportKind::tables;
    heading(ui, "Pipeline",
            (from_file ? fill(texts().pipeline.file_layer, {std::to_string(settings.mapping.layer)})
             : shows_model(settings)
                 ? fill(texts().pipeline.layer, {std::to_string(settings.mapping.layer),
                                                 std::to_string(shown_layers(settings).size() - 1)})
                 : level_name(settings.level) + (is_plain_level(settings) ? "" : ", changed"))
                .c_str());
    if (!from_file && ImGui::GetContentRegionAvail().y > kRoomForWords * ui.scale) {
        ImGui::PushFont(ui.fonts.small);
        soft_paragraph(shows_model(settings) ? model_lead(settings) : level_lead(settings.level));
        ImGui::PopFont();
        ImGui::Dummy({0, 3 * ui.scale});
    }
    ImGui::BeginChild("stages");
    const Palette& colors = palette(bench.window.theme);
    const float line = ImGui::GetTextLineHeight();
    // Stages that the picked cell is computed from have a softer bar than its own.
    const std::vector<CellInput> inputs =
        bench.computation.complete() ? bench.picked_inputs() : std::vector<CellInput>();
    for (size_t i = 0; i < bench.computation.stages().size(); ++i) {
        const Stage& stage = bench.computation.stages()[i];
        const bool current = bench.view.stage == i;
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float width = ImGui::GetContentRegionAvail().x, height = 2 * line + 10 * ui.scale;
        ImGui::PushID(int(i));
        if (ImGui::InvisibleButton("stage", {width, height})) bench.show_stage(i);
        // A stage chosen elsewhere may be out of sight.
        const std::string in_sight = subject_name(settings) + " " + std::to_string(i) + " " + stage.name;
        if (current && bench.window.stage_in_sight != in_sight) {
            bench.window.stage_in_sight = in_sight;
            if (!ImGui::IsItemVisible() || at.y + height > ImGui::GetWindowPos().y + ImGui::GetWindowHeight())
                ImGui::SetScrollHereY(0.8f);
        }
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        if (current || ImGui::IsItemHovered())
            draw.AddRectFilled(at, {at.x + width, at.y + height}, colors.raised, 5 * ui.scale);
        if (current)
            draw.AddRectFilled(at, {at.x + 3 * ui.scale, at.y + height}, colors.accent, 2 * ui.scale);
        else if (std::any_of(inputs.begin(), inputs.end(),
                             [&](const CellInput& input) { return input.stage == &stage; }))
            draw.AddRectFilled(at, {at.x + 3 * ui.scale, at.y + height}, colors.mark, 2 * ui.scale);
        const std::string shape = stage.heads > 1
                                      ? format_shape(Shape{stage.heads, stage.rows, stage.columns})
                                      : format_shape(Shape{stage.rows, stage.columns});
        const float x = at.x + 12 * ui.scale, y = at.y + 4 * ui.scale;
        draw_text(ui.fonts.body, {x, y}, colors.text, stage.name);
        const float shape_width = text_width(ui.fonts.small, shape);
        // Whole or not at all: it is in the matrix's own size, too.
        if (text_width(ui.fonts.body, stage.name) + shape_width + 34 * ui.scale <= width)
            draw_text(ui.fonts.small, {at.x + width - shape_width - 10 * ui.scale, y + 2 * ui.scale},
                      colors.text_soft, shape);
        draw_text(ui.fonts.small, {x, y + line + 2 * ui.scale}, colors.text_soft, stage.formula);
        if (stage.stats && (stage.stats->nan > 0 || stage.stats->infinite > 0))
            draw.AddCircleFilled({at.x + width - 6 * ui.scale, at.y + height / 2}, 3 * ui.scale,
                                 colors.warning);
        if (ImGui::IsItemHovered() && stage.stats) {
            const StageStats& stats = *stage.stats;
            ImGui::SetTooltip(
                "%s",
                fill(texts().pipeline.stage_hint,
                     {stage.name, format_number(stats.low, 5), format_number(stats.mean, 5),
                      format_number(stats.high, 5), std::to_string(stats.hidden), std::to_string(stats.nan),
                      std::to_string(stats.infinite), format_bytes(stage.buffer->size_bytes())})
                    .c_str());
        }
        ImGui::PopID();
    }
    ImGui::EndChild();
}

}  // namespace fovea::visualizer

// Errors and warnings: files rejected, changes rejected, values that cannot be right.
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <algorithm>

namespace fovea::visualizer {

void draw_problems_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (bench.problems.empty()) {
        // With dropout or sinks the weights have another sum.
        const Stage* weights = bench.computation.find_stage(StageId::weights);
        const bool others = bench.document.settings().dropout_p > 0 ||
                            (weights && weights->formula.find("sink") != std::string::npos);
        soft_text(others ? texts().problems.none : texts().problems.none_and_sums);
        return;
    }
    if (ImGui::SmallButton(texts().problems.clear)) {
        bench.problems.clear();
        return;
    }
    const Palette& colors = palette(bench.window.theme);
    // Aligns the texts in a column next to their subjects, for any length of those.
    float widest = 0;
    for (const Problem& problem : bench.problems)
        widest = std::max(widest, ImGui::CalcTextSize(problem.where.c_str()).x);
    widest = std::min(widest, 220 * ui.scale);
    for (size_t i = bench.problems.size(); i-- > 0;) {
        const Problem& problem = bench.problems[i];
        ImGui::PushID(int(i));
        ImGui::PushStyleColor(ImGuiCol_Text, problem.error ? colors.warning : colors.text_soft);
        const bool clicked = ImGui::Selectable((problem.where + "##where").c_str(), false, 0, {widest, 0});
        ImGui::PopStyleColor();
        for (size_t stage = 0; clicked && stage < bench.computation.stages().size(); ++stage)
            if (bench.computation.stages()[stage].name == problem.where) bench.show_stage(stage);
        ImGui::SameLine(ImGui::GetCursorStartPos().x + widest + 16 * ui.scale);
        ImGui::PushTextWrapPos();
        ImGui::TextUnformatted(problem.text.c_str());
        ImGui::PopTextWrapPos();
        ImGui::PopID();
    }
}

}  // namespace fovea::visualizer

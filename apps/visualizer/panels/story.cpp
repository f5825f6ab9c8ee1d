#include "panels/panels.hpp"

#include "data/session_file.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr float kWidth = 420;

// The steps of a level or of a model that learned a task, read once. What a file shows, a published model or
// one that was trained here has none.
const std::vector<StoryStep>& steps_of(const Settings& s) {
    static std::map<std::pair<int, std::string>, std::vector<StoryStep>> known;
    static const std::vector<StoryStep> kNone;
    if (s.file || s.model || s.learned) return kNone;
    const std::pair<int, std::string> key = {s.task.empty() ? s.level : 0, s.task};
    const auto at = known.find(key);
    return at != known.end() ? at->second : known.emplace(key, story(s.level, s.task)).first->second;
}

// The step that the settings name; null: none.
const StoryStep* step_of(const Settings& s) {
    const std::vector<StoryStep>& all = steps_of(s);
    return s.step >= 1 && s.step <= all.size() ? &all[s.step - 1] : nullptr;
}

// By what a session file would hold now.
bool is_done(const Workbench& bench, const StoryStep& step) {
    const Result<ReadSession> now = fovea::read_session(session_text(bench, "."));
    return now && step.done(now->session);
}

void show_step(Workbench& bench, size_t number) {
    const StoryStep& step = steps_of(bench.document.settings())[number - 1];
    Session shown = step.shown;
    shown.step = uint32_t(number);
    if (const Result<void> r = read_session(bench, write_session(shown), "."); !r)
        return bench.problems.report("story", r.error().text, true);
    bench.window.centre = CentreTab::matrix;
    bench.window.locked_tab = -1;
    bench.view.marked = CellRect{int(step.mark[0]), int(step.mark[2]), int(step.mark[1]), int(step.mark[3])};
}

}  // namespace

void step_story(Workbench& bench, int by) {
    const Settings& s = bench.document.settings();
    const std::vector<StoryStep>& all = steps_of(s);
    if (all.empty()) return bench.window.tell(texts().story.none);
    const int next = s.step == 0 ? 1 : int(s.step) + by;
    if (next < 1) return;
    next > int(all.size()) ? end_story(bench) : show_step(bench, size_t(next));
}

void end_story(Workbench& bench) {
    Settings next = bench.document.settings();
    next.step = 0;
    bench.document.change(next);
    bench.view.marked.reset();
}

void draw_story(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const StoryStep* const step = step_of(bench.document.settings());
    if (!step || bench.window.dialog != Dialog::none || !bench.computation.ready()) return;
    const Palette& colors = palette(bench.window.theme);
    const float s = ui.scale;
    const ImVec2 screen = ImGui::GetIO().DisplaySize;
    const size_t count = steps_of(bench.document.settings()).size();
    const bool done = is_done(bench, *step);
    ImGui::SetNextWindowSize({std::min(kWidth * s, screen.x - 16 * s), 0});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 8 * s);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, std::max(s, 1.0f));
    ImGui::PushStyleColor(ImGuiCol_WindowBg, colors.raised);
    ImGui::PushStyleColor(ImGuiCol_Border, done ? colors.accent : colors.mark);
    ImGui::Begin("story", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_AlwaysAutoResize);
    // In the lower part of the middle, where the strip of heads is.
    const ImVec2 size = ImGui::GetWindowSize();
    ImGui::SetWindowPos({std::clamp(ui.centre.x + (ui.centre.width - size.x) / 2, 8 * s,
                                    std::max(screen.x - size.x - 8 * s, 8 * s)),
                         std::max(screen.y - size.y - 40 * s, 8 * s)});
    ImGui::PushFont(ui.fonts.strong);
    ImGui::Text("%u of %zu  %s", bench.document.settings().step, count, step->title.c_str());
    ImGui::PopFont();
    ImGui::PushTextWrapPos(size.x - 14 * s);
    ImGui::TextUnformatted(step->text.c_str());
    colored_text(done ? colors.text_soft : colors.text, fill(texts().story.instruction, {step->instruction}));
    if (done) {
        colored_text(colors.accent, fill(texts().story.sight, {step->sight}));
    }
    ImGui::PopTextWrapPos();
    ImGui::Dummy({0, 2 * s});
    if (ImGui::Button(texts().story.back)) step_story(bench, -1);
    tooltip("Shift+F3");
    ImGui::SameLine(0, 6 * s);
    if (ImGui::Button(texts().story.next)) step_story(bench, 1);
    tooltip("F3");
    ImGui::SameLine(0, 6 * s);
    if (ImGui::Button(texts().story.end)) end_story(bench);
    tooltip("Ctrl+F3");
    ImGui::End();
    ImGui::PopStyleColor(2);
    ImGui::PopStyleVar(2);
}

std::string describe_story(const Workbench& bench) {
    const StoryStep* const step = step_of(bench.document.settings());
    if (!step) return "";
    const bool done = is_done(bench, *step);
    return fill(done ? texts().story.said_done : texts().story.said,
                {std::to_string(bench.document.settings().step),
                 std::to_string(steps_of(bench.document.settings()).size()), step->title,
                 done ? step->sight : step->instruction});
}

}  // namespace fovea::visualizer

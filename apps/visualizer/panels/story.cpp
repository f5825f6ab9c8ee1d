#include "panels/panels.hpp"

#include "data/session_file.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace fovea::visualizer {
namespace {

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

std::string in_window_words(std::string text) {
    const auto replace = [&text](const Texts::Story::Name& name) {
        const std::string_view page = name.page;
        const std::string_view window = name.window;
        for (size_t at = text.find(page); at != std::string::npos; at = text.find(page, at + window.size()))
            text.replace(at, page.size(), window);
    };
    for (const Texts::Story::Name& name : texts().story.names) replace(name);
    return text;
}

bool draw_walk_button(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& s = bench.document.settings();
    if (steps_of(s).empty() || step_of(s)) return false;
    if (ImGui::Button(texts().story.walk)) step_story(bench, 1);
    tooltip(texts().story.walk_hint);
    return true;
}

namespace {

// The lines of a card, from the top.
struct CardText {
    std::string text, instruction, sight;
};
CardText card_of(const StoryStep& step) {
    return {in_window_words(step.text), fill(texts().story.instruction, {in_window_words(step.instruction)}),
            fill(texts().story.sight, {in_window_words(step.sight)})};
}

}  // namespace

float story_height(const PanelContext& ui, float width) {
    const StoryStep* const step = step_of(ui.bench.document.settings());
    if (!step || !ui.bench.computation.ready()) return 0;
    const ImGuiStyle& style = ImGui::GetStyle();
    const CardText card = card_of(*step);
    // With room for what is seen once it is done, so that nothing moves then.
    float height = 2 * style.WindowPadding.y + ImGui::GetFrameHeight();
    for (const std::string* line : {&card.text, &card.instruction, &card.sight})
        height += style.ItemSpacing.y +
                  ImGui::CalcTextSize(line->c_str(), nullptr, false, width - 2 * style.WindowPadding.x).y;
    return std::ceil(height);
}

void draw_story(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Settings& settings = bench.document.settings();
    const StoryStep* const step = step_of(settings);
    if (!step) return;
    const Palette& colors = palette(bench.window.theme);
    const bool done = is_done(bench, *step);
    const CardText card = card_of(*step);
    const ImVec2 corner = ImGui::GetWindowPos();
    ImGui::GetWindowDrawList()->AddRectFilled(
        corner, {corner.x + 4 * ui.scale, corner.y + ImGui::GetWindowHeight()}, colors.accent);
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(ui.fonts.strong);
    ImGui::Text("%u of %zu  %s", settings.step, steps_of(settings).size(), step->title.c_str());
    ImGui::PopFont();
    const struct {
        const char *label, *keys;
        void (*run)(Workbench&);
    } buttons[] = {{texts().story.back, "Shift+F3", [](Workbench& b) { step_story(b, -1); }},
                   {texts().story.next, "F3", [](Workbench& b) { step_story(b, 1); }},
                   {texts().story.end, "Ctrl+F3", end_story}};
    float wide = -6 * ui.scale;
    for (const auto& button : buttons) wide += button_width(button.label) + 6 * ui.scale;
    ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - wide);
    void (*chosen)(Workbench&) = nullptr;
    for (const auto& button : buttons) {
        if (ImGui::Button(button.label)) chosen = button.run;
        tooltip(button.keys);
        ImGui::SameLine(0, 6 * ui.scale);
    }
    ImGui::NewLine();
    ImGui::PushTextWrapPos();
    ImGui::TextUnformatted(card.text.c_str());
    colored_text(done ? colors.text_soft : colors.text, card.instruction);
    if (done) colored_text(colors.accent, card.sight);
    ImGui::PopTextWrapPos();
    if (chosen) chosen(bench);  // the step is another one then
}

std::string describe_story(const Workbench& bench) {
    const StoryStep* const step = step_of(bench.document.settings());
    if (!step) return "";
    const bool done = is_done(bench, *step);
    return fill(done ? texts().story.said_done : texts().story.said,
                {std::to_string(bench.document.settings().step),
                 std::to_string(steps_of(bench.document.settings()).size()), step->title,
                 in_window_words(done ? step->sight : step->instruction)});
}

}  // namespace fovea::visualizer

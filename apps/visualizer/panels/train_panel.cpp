// A model that learns: controls, curves, a scrubber over the steps that were taken, and every head's map,
// which moves while it trains. A click on a map switches its head off.
#include "document/playground.hpp"
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr float kPlotHeight = 150, kLabel = 34;
constexpr std::array<double, 4> kSpeeds = {5, 20, 200, 0};
std::array<const char*, 4> speed_names() {
    return {texts().train.speed5, texts().train.speed20, texts().train.speed200, texts().train.fastest};
}

struct Plot {
    ImVec2 at, size;
    uint32_t steps;  // at the right end
    float low, high;
    ImVec2 place(uint32_t step, float value) const {
        const float x = float(step) / float(std::max(steps, 1u));
        const float y = std::clamp((value - low) / (high - low), 0.0f, 1.0f);
        return {at.x + x * size.x, at.y + (1 - y) * size.y};
    }
};

// The value of a report that a curve shows.
using Figure = float (*)(const StepReport& report, HeadScore score);
float loss_of(const StepReport& report, HeadScore) { return float(report.loss); }
float accuracy_of(const StepReport& report, HeadScore) { return float(report.accuracy); }
float score_of(const StepReport& report, HeadScore score) { return best_head(report, score).value; }

// Returns the report of the shown step: a report describes the state before its step.
const StepReport* report_at(const TrainingView& v) {
    const auto& points = v.curve.points;
    return points.empty() ? nullptr : &points[std::min<size_t>(v.step, points.size() - 1)];
}

void draw_curve(const Plot& plot, const TrainingCurve& curve, Figure figure, HeadScore score, ImU32 color,
                float thickness) {
    std::vector<ImVec2> points;
    // As many as can be told apart.
    const size_t step = std::max<size_t>(1, curve.points.size() / size_t(std::max(plot.size.x, 1.0f)));
    for (size_t i = 0; i < curve.points.size(); i += step) {
        const float value = figure(curve.points[i], score);
        if (!std::isnan(value)) points.push_back(plot.place(curve.points[i].step, value));
    }
    ImGui::GetWindowDrawList()->AddPolyline(points.data(), int(points.size()), color, 0, thickness);
}

// Draws frame, name, the ends of its axis, and the scrubber's position.
Plot begin_plot(PanelContext& ui, const TrainingView& v, float width, const char* title, float low,
                float high, const char* unit) {
    const Palette& colors = ui.colors();
    const float line = ImGui::GetTextLineHeight();
    ImGui::TextUnformatted(title);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    Plot plot{{at.x + 34 * ui.scale, at.y},
              {width - 42 * ui.scale, kPlotHeight * ui.scale - 2 * line},
              0,
              low,
              high};
    plot.steps = std::max(v.last, 1u);
    for (const TrainingCurve& other : v.others)
        if (!other.points.empty()) plot.steps = std::max(plot.steps, other.points.back().step + 1);
    plot.steps = std::max(plot.steps, v.task.goal.within_steps);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(plot.at, {plot.at.x + plot.size.x, plot.at.y + plot.size.y}, colors.matrix_ground);
    for (const float value : {low, high})
        draw_text(ui.fonts.small,
                  {at.x, plot.place(0, value).y - (value == low ? ui.fonts.small->FontSize : 0)},
                  colors.text_soft, format_number(double(value), 2));
    const float x = plot.place(v.step, low).x;
    draw.AddLine({x, plot.at.y}, {x, plot.at.y + plot.size.y}, colors.text_soft, ui.scale);
    draw_text(
        ui.fonts.small, {plot.at.x, plot.at.y + plot.size.y + 2 * ui.scale}, colors.text_soft,
        fill(texts().train.steps, {std::to_string(plot.steps)}) + (unit[0] ? std::string(", ") + unit : ""));
    ImGui::Dummy({width, plot.size.y + line + 4 * ui.scale});
    return plot;
}

void draw_loss(PanelContext& ui, const TrainingView& v, float width) {
    const Palette& colors = ui.colors();
    const float guess = float(std::log(double(v.task.model.vocabulary)));
    const Plot plot = begin_plot(ui, v, width, texts().train.loss, 0, guess * 1.15f, "nats");
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float y = plot.place(0, guess).y;
    for (float x = plot.at.x; x < plot.at.x + plot.size.x; x += 8 * ui.scale)
        draw.AddLine({x, y}, {std::min(x + 4 * ui.scale, plot.at.x + plot.size.x), y}, colors.text_soft,
                     ui.scale);
    const std::string words = fill(texts().train.chance, {std::to_string(v.task.model.vocabulary)});
    draw_text(ui.fonts.small,
              {plot.at.x + plot.size.x - text_width(ui.fonts.small, words) - 4 * ui.scale, y + 2 * ui.scale},
              colors.text_soft, words);
    if (const StepReport* report = report_at(v))
        draw_text(ui.fonts.small,
                  {plot.at.x + 6 * ui.scale, plot.at.y + plot.size.y - 2 * ui.fonts.small->FontSize},
                  colors.accent, fill(texts().train.loss_now, {format_fixed(report->loss, 3)}));
    for (const TrainingCurve& other : v.others)
        draw_curve(plot, other, loss_of, HeadScore::previous, colors.mark, ui.scale);
    draw_curve(plot, v.curve, loss_of, HeadScore::previous, colors.accent, 2 * ui.scale);
}

void draw_scores(PanelContext& ui, const TrainingView& v, float width) {
    const Palette& colors = ui.colors();
    const Plot plot = begin_plot(ui, v, width, texts().train.scores, 0, 1, "");
    for (const TrainingCurve& other : v.others)
        draw_curve(plot, other, accuracy_of, HeadScore::previous, colors.mark, ui.scale);
    draw_curve(plot, v.curve, accuracy_of, HeadScore::previous, colors.accent, 2 * ui.scale);
    const ColorTable table = color_table(Colormap::viridis);
    float y = plot.at.y + 3 * ui.scale;
    // Lines and their names contrast with the background: lighter ones on a dark one.
    const auto color_of = [&](size_t i) {
        const double from = ui.bench.window.theme == Theme::dark ? 0.5 : 0.05;
        const Rgb c = table[size_t(
            255 * (from + 0.45 * double(i) / double(std::max<size_t>(v.task.scores.size(), 2) - 1)))];
        return IM_COL32(c.r, c.g, c.b, 255);
    };
    for (size_t i = 0; i < v.task.scores.size(); ++i)
        draw_curve(plot, v.curve, score_of, v.task.scores[i], color_of(i), 1.5f * ui.scale);
    // Draws a name, and the curve's value at the scrubber; over the curves, with a background.
    const auto name = [&](std::string text, ImU32 color, Figure figure, HeadScore score) {
        if (const StepReport* report = report_at(v))
            if (const float value = figure(*report, score); !std::isnan(value))
                text += " " + format_fixed(double(value), 2);
        ImFont* const font = ui.fonts.small;
        const ImVec2 at{plot.at.x + 6 * ui.scale, y};
        const float wide = text_width(font, text);
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        draw.AddRectFilled({at.x - 3 * ui.scale, at.y},
                           {at.x + wide + 3 * ui.scale, at.y + font->FontSize + ui.scale},
                           (colors.matrix_ground & 0x00ffffff) | 0xd0000000);
        draw_text(font, at, color, text);
        y += ui.fonts.small->FontSize + ui.scale;
    };
    name("accuracy", colors.accent, accuracy_of, HeadScore::previous);
    for (size_t i = 0; i < v.task.scores.size(); ++i)
        name(std::string(head_score_label(v.task.scores[i])), color_of(i), score_of, v.task.scores[i]);
}

// A head's weights on the sequence, and what it is called by its scores there.
void draw_map(PanelContext& ui, Playground& play, const TrainingView& v, uint32_t head, float side) {
    const Palette& colors = ui.colors();
    static const ColorTable kTable = color_table(Colormap::viridis);
    ImGui::PushID(int(head));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::InvisibleButton("map", {side, side})) play.switch_head(head);
    const bool hovered = ImGui::IsItemHovered();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(at, {at.x + side, at.y + side}, colors.matrix_ground);
    const uint32_t n = v.probe.length;
    const float cell = n ? side / float(n) : side;
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t j = 0; j <= i; ++j) {
            const Rgb c =
                kTable[size_t(255 * std::clamp(v.probe.weights[(size_t(head) * n + i) * n + j], 0.0f, 1.0f))];
            draw.AddRectFilled({at.x + float(j) * cell, at.y + float(i) * cell},
                               {at.x + float(j + 1) * cell, at.y + float(i + 1) * cell},
                               IM_COL32(c.r, c.g, c.b, 255));
        }
    const HeadLabel label =
        head < v.probe.scores.size() ? fovea::head_label(v.probe.scores[head]) : HeadLabel{};
    // The cells whose weights the score is the mean of that the head is called by.
    if (label.named && cell >= 3 * ui.scale)
        for (const ScoreCell& one : v.cells)
            if (one.score == label.score)
                draw.AddRect({at.x + float(one.key) * cell, at.y + float(one.query) * cell},
                             {at.x + float(one.key + 1) * cell, at.y + float(one.query + 1) * cell},
                             colors.warning, 0, 0, ui.scale);
    const bool off = v.heads_off >> head & 1u;
    if (off)
        for (const float from : {0.0f, side})
            draw.AddLine({at.x + from, at.y}, {at.x + side - from, at.y + side}, colors.warning,
                         2 * ui.scale);
    if (hovered) draw.AddRect(at, {at.x + side, at.y + side}, colors.text_soft, 0, 0, 2 * ui.scale);
    const std::string name =
        head_name(head / v.task.model.heads, head % v.task.model.heads) + (off ? ", off" : "");
    draw_text(ui.fonts.small, {at.x, at.y + side + 3 * ui.scale}, colors.text_soft, name);
    draw_text(ui.fonts.small, {at.x, at.y + side + 5 * ui.scale + ui.fonts.small->FontSize}, colors.text,
              label.named ? (label.text + " " + format_fixed(double(label.value), 2)).c_str() : "");
    const ImVec2 mouse = ImGui::GetMousePos();
    const auto i = uint32_t((mouse.y - at.y) / cell), j = uint32_t((mouse.x - at.x) / cell);
    if (hovered && i < n && j < n)
        ImGui::SetTooltip(
            "%s", fill(off ? texts().train.weight_off : texts().train.weight_on,
                       {v.task.vocabulary[v.sequence[i]], std::to_string(i), v.task.vocabulary[v.sequence[j]],
                        std::to_string(j),
                        format_fixed(double(v.probe.weights[(size_t(head) * n + i) * n + j]), 4)})
                      .c_str());
    ImGui::PopID();
}

void save(Workbench& bench, const Result<void>& saved, const char* path) {
    if (saved) return bench.window.tell_done(fill(texts().files.saved, {path}));
    bench.problems.report(saved.error().field, saved.error().text, true);
    bench.window.show(BottomTab::problems);
}

void draw_controls(PanelContext& ui, Playground& play, const TrainingView& v) {
    Workbench& bench = ui.bench;
    const float gap = 6 * ui.scale;
    ImGui::SetNextItemWidth(110 * ui.scale);
    if (ImGui::BeginCombo("##task", std::string(task_name(v.task.options.kind)).c_str())) {
        for (uint32_t kind = 0; kind < kTaskKinds; ++kind) {
            if (TaskKind(kind) == TaskKind::text) continue;  // hours, and a text that is not here
            if (ImGui::Selectable(std::string(task_name(TaskKind(kind))).c_str(),
                                  v.task.options.kind == TaskKind(kind)))
                play.choose(TaskKind(kind));
        }
        ImGui::EndCombo();
    }
    const auto button = [&](const char* label, const char* what) {
        same_line_if_room(button_width(label), gap);
        const bool pressed = ImGui::Button(label);
        tooltip(what);
        return pressed;
    };
    if (button(v.running ? texts().train.pause : texts().train.train, texts().train.train_hint))
        play.run(!v.running);
    if (button(texts().train.step, texts().train.step_hint)) play.step_once();
    if (button(texts().train.rewind, texts().train.rewind_hint)) play.rewind();
    if (button(texts().train.new_seed, texts().train.new_seed_hint)) play.new_seed();
    same_line_if_room(150 * ui.scale, gap);
    ImGui::SetNextItemWidth(150 * ui.scale);
    int& speed = bench.window.training_speed;
    const std::array<const char*, 4> speeds = speed_names();
    if (ImGui::Combo("##speed", &speed, speeds.data(), int(speeds.size())))
        play.set_speed(kSpeeds[size_t(speed)]);
    if (button(texts().train.show_heads, texts().train.show_heads_hint)) bench.show_trained();
    const std::string name = std::string(task_name(v.task.options.kind)) + "-" + std::to_string(v.curve.seed);
    if (button(texts().train.save_state, texts().train.save_state_hint))
        save(bench, play.save_state(name + ".safetensors"), (name + ".safetensors").c_str());
    if (button(texts().train.save_curves, texts().train.save_curves_hint))
        save(bench, play.save_curves(name + ".csv"), (name + ".csv").c_str());
    // A float slider: if there is only one step, the grip of an integer slider has half its length.
    auto step = float(v.step);
    ImGui::SetNextItemWidth(-1);
    const std::string where = fill(
        texts().train.where, {std::to_string(v.curve.seed), std::to_string(v.step), std::to_string(v.last)});
    if (ImGui::SliderFloat(
            "##step", &step, 0, float(std::max(v.last, 1u)), where.c_str(),
            ImGuiSliderFlags_AlwaysClamp | ImGuiSliderFlags_NoInput | ImGuiSliderFlags_NoRoundToFormat))
        if (const auto to = uint32_t(std::lround(step)); to != v.step && to <= v.last) play.seek(to);
}

std::string standing(const TrainingView& v) {
    std::string text = std::isnan(v.probe.accuracy)
                           ? texts().train.nothing
                           : fill(texts().train.accuracy, {format_fixed(100 * v.probe.accuracy, 0)});
    if (v.judged)
        text += fill(texts().train.unseen,
                     {format_fixed(100 * v.judged->accuracy, 1), format_fixed(v.judged->loss, 3)});
    return text;
}

}  // namespace

std::string describe_training(Workbench& bench) {
    const TrainingView& v = bench.training.view();
    std::string text = "training " + std::string(task_name(v.task.options.kind)) + ", seed " +
                       std::to_string(v.curve.seed) + ", step " + std::to_string(v.step) + " of " +
                       std::to_string(v.last) + (v.running ? ", running" : "") + "; " + standing(v) + "\n";
    for (size_t head = 0; head < v.probe.scores.size(); ++head)
        text += head_name(uint32_t(head) / v.task.model.heads, uint32_t(head) % v.task.model.heads) + " " +
                fovea::head_label(v.probe.scores[head]).text + (v.heads_off >> head & 1u ? ", off" : "") +
                "\n";
    return text + fill(texts().train.other_runs, {std::to_string(v.others.size())}) +
           (v.problem.empty() ? "" : v.problem + "\n");
}

void draw_train_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    Playground& play = bench.training.playground();
    const TrainingView& v = bench.training.view();
    draw_controls(ui, play, v);
    ImGui::BeginChild("training");
    const float width = ImGui::GetContentRegionAvail().x, half = (width - 12 * ui.scale) / 2;
    ImGui::BeginGroup();
    draw_loss(ui, v, half);
    ImGui::EndGroup();
    ImGui::SameLine(0, 12 * ui.scale);
    ImGui::BeginGroup();
    draw_scores(ui, v, half);
    ImGui::EndGroup();
    ImGui::PushTextWrapPos();
    if (v.problem.empty())
        soft_text(standing(v));
    else
        ImGui::TextUnformatted(v.problem.c_str());
    ImGui::PopTextWrapPos();
    const uint32_t heads = v.probe.heads;
    if (heads > 0) {
        const float room = ImGui::GetContentRegionAvail().y - kLabel * ui.scale;
        const float side =
            std::clamp(std::min(room, width / float(heads) - 14 * ui.scale), 90 * ui.scale, 320 * ui.scale);
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const int columns = std::max(int(width / (side + 14 * ui.scale)), 1);
        for (uint32_t head = 0; head < heads; ++head) {
            const auto column = float(int(head) % columns), row = float(int(head) / columns);
            ImGui::SetCursorScreenPos(
                {at.x + column * (side + 14 * ui.scale), at.y + row * (side + kLabel * ui.scale)});
            draw_map(ui, play, v, head, side);
        }
        ImGui::Dummy({1, kLabel * ui.scale});
    }
    ImGui::EndChild();
}

}  // namespace fovea::visualizer

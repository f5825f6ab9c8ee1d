#include "train_engine.h"

#include <fovea/files/json.hpp>
#include <fovea/train.hpp>

#include <algorithm>
#include <optional>

namespace {

using namespace fovea;

struct Run {
    TrainingRun run;
    std::vector<HeadScores> scores;  // from the newest evaluation or step, for the labels of heads
};

// All that lives between calls. One page, one run, one calling thread.
std::optional<Run> g_run;
Probe g_probe;
std::string g_text, g_error;

const char* answer(std::string json) {
    g_text = std::move(json);
    return g_text.c_str();
}
const char* refuse(std::string reason) {
    g_error = std::move(reason);
    return nullptr;
}

template <class Range, class Write>
std::string array_json(const Range& range, Write write) {
    std::string out = "[";
    for (const auto& item : range) {
        if (out.size() > 1) out += ',';
        out += write(item);
    }
    return out + "]";
}

std::string scores_json(const std::vector<HeadScores>& heads) {
    return array_json(heads, [](const HeadScores& scores) {
        return array_json(scores, [](float score) { return json_number(score); });
    });
}

std::string report_json(const StepReport& report) {
    return JsonObject()
        .number("step", report.step)
        .number("loss", report.loss)
        .number("accuracy", report.accuracy)
        .raw("heads", scores_json(report.heads))
        .done();
}

// A sequence that nobody trains on, as text: as much of it as is easy to look at.
std::string example_of(const Task& task) {
    const Batch batch = held_out_batch(task, 0);
    return task_text(task, std::span(batch.tokens).first(std::min(batch.context, 24u)));
}

// To `step`; JSON of the steps that were taken.
const char* seek(uint32_t step) {
    if (!g_run) return refuse("no training run has begun; begin one first");
    std::vector<StepReport> reports;
    const Result<void> there = g_run->run.seek(step, [&](const StepReport& report) {
        reports.push_back(report);
        return true;
    });
    if (!there) return refuse(there.error().text);
    if (!reports.empty()) g_run->scores = reports.back().heads;
    return answer(array_json(reports, report_json));
}

}  // namespace

const char* webTrainError(void) { return g_error.c_str(); }

const char* webTrainOpen(const char* text) {
    g_run.reset();
    if (!text) return refuse("the browser has no memory left for the run's address");
    const Result<TrainingPlace> place = read_training_place(text);
    if (!place) return refuse(place.error().text);
    Result<Task> task = make_task(place->options);
    if (!task) return refuse(task.error().text);
    Result<TrainingRun> run = TrainingRun::open(std::move(*task), place->seed);
    if (!run) return refuse(run.error().text);
    g_run.emplace(Run{std::move(*run), {}});
    const Task& made = g_run->run.task();
    const std::string scores = array_json(made.scores, [](HeadScore score) {
        return JsonObject()
            .number("index", double(score))
            .text("name", head_score_name(score))
            .text("label", head_score_label(score))
            .done();
    });
    return answer(JsonObject()
                      .raw("vocabulary", array_json(made.vocabulary, json_string))
                      .number("context", made.model.context)
                      .number("layers", made.model.layers)
                      .number("heads", made.model.heads)
                      .number("weights", double(g_run->run.state().weights.size()))
                      .number("accuracy", made.goal.accuracy)
                      .number("within", made.goal.within_steps)
                      .raw("scores", scores)
                      .text("example", example_of(made))
                      .done());
}

const char* webTrainStep(uint32_t count) { return seek(g_run ? g_run->run.state().step + count : 0); }

const char* webTrainSeek(uint32_t step) { return seek(step); }

const char* webTrainEvaluate(double heads_off) {
    if (!g_run) return refuse("no training run has begun; begin one first");
    const Result<StepReport> report =
        g_run->run.trainer().evaluate(g_run->run.state(), {uint64_t(heads_off)});
    if (!report) return refuse(report.error().text);
    if (heads_off == 0) g_run->scores = report->heads;
    return answer(report_json(*report));
}

const char* webTrainProbe(const char* text, double heads_off) {
    if (!g_run) return refuse("no training run has begun; begin one first");
    if (!text) return refuse("the browser has no memory left for the tokens");
    TrainingRun& run = g_run->run;
    const Task& task = run.task();
    const Result<std::vector<uint32_t>> tokens = task_tokens(task, text);
    if (!tokens) return refuse(tokens.error().text);
    Result<Probe> probe = run.trainer().probe(run.state(), *tokens, {uint64_t(heads_off)});
    if (!probe) return refuse(probe.error().text);
    g_probe = std::move(*probe);
    std::vector<double> sure;
    for (uint32_t i = 0; i < g_probe.length; ++i)
        sure.push_back(g_probe.probabilities[size_t(i) * g_probe.vocabulary + g_probe.said[i]]);
    // Which weights each score is the mean of.
    const Result<Batch> batch = probe_batch(task, *tokens);
    if (!batch) return refuse(batch.error().text);
    const std::string cells = array_json(batch->cells, [](const ScoreCell& cell) {
        return "[" + std::to_string(uint32_t(cell.score)) + "," + std::to_string(cell.query) + "," +
               std::to_string(cell.key) + "]";
    });
    const std::string labels = array_json(g_run->scores, [](const HeadScores& scores) {
        const HeadLabel label = head_label(scores);
        return JsonObject()
            .text("text", label.text)
            .boolean("named", label.named)
            .number("value", label.value)
            .number("score", double(label.score))
            .done();
    });
    return answer(
        JsonObject()
            .number("step", run.state().step)
            .raw("tokens", array_json(*tokens, [&](uint32_t t) { return json_string(task.vocabulary[t]); }))
            .raw("said",
                 array_json(g_probe.said, [&](uint32_t t) { return json_string(task.vocabulary[t]); }))
            .raw("sure", array_json(sure, json_number))
            .number("address", double(reinterpret_cast<uintptr_t>(g_probe.weights.data())))
            .number("count", double(g_probe.weights.size()))
            .number("heads", g_probe.heads)
            .raw("labels", labels)
            .raw("cells", cells)
            .number("loss", g_probe.loss)
            .number("accuracy", g_probe.accuracy)
            .done());
}

#include "train_engine.h"

#include <fovea/files/json.hpp>
#include <fovea/train.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace {

using namespace fovea;

// States are kept at every so many steps, and at most so many: then every second one goes.
constexpr uint32_t kFirstStride = 5;
constexpr size_t kMostKept = 128;

struct Run {
    Task task;
    TrainState state;
    std::optional<Trainer> trainer;
    uint32_t stride = kFirstStride;
    std::map<uint32_t, TrainState> kept;
    std::vector<HeadScores> scores;  // of the newest evaluation or step: what heads are called

    void keep() {
        if (state.step % stride) return;
        kept.insert_or_assign(state.step, state);
        if (kept.size() <= kMostKept) return;
        stride *= 2;
        std::erase_if(kept, [&](const auto& entry) { return entry.first % stride; });
    }
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

Result<TaskOptions> options_of(std::string_view name, std::string_view json) {
    const Result<TaskKind> kind = task_from_name(name);
    if (!kind) return kind.error();
    TaskOptions options = task_options(*kind);
    if (json.empty()) return options;
    const Result<JsonValue> given = parse_json(json);
    if (!given) return given.error();
    for (const auto& [key, value] : given->members()) {
        if (key == "first_token") options.first_token = value.boolean();
        if (key == "copy_only") options.copy_only = value.boolean();
        if (key == "query_key_bias") options.query_key_bias = value.boolean();
        if (key != "positions") continue;
        const Result<Positions> positions = positions_from_name(value.text());
        if (!positions) return positions.error();
        options.positions = *positions;
    }
    return options;
}

// A sequence that nobody trains on, as text: as much of it as is easy to look at.
std::string example_of(const Task& task) {
    const Batch batch = held_out_batch(task, 0);
    std::string text;
    for (uint32_t i = 0; i < std::min(batch.context, 24u); ++i)
        text += (i ? " " : "") + task.vocabulary[batch.tokens[i]];
    return text;
}

Result<std::vector<uint32_t>> tokens_of(const Task& task, std::string_view text) {
    std::vector<uint32_t> tokens;
    for (size_t at = 0; at < text.size();) {
        const size_t begin = text.find_first_not_of(' ', at);
        if (begin == std::string_view::npos) break;
        at = std::min(text.find(' ', begin), text.size());
        const std::string_view word = text.substr(begin, at - begin);
        const auto found = std::find(task.vocabulary.begin(), task.vocabulary.end(), word);
        if (found == task.vocabulary.end())
            return Error{FOVEA_INVALID_ARGUMENT, "tokens",
                         "'" + std::string(word) + "' is no token of this task: " + task.vocabulary.front() +
                             " to " + task.vocabulary[task.vocabulary.size() - 2] + ", " +
                             task.vocabulary.back()};
        tokens.push_back(uint32_t(found - task.vocabulary.begin()));
    }
    return tokens;
}

// Steps up to `step`, each told in `reports`. False: one failed.
bool advance(Run& run, uint32_t step, std::vector<StepReport>& reports) {
    while (run.state.step < step) {
        Result<StepReport> report = run.trainer->step(run.state);
        if (!report) return refuse(report.error().text) != nullptr;
        run.keep();
        run.scores = report->heads;
        reports.push_back(std::move(*report));
    }
    return true;
}

}  // namespace

const char* webTrainError(void) { return g_error.c_str(); }

const char* webTrainOpen(const char* name, const char* json, double seed) {
    g_run.reset();
    const Result<TaskOptions> options = options_of(name, json);
    if (!options) return refuse(options.error().text);
    Result<Task> task = make_task(*options);
    if (!task) return refuse(task.error().text);
    Run run{*task, start_training(*task, uint64_t(seed)), {}, kFirstStride, {}, {}};
    Result<Trainer> trainer = Trainer::open(run.task);
    if (!trainer) return refuse(trainer.error().text);
    run.trainer.emplace(std::move(*trainer));
    run.keep();
    g_run.emplace(std::move(run));
    const Task& made = g_run->task;
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
                      .number("weights", double(g_run->state.weights.size()))
                      .number("accuracy", made.goal.accuracy)
                      .number("within", made.goal.within_steps)
                      .raw("scores", scores)
                      .text("example", example_of(made))
                      .done());
}

const char* webTrainStep(uint32_t count) {
    if (!g_run) return refuse("no run was begun");
    std::vector<StepReport> reports;
    if (!advance(*g_run, g_run->state.step + count, reports)) return nullptr;
    return answer(array_json(reports, report_json));
}

const char* webTrainSeek(uint32_t step) {
    if (!g_run) return refuse("no run was begun");
    if (step < g_run->state.step) {
        const auto after = g_run->kept.upper_bound(step);  // step 0 is always kept
        g_run->state = std::prev(after)->second;
    }
    std::vector<StepReport> reports;
    if (!advance(*g_run, step, reports)) return nullptr;
    return answer(array_json(reports, report_json));
}

const char* webTrainEvaluate(double heads_off) {
    if (!g_run) return refuse("no run was begun");
    const Result<StepReport> report = g_run->trainer->evaluate(g_run->state, {uint64_t(heads_off)});
    if (!report) return refuse(report.error().text);
    if (heads_off == 0) g_run->scores = report->heads;
    return answer(report_json(*report));
}

const char* webTrainProbe(const char* text, double heads_off) {
    if (!g_run) return refuse("no run was begun");
    const Task& task = g_run->task;
    const Result<std::vector<uint32_t>> tokens = tokens_of(task, text);
    if (!tokens) return refuse(tokens.error().text);
    Result<Probe> probe = g_run->trainer->probe(g_run->state, *tokens, {uint64_t(heads_off)});
    if (!probe) return refuse(probe.error().text);
    g_probe = std::move(*probe);
    std::vector<double> sure;
    for (uint32_t i = 0; i < g_probe.length; ++i)
        sure.push_back(g_probe.probabilities[size_t(i) * g_probe.vocabulary + g_probe.said[i]]);
    const std::string labels = array_json(g_run->scores, [](const HeadScores& scores) {
        const HeadLabel label = head_label(scores);
        return JsonObject()
            .text("text", label.text)
            .boolean("named", label.named)
            .number("value", label.value)
            .done();
    });
    return answer(
        JsonObject()
            .number("step", g_run->state.step)
            .raw("tokens", array_json(*tokens, [&](uint32_t t) { return json_string(task.vocabulary[t]); }))
            .raw("said",
                 array_json(g_probe.said, [&](uint32_t t) { return json_string(task.vocabulary[t]); }))
            .raw("sure", array_json(sure, json_number))
            .number("address", double(reinterpret_cast<uintptr_t>(g_probe.weights.data())))
            .number("count", double(g_probe.weights.size()))
            .number("heads", g_probe.heads)
            .raw("labels", labels)
            .number("loss", g_probe.loss)
            .number("accuracy", g_probe.accuracy)
            .done());
}

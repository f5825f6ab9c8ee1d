// fovea train: a small model learns a task, from a seed or from where a file left it.
#include "arguments.hpp"
#include "attention_options.hpp"
#include "commands.hpp"
#include "output_file.hpp"
#include "progress.hpp"

#include <fovea/files/json.hpp>
#include <fovea/model/device_runner.hpp>
#include <fovea/train.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace fovea::app {
namespace {

constexpr OptionSpec kTrainOptions[] = {
    {"--steps", "N", "steps to take now (default: those within which every tried seed learned the task)"},
    {"--seed", "N", "of the weights and the data (default 1)"},
    {"--out", "FILE", "where the state goes: weights, moments and step, safetensors"},
    {"--resume", "FILE", "goes on from a state that --out wrote, as if never stopped"},
    {"--half", "", "--out holds the weights alone, in float16"},
    {"--text", "FILE", "text: what to learn from, UTF-8, a verse or paragraph a line"},
    {"--positions", "P", "none, learned or rotary (default: what learns the task best)"},
    {"--no-bias", "", "queries and keys have no biases"},
    {"--no-first-token", "", "induction: sequences do not begin with a token of their own"},
    {"--copy-only", "", "induction: the loss counts only what can be known"},
    {"--json", "", "the result as JSON"},
};
constexpr OptionSpec kHelp = {"--help", "", "this text"};

void print_train_help(std::span<const OptionSpec> specs) {
    std::string names;
    for (uint32_t n = 0; n < kTaskKinds; ++n)
        names += (n ? ", " : "") + std::string(task_name(static_cast<TaskKind>(n)));
    std::printf(
        "usage: fovea train TASK [options]\n\nTrains a small model and says what its heads have become. "
        "TASK: "
        "%s\n(docs/guides/training.md says what each is and what to look at). Runs on the CPU unless "
        "--backend or "
        "--device is given:\nthese models are too small for a GPU to be quicker.\n\n",
        names.c_str());
    print_options(specs);
}

Result<TaskOptions> options_of(const Arguments& a, TaskKind kind) {
    TaskOptions options = task_options(kind);
    if (a.has("--positions")) {
        const Result<Positions> positions = positions_from_name(a.text("--positions"));
        if (!positions) return bad("--positions", "--" + positions.error().text);
        options.positions = *positions;
    }
    if (a.has("--no-bias")) options.query_key_bias = false;
    if (a.has("--no-first-token")) options.first_token = false;
    if (a.has("--copy-only")) options.copy_only = true;
    return options;
}

// The words that a text model learns from.
Result<std::shared_ptr<const TrainingText>> training_text(const Arguments& a) {
    if (!a.has("--text"))
        return bad(
            "--text",
            "--text is missing; give the file to learn from (scripts/get-training-text.sh makes the one "
            "that the weights of the repository were trained on)");
    const std::string path(a.text("--text"));
    std::ifstream file(path, std::ios::binary);
    std::ostringstream words;
    if (file) words << file.rdbuf();
    if (!file || file.bad()) return bad("--text", path + " cannot be read");
    Result<std::shared_ptr<const TrainingText>> text =
        TrainingText::make(std::move(words).str(), kTextVocabulary);
    if (!text) return bad("--text", path + ": " + text.error().text);
    return text;
}

// A task as the options ask for it, before any state.
Result<Task> task_of(const Arguments& a, TaskKind kind) {
    const std::string_view other =
        a.first_of({"--positions", "--no-bias", "--no-first-token", "--copy-only"});
    if (kind == TaskKind::text && !other.empty())
        return bad(other, std::string(other) + " is not supported for the task text, which has one model");
    if (kind == TaskKind::text) {
        const Result<std::shared_ptr<const TrainingText>> text = training_text(a);
        if (!text) return text.error();
        return make_text_task(*text);
    }
    if (a.has("--text"))
        return bad("--text", "--text is only supported for the task text, which learns from it");
    const Result<TaskOptions> options = options_of(a, kind);
    if (!options) return options.error();
    Result<Task> task = make_task(*options);
    if (!task) return bad(options->copy_only ? "--copy-only" : "--no-first-token", task.error().text);
    return task;
}

struct Start {
    Task task;
    TrainState state;
};

Result<Start> starting_state(const Arguments& a, TaskKind kind) {
    if (!a.has("--resume")) {
        Result<Task> task = task_of(a, kind);
        if (!task) return task.error();
        const Result<uint64_t> seed = a.unsigned_integer("--seed", 1);
        if (!seed) return seed.error();
        TrainState state = start_training(*task, *seed);
        return Start{std::move(*task), std::move(state)};
    }
    const std::string_view twice =
        a.first_of({"--seed", "--positions", "--no-bias", "--no-first-token", "--copy-only"});
    if (!twice.empty())
        return bad(twice,
                   std::string(twice) + " cannot be combined with --resume, whose state has it already");
    const std::filesystem::path path(a.text("--resume"));
    const Result<TensorSet> file = load_safetensors(path);
    if (!file) return file.error();
    Result<TrainState> state = read_state(*file);
    if (!state) return bad("--resume", path.string() + ": " + state.error().text);
    if (state->options.kind != kind)
        return bad("--resume", path.string() + " is a state of the task " +
                                   std::string(task_name(state->options.kind)) + ", not of " +
                                   std::string(task_name(kind)) + "; give the task that it was trained on");
    // A text is not in its state: it is given again, and must be the one that gave the state its vocabulary.
    Result<Task> task = kind == TaskKind::text ? task_of(a, kind) : make_task(state->options);
    if (!task) return task.error();
    if (kind == TaskKind::text && task->vocabulary != read_task(*file)->vocabulary)
        return bad(
            "--text",
            "--text has other words than the text that the state of --resume was trained on; give that one");
    return Start{std::move(*task), std::move(*state)};
}

// Returns the name of a head: "layer 1, head 0".
std::string head_place(const Task& task, uint32_t head) {
    return "layer " + std::to_string(head / task.model.heads) + ", head " +
           std::to_string(head % task.model.heads);
}

// The command line that makes the state from nothing, whatever was resumed on the way.
std::string made_by(const Arguments& a, const TrainState& state) {
    const TaskOptions& o = state.options;
    const TaskOptions preset = task_options(o.kind);
    std::string text = "fovea train " + std::string(task_name(o.kind)) + " --steps " +
                       std::to_string(state.step) + " --seed " + std::to_string(state.seed);
    if (o.positions != preset.positions) text += " --positions " + std::string(positions_name(o.positions));
    if (o.query_key_bias != preset.query_key_bias) text += " --no-bias";
    if (!o.first_token) text += " --no-first-token";
    if (o.copy_only) text += " --copy-only";
    if (a.has("--text")) text += " --text " + std::filesystem::path(a.text("--text")).filename().string();
    if (a.has("--half")) text += " --half";
    return text;
}

struct Finished {
    const Task& task;
    const TrainState& state;
    const StepReport& report;
    std::string device, out, made_by;
    uint32_t steps_taken;
    double seconds;
};

void print_text(const Finished& f) {
    std::printf("%s: %u steps in all, seed %llu, on %s, %.2f ms a step\n",
                task_name(f.task.options.kind).data(), f.state.step,
                static_cast<unsigned long long>(f.state.seed), f.device.c_str(),
                f.steps_taken ? 1e3 * f.seconds / f.steps_taken : 0.0);
    std::printf("  loss      %.4f   (guessing among %u tokens: %.2f)\n", f.report.loss,
                f.task.model.vocabulary, std::log(double(f.task.model.vocabulary)));
    std::printf("  accuracy  %.4f\n", f.report.accuracy);
    for (const HeadScore score : f.task.scores) {
        const BestHead best = best_head(f.report, score);
        std::printf("  best at %-19s %.3f   %s\n", head_score_label(score).data(), best.value,
                    head_place(f.task, best.head).c_str());
    }
    for (uint32_t head = 0; head < f.report.heads.size(); ++head)
        std::printf("  %s: %s\n", head_place(f.task, head).c_str(),
                    head_label(f.report.heads[head]).text.c_str());
    if (reaches(f.report, f.task.goal))
        std::printf("learned: it reaches the task's goal\n");
    else
        std::printf("not learned yet: the task's goal is an accuracy of %.2f and clean heads\n",
                    f.task.goal.accuracy);
    if (!f.out.empty()) std::printf("wrote: %s\n", f.out.c_str());
}

std::string heads_json(const Finished& f) {
    std::string text;
    for (uint32_t head = 0; head < f.report.heads.size(); ++head) {
        JsonObject object;
        object.number("layer", head / f.task.model.heads).number("head", head % f.task.model.heads);
        object.text("label", head_label(f.report.heads[head]).text);
        for (const HeadScore score : f.task.scores)
            object.number(head_score_name(score), f.report.heads[head][static_cast<size_t>(score)]);
        text += (head ? ", " : "") + object.done();
    }
    return "[" + text + "]";
}

void print_json(const Finished& f) {
    JsonObject object;
    object.text("task", task_name(f.task.options.kind)).raw("seed", std::to_string(f.state.seed));
    object.number("steps", f.state.step).text("device", f.device);
    object.number("loss", f.report.loss).number("accuracy", f.report.accuracy);
    for (const HeadScore score : f.task.scores)
        object.number(head_score_name(score), best_head(f.report, score).value);
    object.boolean("learned", reaches(f.report, f.task.goal)).raw("heads", heads_json(f));
    object.number("seconds", f.seconds);
    if (!f.out.empty()) object.text("out", f.out);
    std::printf("%s\n", object.done().c_str());
}

Result<void> write_state(const Arguments& a, const Finished& f) {
    Result<TensorSet> set =
        a.has("--half") ? weight_tensors(f.task, f.state) : state_tensors(f.task, f.state);
    if (!set) return set.error();
    std::string labels;
    for (const HeadScores& scores : f.report.heads)
        labels += (labels.empty() ? "" : ", ") + head_label(scores).text;
    set->metadata.emplace_back("head_labels", labels);
    set->metadata.emplace_back("device", f.device);
    set->metadata.emplace_back("made_by", f.made_by);
    const HeldInterrupts held;
    const Result<uint64_t> written = save_safetensors(f.out, *set);
    if (!written) return written.error();
    return {};
}

Result<int> train(const Arguments& a) {
    if (a.positional().size() != 1)
        return bad("task",
                   a.positional().empty()
                       ? "the task is missing; `fovea train --help` lists the tasks"
                       : "train takes one task; the second is '" + std::string(a.positional()[1]) + "'");
    const Result<TaskKind> kind = task_from_name(a.positional()[0]);
    if (!kind) return kind.error();
    const std::string out(a.text("--out"));
    if (a.has("--half") && out.empty())
        return bad("--half", "--half needs --out FILE, the file whose weights it halves");
    // A state may replace the one that it continues from; a file with only weights may not.
    std::vector<std::filesystem::path> inputs = {a.text("--text")};
    if (a.has("--half")) inputs.emplace_back(a.text("--resume"));
    if (!out.empty())
        if (Result<void> r = check_writable(out, ".safetensors", inputs); !r) return r.error();
    Result<Start> begun = starting_state(a, *kind);
    if (!begun) return begun.error();
    const Task& task = begun->task;
    TrainState& state = begun->state;
    const Result<uint64_t> steps = a.unsigned_integer("--steps", task.goal.within_steps);
    if (!steps) return steps.error();
    if (*steps > std::numeric_limits<uint32_t>::max() - state.step)
        return bad("--steps", "--steps is " + std::to_string(*steps) + " after step " +
                                  std::to_string(state.step) + "; the limit is 4294967295 in all");
    Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    if (!a.has("--backend") && !a.has("--device")) options->backend = BackendChoice::cpu;
    if (!a.has("--threads")) options->cpu_threads = 1;

    const Result<std::unique_ptr<DeviceRunner>> device = DeviceRunner::open(*options);
    if (!device) return device.error();
    Result<Trainer> trainer = Trainer::open(task, device->get());
    if (!trainer) return trainer.error();
    Progress progress("training " + std::string(task_name(*kind)));
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t n = 0; n < *steps; ++n) {
        const Result<StepReport> report = trainer->step(state);
        if (!report) return report.error();
        progress(double(n) / double(*steps), "step " + std::to_string(state.step) + ", loss " +
                                                 std::to_string(report->loss).substr(0, 5) + ", accuracy " +
                                                 std::to_string(report->accuracy).substr(0, 5));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    const Result<StepReport> report = trainer->evaluate(state);
    if (!report) return report.error();
    const Finished finished{
        task, state, *report, (*device)->name(), out, made_by(a, state), uint32_t(*steps), taken.count()};
    if (!out.empty())
        if (Result<void> r = write_state(a, finished); !r) return r.error();
    a.has("--json") ? print_json(finished) : print_text(finished);
    return 0;
}

}  // namespace

int train_command(Words words) {
    std::vector<OptionSpec> specs(std::begin(kTrainOptions), std::end(kTrainOptions));
    const std::span<const OptionSpec> engine = engine_option_specs();
    specs.insert(specs.end(), engine.begin(), engine.end());
    specs.push_back(kHelp);
    return run_command(
        words, specs, [&] { print_train_help(specs); }, train);
}

}  // namespace fovea::app

#include <fovea/train/training_run.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace fovea {
namespace {

// Beyond these every other one goes and the stride between them doubles.
constexpr size_t kMaxStates = 128;

Error bad(std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, "train", "the training run has " + std::move(text)};
}

// A word for each change of a task's options; what differs from the task's preset is written.
struct Change {
    std::string_view word;
    void (*make)(TaskOptions&);
};
constexpr std::array<Change, 6> kChanges = {{
    {"nostart", [](TaskOptions& o) { o.first_token = false; }},
    {"copy", [](TaskOptions& o) { o.copy_only = true; }},
    {"nobias", [](TaskOptions& o) { o.query_key_bias = false; }},
    {"nopositions", [](TaskOptions& o) { o.positions = Positions::none; }},
    {"learned", [](TaskOptions& o) { o.positions = Positions::learned; }},
    {"rotary", [](TaskOptions& o) { o.positions = Positions::rotary; }},
}};

// Removes and returns the text before the next `separator`, which is removed too.
std::string_view take_until(std::string_view& text, char separator) {
    const size_t at = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return part;
}

Result<uint64_t> number(std::string_view text, std::string_view name, uint64_t otherwise, uint64_t most) {
    if (text.empty()) return otherwise;
    uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value > most)
        return bad("'" + std::string(text) + "' as its " + std::string(name) +
                   "; it must be an integer of at most " + std::to_string(most));
    return value;
}

}  // namespace

Result<TrainingPlace> read_training_place(std::string_view text) {
    TrainingPlace place;
    std::string_view what = take_until(text, ',');
    const Result<TaskKind> kind = task_from_name(take_until(what, '+'));
    if (!kind) return Error{FOVEA_INVALID_ARGUMENT, "train", kind.error().text};
    place.options = task_options(*kind);
    while (!what.empty()) {
        const std::string_view word = take_until(what, '+');
        const auto change =
            std::find_if(kChanges.begin(), kChanges.end(), [&](const Change& c) { return c.word == word; });
        if (change == kChanges.end())
            return bad("the option '" + std::string(word) +
                       "'; it must be nostart, copy, nobias, nopositions, learned or rotary");
        change->make(place.options);
    }
    if (const Result<Task> task = make_task(place.options); !task)
        return Error{FOVEA_INVALID_ARGUMENT, "train", task.error().text};
    const Result<uint64_t> seed = number(take_until(text, ','), "seed", place.seed, UINT32_MAX);
    if (!seed) return seed.error();
    const Result<uint64_t> step = number(take_until(text, ','), "step", 0, kMaxTrainingSteps);
    if (!step) return step.error();
    const Result<uint64_t> off = number(take_until(text, ','), "ablated heads", 0, UINT64_MAX);
    if (!off) return off.error();
    place.seed = *seed, place.step = uint32_t(*step), place.heads_off = *off;
    place.tokens = text;
    return place;
}

std::string write_training_place(const TrainingPlace& place) {
    std::string text(task_name(place.options.kind));
    const TaskOptions preset = task_options(place.options.kind);
    for (const Change& change : kChanges) {
        // The place has it, and the preset has not.
        TaskOptions here = place.options, there = preset;
        change.make(here), change.make(there);
        if (here == place.options && there != preset) text += "+" + std::string(change.word);
    }
    return text + "," + std::to_string(place.seed) + "," + std::to_string(place.step) + "," +
           std::to_string(place.heads_off) + "," + place.tokens;
}

Result<std::vector<uint32_t>> task_tokens(const Task& task, std::string_view text) {
    std::vector<uint32_t> tokens;
    while (!text.empty()) {
        const std::string_view word = take_until(text, ' ');
        if (word.empty()) continue;
        const auto found = std::find(task.vocabulary.begin(), task.vocabulary.end(), word);
        if (found == task.vocabulary.end())
            return Error{FOVEA_INVALID_ARGUMENT, "tokens",
                         "'" + std::string(word) +
                             "' is not a token of this task: " + task.vocabulary.front() + " to " +
                             task.vocabulary[task.vocabulary.size() - 2] + ", " + task.vocabulary.back()};
        tokens.push_back(uint32_t(found - task.vocabulary.begin()));
    }
    return tokens;
}

std::string task_text(const Task& task, std::span<const uint32_t> tokens) {
    std::string text;
    for (const uint32_t token : tokens) text += (text.empty() ? "" : " ") + task.vocabulary[token];
    return text;
}

TrainingRun::TrainingRun(Trainer trainer, TrainState state)
    : trainer_(std::move(trainer)), state_(std::move(state)), kept_{{0, state_}} {}

Result<TrainingRun> TrainingRun::open(Task task, uint64_t seed) {
    Result<Trainer> trainer = Trainer::open(task);
    if (!trainer) return trainer.error();
    TrainState state = start_training(task, seed);
    return TrainingRun(std::move(*trainer), std::move(state));
}

void TrainingRun::begin(uint64_t seed) {
    state_ = start_training(task(), seed);
    kept_ = {{0, state_}};
    stride_ = 1;
}

void TrainingRun::keep() {
    if (state_.step % stride_ != 0) return;
    kept_.insert_or_assign(state_.step, state_);
    if (kept_.size() <= kMaxStates) return;
    stride_ *= 2;
    std::erase_if(kept_, [&](const auto& one) { return one.first % stride_ != 0; });
}

Result<StepReport> TrainingRun::step() {
    Result<StepReport> report = trainer_.step(state_);
    if (report) keep();
    return report;
}

Result<void> TrainingRun::seek(uint32_t step, const std::function<bool(const StepReport&)>& told) {
    // The nearest state that is known, which may be the present one.
    const TrainState& before = std::prev(kept_.upper_bound(step))->second;
    if (state_.step > step || state_.step < before.step) state_ = TrainState(before);
    while (state_.step < step) {
        const Result<StepReport> report = this->step();
        if (!report) return report.error();
        if (!told(*report)) break;
    }
    return {};
}

}  // namespace fovea

#include "document/playground.hpp"

#include <fovea/inspect.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace fovea::visualizer {
namespace {

using Clock = std::chrono::steady_clock;
// On a long way to a step the state is shown so often.
constexpr auto kGlimpse = std::chrono::milliseconds(100);

}  // namespace

Playground::Playground(std::function<void()> wake) : wake_(std::move(wake)) {
    view_.task = make_task(TaskKind::induction);
    wanted_.place.emplace();
    thread_ = std::thread([this] { work(); });
}

Playground::~Playground() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    asked_.notify_all();
    thread_.join();
}

void Playground::ask(const std::function<void(Wanted&)>& what) {
    {
        const std::lock_guard lock(mutex_);
        what(wanted_);
    }
    asked_.notify_all();
}

void Playground::choose(TaskKind kind) {
    TrainingPlace place;
    place.options = task_options(kind);
    go_to(place);
}
void Playground::go_to(const TrainingPlace& place) {
    ask([&](Wanted& w) { w = {}, w.place = place, run_ = false; });
}
void Playground::run(bool on) {
    ask([&](Wanted& w) { run_ = on, w.probe = w.probe || !on; });
}
void Playground::step_once() {
    ask([&](Wanted& w) { run_ = false, ++w.steps; });
}
void Playground::set_speed(double steps_a_second) {
    ask([&](Wanted&) { speed_ = steps_a_second; });
}
void Playground::rewind() {
    ask([&](Wanted& w) { w.seek = 0, run_ = false; });
}
void Playground::new_seed() {
    ask([&](Wanted& w) { w.seed = view_.curve.seed + 1; });
}
void Playground::seek(uint32_t step) {
    ask([&](Wanted& w) { w.seek = step, run_ = false; });
}
void Playground::switch_head(uint32_t head) {
    ask([&](Wanted& w) { view_.heads_off ^= uint64_t{1} << head, w.probe = true; });
}
void Playground::set_sequence(std::vector<uint32_t> tokens) {
    ask([&](Wanted& w) { w.sequence = std::move(tokens); });
}

TrainingView Playground::view() const {
    const std::lock_guard lock(mutex_);
    TrainingView view = view_;
    view.running = run_;
    return view;
}

bool Playground::idle() const {
    const std::lock_guard lock(mutex_);
    return !run_ && !busy_ && !wanted_.any();
}

TrainingPlace Playground::place() const {
    const std::lock_guard lock(mutex_);
    if (wanted_.place) return *wanted_.place;
    const bool own = view_.sequence != view_.task.sample;
    return {view_.task.options, view_.curve.seed, view_.step, view_.heads_off,
            own ? task_text(view_.task, view_.sequence) : ""};
}

// ---- the thread ----

void Playground::fail(const Error& why) {
    const std::lock_guard lock(mutex_);
    view_.problem = why.text;
    run_ = false;
}

// False: the program ends.
bool Playground::note(const StepReport& report) {
    const std::lock_guard lock(mutex_);
    // Steps that are taken again give the same report.
    if (report.step == view_.curve.points.size()) view_.curve.points.push_back(report);
    view_.last = std::max(view_.last, report.step + 1);
    return !ending_;
}

void Playground::look(bool judge) {
    ForwardOptions options;
    std::vector<uint32_t> sequence;
    {
        const std::lock_guard lock(mutex_);
        options.heads_off = view_.heads_off;
        sequence = view_.sequence;
    }
    const TrainState& state = training_->state();
    Result<Probe> probe = training_->trainer().probe(state, sequence, options);
    const Result<Batch> batch = probe_batch(training_->task(), sequence);
    std::optional<StepReport> judged;
    if (judge)
        if (Result<StepReport> report = training_->trainer().evaluate(state, options))
            judged = std::move(*report);
    {
        const std::lock_guard lock(mutex_);
        view_.step = state.step;
        shown_ = state;
        if (probe)
            view_.probe = std::move(*probe);
        else
            view_.problem = probe.error().text;
        if (batch) view_.cells = batch->cells;
        view_.judged = std::move(judged);
    }
    ++changes_;
    if (wake_) wake_();
}

void Playground::open(const TrainingPlace& place) {
    training_.reset();
    Result<Task> task = make_task(place.options);
    Result<std::vector<uint32_t>> tokens = task ? task_tokens(*task, place.tokens) : task.error();
    Result<TrainingRun> run = task ? TrainingRun::open(*task, place.seed) : task.error();
    {
        const std::lock_guard lock(mutex_);
        view_ = TrainingView{};
        if (task) {
            view_.task = std::move(*task);
            view_.sequence = tokens && !tokens->empty() ? std::move(*tokens) : view_.task.sample;
        }
        view_.curve = {place.seed, {}};
        view_.heads_off = place.heads_off;
        // The task's own sequence replaces one that cannot be read.
        if (!tokens) view_.problem = tokens.error().text;
    }
    if (!run) return fail(run.error());
    training_.emplace(std::move(*run));
}

void Playground::follow(Wanted wanted) {
    if (wanted.seed) {
        const std::lock_guard lock(mutex_);
        if (!view_.curve.points.empty()) view_.others.push_back(view_.curve);
        if (view_.others.size() > kMaxRuns) view_.others.erase(view_.others.begin());
        training_->begin(*wanted.seed);
        view_.curve = {*wanted.seed, {}};
        view_.last = 0;
        view_.problem.clear();
    }
    if (wanted.sequence) {
        const std::lock_guard lock(mutex_);
        view_.sequence = std::move(*wanted.sequence);
    }
    uint32_t to = training_->state().step + wanted.steps;
    if (wanted.seek) {
        const std::lock_guard lock(mutex_);
        to = std::min(*wanted.seek, view_.last) + wanted.steps;
    }
    if (wanted.place) to = wanted.place->step;
    Clock::time_point glimpse = Clock::now() + kGlimpse;
    const Result<void> there = training_->seek(to, [&](const StepReport& report) {
        if (!note(report)) return false;
        if (Clock::now() >= glimpse) look(false), glimpse = Clock::now() + kGlimpse;
        return true;
    });
    if (!there) fail(there.error());
    look(true);
}

void Playground::work() {
    Clock::time_point due = Clock::now();
    while (true) {
        Wanted wanted;
        bool runs = false;
        double speed = 0;
        {
            std::unique_lock lock(mutex_);
            busy_ = false;
            asked_.wait(lock, [&] { return ending_ || run_ || wanted_.any(); });
            if (ending_) return;
            wanted = std::exchange(wanted_, {});
            runs = run_, speed = speed_, busy_ = true;
        }
        if (wanted.place) open(*wanted.place);
        if (!training_) {
            ++changes_;
            if (wake_) wake_();
            const std::lock_guard lock(mutex_);
            run_ = false;
            continue;
        }
        if (wanted.any()) follow(std::move(wanted));
        if (!runs) continue;
        const Result<StepReport> report = training_->step();
        if (!report) {
            fail(report.error());
            continue;
        }
        note(*report);
        look(false);
        if (speed <= 0) continue;
        due = std::max(
            due + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / speed)),
            Clock::now() - std::chrono::milliseconds(100));
        std::unique_lock lock(mutex_);
        asked_.wait_until(lock, due, [&] { return ending_ || !run_ || wanted_.any(); });
    }
}

// ---- out of it ----

Result<LearnedModel> Playground::model() const {
    const std::lock_guard lock(mutex_);
    return state_model(shown_);
}

Result<void> Playground::save_state(const std::filesystem::path& path) const {
    const TrainState state = [&] {
        const std::lock_guard lock(mutex_);
        return shown_;
    }();
    const Result<TensorSet> tensors = state_tensors(state);
    if (!tensors) return tensors.error();
    const Result<uint64_t> saved = save_safetensors(path, *tensors);
    return saved ? Result<void>() : Result<void>(saved.error());
}

Result<void> Playground::save_curves(const std::filesystem::path& path) const {
    const TrainingView now = view();
    std::vector<TrainingCurve> all = now.others;
    all.push_back(now.curve);
    std::vector<std::string> columns = {"seed", "step", "loss", "accuracy"};
    for (const HeadScore score : now.task.scores) columns.emplace_back(head_score_name(score));
    std::vector<float> values;
    for (const TrainingCurve& curve : all)
        for (const StepReport& report : curve.points) {
            values.insert(values.end(), {float(curve.seed), float(report.step), float(report.loss),
                                         float(report.accuracy)});
            for (const HeadScore score : now.task.scores) values.push_back(best_head(report, score).value);
        }
    if (values.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "curves", "the curves are empty; take a step first"};
    const uint64_t rows = values.size() / columns.size();
    Result<Tensor> table = make_tensor("curves", {rows, columns.size()}, std::move(values));
    if (!table) return table.error();
    const Result<uint64_t> saved = save_csv(path, *table, columns);
    return saved ? Result<void>() : Result<void>(saved.error());
}

Playground& Training::playground() {
    if (playground_) return *playground_;
    playground_ = std::make_unique<Playground>(background_.end_of_step());
    // The shown task first, where it can be trained here: that of the text takes hours and a text.
    const Result<TaskKind> shown = task_from_name(document_.settings().task);
    if (shown && *shown != TaskKind::text) playground_->choose(*shown);
    return *playground_;
}

const TrainingView& Training::view() {
    const uint64_t now = playground().changes() + 1;
    if (std::exchange(seen_, now) != now) view_ = playground_->view();
    view_.running = playground_->runs();
    return view_;
}

}  // namespace fovea::visualizer

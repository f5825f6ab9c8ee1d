#include "model/playground.hpp"

#include <fovea/inspect.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace fovea::visualizer {
namespace {

// States that are kept; beyond them every other one goes and the stride doubles.
constexpr size_t kMostStates = 128;

}  // namespace

Playground::Playground(std::function<void()> wake) : wake_(std::move(wake)) {
    view_.task = make_task(TaskKind::induction);
    wanted_.kind = TaskKind::induction;
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
    ask([&](Wanted& w) { w = {}, w.kind = kind, run_ = false; });
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

// ---- the thread ----

void Playground::begin(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    state_ = start_training(view_.task, seed);
    kept_.clear();
    stride_ = 1;
    view_.curve = {seed, {}};
    view_.last = 0;
    view_.problem.clear();
}

void Playground::keep_state() {
    if (state_.step % stride_ != 0) return;
    kept_[state_.step] = state_;
    if (kept_.size() <= kMostStates) return;
    stride_ *= 2;
    std::erase_if(kept_, [&](const auto& one) { return one.first % stride_ != 0; });
}

bool Playground::take_step(Trainer& trainer) {
    keep_state();
    const Result<StepReport> report = trainer.step(state_);
    const std::lock_guard lock(mutex_);
    if (!report) {
        view_.problem = report.error().text;
        run_ = false;
        return false;
    }
    // Steps that are taken again give the same report.
    if (report->step == view_.curve.points.size()) view_.curve.points.push_back(*report);
    view_.last = std::max(view_.last, state_.step);
    return true;
}

void Playground::look(Trainer& trainer, bool judge) {
    ForwardOptions options;
    std::vector<uint32_t> sequence;
    {
        const std::lock_guard lock(mutex_);
        options.heads_off = view_.heads_off;
        sequence = view_.sequence;
    }
    Result<Probe> probe = trainer.probe(state_, sequence, options);
    std::optional<StepReport> judged;
    if (judge)
        if (Result<StepReport> report = trainer.evaluate(state_, options)) judged = std::move(*report);
    {
        const std::lock_guard lock(mutex_);
        view_.step = state_.step;
        shown_ = state_;
        if (probe)
            view_.probe = std::move(*probe);
        else
            view_.problem = probe.error().text;
        view_.judged = std::move(judged);
    }
    ++changes_;
    if (wake_) wake_();
}

bool Playground::follow(Wanted wanted, Trainer& trainer) {
    if (wanted.seed) {
        {
            const std::lock_guard lock(mutex_);
            if (!view_.curve.points.empty()) view_.others.push_back(view_.curve);
            if (view_.others.size() > kMostRuns) view_.others.erase(view_.others.begin());
        }
        begin(*wanted.seed);
    }
    if (wanted.sequence) {
        const std::lock_guard lock(mutex_);
        view_.sequence = std::move(*wanted.sequence);
    }
    if (wanted.seek) {
        const uint32_t last = [&] {
            const std::lock_guard lock(mutex_);
            return view_.last;
        }();
        const uint32_t target = std::min(*wanted.seek, last);
        keep_state();
        auto at = kept_.upper_bound(target);
        if (at != kept_.begin()) state_ = std::prev(at)->second;
        while (state_.step < target && take_step(trainer)) {
        }
    }
    for (uint32_t n = 0; n < wanted.steps && take_step(trainer); ++n) {
    }
    look(trainer, true);
    return true;
}

void Playground::work() {
    std::optional<Trainer> trainer;
    using Clock = std::chrono::steady_clock;
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
            if (wanted.kind) {
                view_ = TrainingView{};
                view_.task = make_task(*wanted.kind);
                view_.sequence = view_.task.sample;
            }
        }
        if (wanted.kind) {
            Result<Trainer> opened = Trainer::open(view_.task);
            if (!opened) {
                const std::lock_guard lock(mutex_);
                view_.problem = opened.error().text;
                run_ = false;
                continue;
            }
            trainer.emplace(std::move(*opened));
            begin(1);
        }
        if (!trainer) continue;
        if (wanted.any()) follow(std::move(wanted), *trainer);
        if (!runs) continue;
        if (!take_step(*trainer)) continue;
        look(*trainer, false);
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
    if (values.empty()) return Error{FOVEA_INVALID_ARGUMENT, "curves", "no step was taken yet"};
    const uint64_t rows = values.size() / columns.size();
    Result<Tensor> table = make_tensor("curves", {rows, columns.size()}, std::move(values));
    if (!table) return table.error();
    const Result<uint64_t> saved = save_csv(path, *table, columns);
    return saved ? Result<void>() : Result<void>(saved.error());
}

}  // namespace fovea::visualizer

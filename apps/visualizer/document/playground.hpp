// A small model that trains while the reader watches: the steps of <fovea/train.hpp> on a thread of their
// own. A step depends only on the state, so that any past step can be shown again.
#pragma once

#include "document/document.hpp"

#include <fovea/train/state_file.hpp>
#include <fovea/train/training_run.hpp>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fovea::visualizer {

// One run's reports, a point for each step: of the state before it, on the step's own sequences.
struct TrainingCurve {
    uint64_t seed = 1;
    std::vector<StepReport> points;
};

// The panel's view of a playground. It is a copy, so that the thread can go on.
struct TrainingView {
    Task task;
    bool running = false;
    std::string problem;  // why training stopped; empty: it did not
    uint32_t step = 0;    // step of the shown state
    uint32_t last = 0;    // the latest that the run has come to
    uint64_t heads_off = 0;
    std::vector<uint32_t> sequence;    // the reader's, or the task's sample
    Probe probe;                       // results of the shown state on the sequence
    std::vector<ScoreCell> cells;      // cells of the sequence whose weights a score averages
    std::optional<StepReport> judged;  // results of the shown state on held-out sequences; none while it runs
    TrainingCurve curve;
    std::vector<TrainingCurve> others;  // runs before, to compare
};

class Playground {
  public:
    static constexpr size_t kMaxRuns = 4;  // in addition to the present one

    // `wake` is called from the thread when there is something new to draw.
    explicit Playground(std::function<void()> wake);
    ~Playground();
    Playground(const Playground&) = delete;
    Playground& operator=(const Playground&) = delete;

    // All of these return at once; the thread follows.
    void choose(TaskKind kind);
    void go_to(const TrainingPlace& place);  // computes its steps now and shows them meanwhile
    void run(bool on);
    void step_once();
    void set_speed(double steps_a_second);  // 0: as fast as it goes
    void rewind();                          // to step 0 of the same seed
    void new_seed();                        // the next one; the run so far is kept to compare
    void seek(uint32_t step);               // shows a step that was taken, and stops there
    void switch_head(uint32_t head);        // layer * heads + head: off or on
    void set_sequence(std::vector<uint32_t> tokens);

    TrainingView view() const;
    // Another number whenever the view has become another one.
    uint64_t changes() const { return changes_; }
    bool runs() const {
        const std::lock_guard lock(mutex_);
        return run_;
    }
    // True if all requests are done and nothing runs.
    bool idle() const;
    // Returns the place that go_to() would show again.
    TrainingPlace place() const;

    // The shown state as a model that every panel takes, and as a file that `fovea train --resume` takes.
    Result<LearnedModel> model() const;
    Result<void> save_state(const std::filesystem::path& path) const;
    // Each run's loss, accuracy and best score of each kind, a row for each step.
    Result<void> save_curves(const std::filesystem::path& path) const;

  private:
    struct Wanted {
        std::optional<TrainingPlace> place;
        std::optional<uint64_t> seed;
        std::optional<uint32_t> seek;
        std::optional<std::vector<uint32_t>> sequence;
        uint32_t steps = 0;
        bool probe = false;
        bool any() const { return place || seed || seek || sequence || steps > 0 || probe; }
    };
    void work();
    void open(const TrainingPlace& place);
    void follow(Wanted wanted);
    bool note(const StepReport& report);
    void fail(const Error& why);
    void look(bool judge);
    void ask(const std::function<void(Wanted&)>& what);

    const std::function<void()> wake_;
    mutable std::mutex mutex_;  // protects all fields that follow, except the thread's own
    std::condition_variable asked_;
    Wanted wanted_;
    bool run_ = false, busy_ = false, ending_ = false;
    double speed_ = 20;
    TrainingView view_;
    TrainState shown_;
    std::atomic<uint64_t> changes_{0};
    std::optional<TrainingRun> training_;  // the thread's own
    std::thread thread_;
};

// The playground of a window, begun when it is first asked for.
class Training {
  public:
    Training(const Background& background, const Document& document)
        : background_(background), document_(document) {}

    Playground& playground();
    // As of the last change.
    const TrainingView& view();
    // Returns the reader's place in the training; none if there is no training.
    std::optional<TrainingPlace> place() const {
        return playground_ ? std::optional(playground_->place()) : std::nullopt;
    }
    // It is at work on what it was asked for; a run that goes on by itself is not waited for.
    bool is_behind() const { return playground_ && !playground_->runs() && !playground_->idle(); }
    uint64_t changes() const { return playground_ ? playground_->changes() : 0; }

  private:
    const Background& background_;
    const Document& document_;
    std::unique_ptr<Playground> playground_;
    uint64_t seen_ = 0;
    TrainingView view_;
};

}  // namespace fovea::visualizer

// A training run that can be wound back and found again: its task, seed and step, as the session key `train`
// says it, and the states that its steps go on from.
//
//   const Result<TrainingPlace> place = read_training_place("induction,1,150,2,");
//   Result<TrainingRun> run = TrainingRun::open(*make_task(place->options), place->seed);
//   const Result<void> there = run->seek(place->step, [](const StepReport&) { return true; });
#pragma once

#include <fovea/train/trainer.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace fovea {

// The reader's position in a run. The whole run can be computed again from it.
struct TrainingPlace {
    TaskOptions options;
    uint64_t seed = 1;
    uint32_t step = 0;
    uint64_t heads_off = 0;  // bit layer * heads + head
    std::string tokens;  // the sequence that is looked at, tokens with spaces between; empty: the task's own
    friend bool operator==(const TrainingPlace&, const TrainingPlace&) = default;
};
inline constexpr uint32_t kMaxTrainingSteps = 100000;  // a link repeats its steps while a reader waits
// "TASK[+CHANGE...],SEED,STEP,HEADS OFF,TOKENS", as "induction+nostart,1,150,2,q c d q": what is left out at
// the end is as above. CHANGE: nostart (no first token), copy (the loss counts the copy only), nobias
// (queries and keys without), and positions, which are nopositions, learned or rotary. Rejects anything else,
// a change that the task does not have, TaskKind::text, and values that are too large; the error names the
// part.
Result<TrainingPlace> read_training_place(std::string_view text);
// Returns a text that read_training_place() reads as the same place.
std::string write_training_place(const TrainingPlace& place);

// Returns the tokens of a task's vocabulary from their texts with spaces between. Rejects unknown words.
Result<std::vector<uint32_t>> task_tokens(const Task& task, std::string_view text);
std::string task_text(const Task& task, std::span<const uint32_t> tokens);

// A state, its trainer on this CPU, and some of the states before it, so that going back to a step costs few
// steps. Memory: at most 128 states. One thread at a time.
class TrainingRun {
  public:
    // At step 0. Errors are make_task()'s and the planner's.
    static Result<TrainingRun> open(Task task, uint64_t seed);

    const Task& task() const { return trainer_.task(); }
    const TrainState& state() const { return state_; }
    Trainer& trainer() { return trainer_; }
    // Step 0 of another seed.
    void begin(uint64_t seed);
    Result<StepReport> step();
    // To any step, earlier or later, with the same bits as the first time. Each step that is taken is told to
    // `told`, which ends the way there by false.
    Result<void> seek(uint32_t step, const std::function<bool(const StepReport&)>& told);

  private:
    TrainingRun(Trainer trainer, TrainState state);
    void keep();

    Trainer trainer_;
    TrainState state_;
    std::map<uint32_t, TrainState> kept_;  // by step, 0 always among them
    uint32_t stride_ = 1;
};

}  // namespace fovea

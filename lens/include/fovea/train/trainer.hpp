// A training run: a state, and the step to the next one.
//
//   const Task task = make_task(TaskKind::induction);
//   TrainState state = start_training(task, 1);
//   Result<Trainer> trainer = Trainer::open(task);
//   for (int n = 0; n < 400; ++n) { Result<StepReport> report = trainer->step(state); ... }
//
// A step is a pure function of the state: the same state gives the same next one, bit for bit, on one device,
// whatever ran in between. So a copy of a state is all that it takes to rewind, and seed and step all that it
// takes to name one.
#pragma once

#include <fovea/model/runner.hpp>
#include <fovea/train/task.hpp>

#include <memory>
#include <span>

namespace fovea {

// One tensor among a model's weights, which are contiguous in one array of float32.
struct WeightEntry {
    std::string name;              // "layers.0.query.weight", ...
    std::vector<uint64_t> shape;   // matrices of linear layers are [out, in]
    size_t offset = 0, count = 0;  // in floats
};
// In the order of the array.
std::vector<WeightEntry> weight_entries(const TaskModel& model);

// All that there is between two steps.
struct TrainState {
    TaskOptions options;
    uint64_t seed = 0;
    uint32_t step = 0;                // steps done
    std::vector<float> weights;       // see weight_entries()
    std::vector<float> mean, square;  // Adam's moments of the gradients, of the same length
    friend bool operator==(const TrainState&, const TrainState&) = default;
};
// Step 0: weights drawn for the seed, moments zero.
TrainState start_training(const Task& task, uint64_t seed);

// The model's results on some sequences.
struct StepReport {
    uint32_t step = 0;              // step of the evaluated state: 0 before the first step
    double objective = 0;           // mean loss in nats over what is trained
    double loss = 0;                // and over what can be known; guessing gives ln(vocabulary)
    double accuracy = 0;            // share of what can be known that is said right
    std::vector<HeadScores> heads;  // [layers * heads], layer by layer
};
// The head that has most of a score, and how much: index layer * heads + head. A score that the task has not:
// head 0, NaN.
struct BestHead {
    uint32_t head = 0;
    float value = 0;
};
BestHead best_head(const StepReport& report, HeadScore score);
// The label of a head: its largest score. It has no name if that is below 0.4.
struct HeadLabel {
    bool named = false;
    HeadScore score = HeadScore::previous;
    float value = 0;
    std::string text;  // "previous token"; "no clear role" without a name
};
HeadLabel head_label(const HeadScores& scores);
// True if the report reaches the task's goal.
bool reaches(const StepReport& report, const TaskGoal& goal);

// Heads that are switched off (bit layer * heads + head): their context is zero.
struct ForwardOptions {
    uint64_t heads_off = 0;
};

// A model's forward pass over one sequence, for showing it.
struct Probe {
    uint32_t length = 0, vocabulary = 0, heads = 0;  // heads of all layers
    std::vector<float> probabilities;                // [length, vocabulary]: of what comes next
    std::vector<float> weights;      // [heads, length, length], layer by layer; 0 where hidden
    std::vector<uint32_t> said;      // [length]: the likeliest next token
    std::vector<HeadScores> scores;  // [heads], read off this sequence; NaN where it has no such cell
    double accuracy = 0, loss = 0;   // over what can be known in it; NaN where that is nothing
};

// Plans and memory for one task's model on one device. One trainer, one thread; any number of states.
class Trainer {
  public:
    // `device` null: this CPU, on this thread. A given device is borrowed and must outlive the trainer.
    // Errors are the planner's.
    static Result<Trainer> open(const Task& task, Runner* device = nullptr);
    Trainer(Trainer&&) noexcept;
    Trainer& operator=(Trainer&&) noexcept;
    ~Trainer();

    const Task& task() const;
    // Trains one step. The report describes the state before the step, on the step's own sequences. Rejects a
    // state of another task, a text task without its text, and a loss that is not finite (the state is then
    // unchanged); the error names the cause.
    Result<StepReport> step(TrainState& state);
    // On sequences that were kept back, 4 batches of them.
    Result<StepReport> evaluate(const TrainState& state, const ForwardOptions& options = {});
    // Takes at most `context` tokens.
    Result<Probe> probe(const TrainState& state, std::span<const uint32_t> tokens,
                        const ForwardOptions& options = {});
    // Gradient of the objective for the batch of the state's step, in the layout of the weights; the state
    // stays. For tests and for those who look.
    Result<std::vector<float>> gradient(const TrainState& state);

  private:
    class Impl;
    explicit Trainer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// Trains one step of a run for a program that keeps no trainer: opens one on this CPU.
Result<StepReport> train_step(TrainState& state);

}  // namespace fovea

// Training tasks of small models. A task is a description: its data are a pure function of it, the seed and
// the step (Philox4x32-10 of seed, step and row, see fovea.h), so any batch can be made again without the
// earlier ones. Nothing here keeps state, throws or prints; all functions are safe from any thread.
#pragma once

#include <fovea/fovea.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

class TrainingText;  // <fovea/train/training_text.hpp>

/// The tasks that a small model can learn.
enum class TaskKind {
    induction,  // go on with a word that is repeated: "x q c d a b c d a b" -> "c d"
    sort,       // numbers, then the same numbers in rising order
    reverse,    // symbols, then the same symbols from the last to the first
    recall,     // pairs of key and value, then keys in another order: say each one's value
    text        // go on with a text, token by token: the last
};
inline constexpr uint32_t kTaskKinds = uint32_t(TaskKind::text) + 1;
std::string_view task_name(TaskKind kind);  // as it is written above
// The error lists the names that there are.
Result<TaskKind> task_from_name(std::string_view name);

// How a model encodes a token's position. learned: a vector for each position is added to the token's.
// rotary: queries and keys are rotated by their positions (Su et al., RoFormer, 2021).
enum class Positions { none, learned, rotary };
std::string_view positions_name(Positions positions);  // "none", "learned", "rotary"
Result<Positions> positions_from_name(std::string_view name);

// The parameters of a task that a reader may change. task_options() returns those that learn it best; every
// other choice shows what a part of the model is for.
struct TaskOptions {
    TaskKind kind = TaskKind::induction;
    bool first_token = true;     // induction: sequences begin with a token that is always the same
    bool copy_only = false;      // induction: the loss counts only what can be known
    bool query_key_bias = true;  // queries and keys have biases
    Positions positions = Positions::rotary;
    friend bool operator==(const TaskOptions&, const TaskOptions&) = default;
};
TaskOptions task_options(TaskKind kind);

// Scores that describe a head by its attention weights: the mean weight on the cells that the name describes.
enum class HeadScore : uint8_t {
    previous,     // the token before
    induction,    // tokens that came after earlier places of the same token (Olsson et al., 2022)
    sink,         // the first token, while there is nothing to copy (Xiao et al., 2023)
    next_larger,  // the number that comes next in the sorted row
    mirror,       // the symbol that comes next in the reversed row
    current,      // the token itself
    duplicate,    // earlier places of the same token
    near,         // the second to the eighth token back
    far           // all earlier tokens except the first
};
inline constexpr size_t kHeadScores = 9;
std::string_view head_score_name(HeadScore score);   // as it is written above
std::string_view head_score_label(HeadScore score);  // for people: "previous token", "first token", ...
// A value for each score; NaN where the task does not have it.
using HeadScores = std::array<float, kHeadScores>;

// Sizes of the model that learns a task: `layers` blocks of causal self-attention with a residual and, if
// asked for, a LayerNorm before; an embedding and a separate unembedding. There is no feed-forward part.
struct TaskModel {
    uint32_t vocabulary = 0, context = 0;  // tokens that there are; of a sequence
    uint32_t layers = 0, heads = 0, head_dim = 0;
    uint32_t width() const { return heads * head_dim; }
    bool layer_norm = false;
    bool query_key_bias = false;
    Positions positions = Positions::none;
    uint32_t rope_theta = 10000;
    friend bool operator==(const TaskModel&, const TaskModel&) = default;
};

// How it is trained: Adam (Kingma and Ba, 2014), gradients clipped to a length, the rate raised evenly over
// the first steps and, where asked, lowered evenly over the last ones.
struct TaskRecipe {
    uint32_t batch = 16;  // sequences of a step
    double learning_rate = 1e-2;
    uint32_t warm_up_steps = 20;
    double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
    double longest_gradient = 1;
    // The rate falls between these steps, to a fiftieth; equal: it does not fall.
    uint32_t cooling_from = 0, cooling_to = 0;
    // The rate of step `step`, the first being 1.
    double rate(uint32_t step) const;
};

// When a task counts as learned, and by which step it is with every seed that was tried. Scores are those of
// the best head; 0: not asked for.
struct TaskGoal {
    double accuracy = 0;
    HeadScores scores{};
    uint32_t within_steps = 0;
};

// A task with all that follows from its options.
struct Task {
    TaskOptions options;
    TaskModel model;
    TaskRecipe recipe;
    TaskGoal goal;
    std::vector<HeadScore> scores;        // the scores that the task has, the most informative first
    std::vector<std::string> vocabulary;  // a text for each token
    std::vector<uint32_t> sample;         // a sequence that shows what the task is, at most `context` tokens
    std::shared_ptr<const TrainingText> text;  // only for TaskKind::text
};
// Rejects an option of another task, with its name, and TaskKind::text, for which make_text_task() needs a
// text.
Result<Task> make_task(const TaskOptions& options);
// The preset; not of TaskKind::text.
Task make_task(TaskKind kind);

// Weights that a score is the mean of: in sequence `row`, of `query` on `key`.
struct ScoreCell {
    HeadScore score;
    uint32_t row, query, key;
};

// Sequences with what is to be said at each place. Arrays are [rows, context].
struct Batch {
    uint32_t rows = 0, context = 0;
    std::vector<uint32_t> tokens, targets;
    std::vector<float> loss_weights;  // 0: not trained
    std::vector<uint8_t> scored;      // 1: can be known, and counts for accuracy and the loss that is shown
    std::vector<ScoreCell> cells;
    std::array<uint32_t, kHeadScores> score_rows{};  // number of query rows with cells of a score; the score
                                                     // is the sum over its cells divided by this
};
// The batch of one step of the training run with this seed. A text task must have its text
// (TrainingText::has_text), as it must for held_out_batch().
Batch training_batch(const Task& task, uint64_t seed, uint32_t step);
// For judging a model: sequences that no training run sees, the same for every seed; `part` 0, 1, ... are
// different ones.
Batch held_out_batch(const Task& task, uint32_t part);
// Returns a batch whose first row is the reader's sequence of at most `context` tokens, padded with token 0,
// which no earlier token attends to. It scores and measures only what can be predicted from the sequence
// itself, whose targets are the correct ones; nothing is trained. Rejects tokens outside the vocabulary, and
// sequences that are empty or too long.
Result<Batch> probe_batch(const Task& task, std::span<const uint32_t> tokens);

}  // namespace fovea

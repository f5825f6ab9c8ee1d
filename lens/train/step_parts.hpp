// The parts of a training step other than the layers: loss, Adam and head scores.
#pragma once

#include <fovea/train/trainer.hpp>

namespace fovea {

// ---- cross-entropy of the next token, with its gradient ----

struct LossReport {
    double objective = 0;  // mean over the loss weights
    double loss = 0;       // mean over what is scored; NaN where that is nothing
    double accuracy = 0;   // share of it whose likeliest token is the target
};

// logits [rows * context, vocabulary]. dlogits, the gradient of the objective, may be null; may be `logits`
// itself. `probabilities` and `said` may be null.
LossReport cross_entropy(const Batch& batch, uint32_t vocabulary, const float* logits, float* dlogits,
                         float* probabilities, uint32_t* said);

// ---- Adam ----

// One step of Adam (Kingma and Ba, 2014) with the state's own step number; counts the step. A gradient longer
// than the recipe allows is first shortened to that length (Pascanu et al., 2013). If its length is not
// finite, returns false and changes nothing.
bool adam_step(const TaskRecipe& recipe, std::vector<float>& gradient, TrainState& state);

// ---- head scores from queries, keys and lse, cell by cell: no matrix of weights is made ----

// One layer's attention on a batch: queries and keys [rows, context, heads, head_dim], lse [rows, heads,
// context].
struct LayerWeights {
    const float* q;
    const float* k;
    const float* lse;
};

// The weight of one cell: exp(q . k / sqrt(head_dim) - lse).
float weight_of(const TaskModel& model, const LayerWeights& layer, uint32_t row, uint32_t head,
                uint32_t query, uint32_t key);

// Adds the weights of the batch's cells: sums[head][score].
void add_scores(const TaskModel& model, const Batch& batch, const LayerWeights& layer,
                std::span<std::array<double, kHeadScores>> sums);

}  // namespace fovea

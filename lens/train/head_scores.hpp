// Head scores from queries, keys and lse, cell by cell: no matrix of weights is made.
#pragma once

#include <fovea/train/trainer.hpp>

namespace fovea {

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

// Predicts the next token: logits of rows of the residual stream, and the most likely tokens of a row.
#pragma once

#include <fovea/model/transformer.hpp>

#include <span>
#include <vector>

namespace fovea {

// A token that may come next.
struct NextToken {
    uint32_t id = 0;
    float logit = 0;
    double probability = 0;  // by the softmax of all logits, in float64
};
// Rejects a row without logits, and one with a logit that is not finite: no token can be chosen from it.
Result<void> check_logits(std::span<const float> logits);
// Returns the tokens with the largest logits of one row, largest first; of equal ones the first. Unless
// `most` is 0, it rejects what check_logits() rejects.
Result<std::vector<NextToken>> next_tokens(std::span<const float> logits, size_t most);

// The most likely tokens, with their values in the unchanged model.
struct ComparedTokens {
    std::vector<NextToken> next;       // the likeliest
    std::vector<NextToken> before;     // the likeliest without the changes, as many
    std::vector<NextToken> unchanged;  // each token of `next` without the changes
};
// Compares one row of logits with the unchanged model's. If `unchanged` is empty there are no changes, and
// only `next` is filled.
Result<ComparedTokens> compared_tokens(std::span<const float> logits, std::span<const float> unchanged,
                                       size_t most);

// Turns rows [rows, width] after any block of a model into logits [rows, vocabulary]: final norm, prediction
// head and unembedding, in plain float32. After the last block these are the model's predictions; after an
// earlier block they are the logit lens (nostalgebraist, 2020). Rejects a model without an unembedding and
// rows of another width. For a checkpoint use CheckpointModel::logits().
Result<F32Tensor> logits_of(const Model& model, F32Tensor rows);

}  // namespace fovea

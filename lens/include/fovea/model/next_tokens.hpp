// What a model says next: rows of its residual stream as logits, and the likeliest tokens of a row.
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
// Refuses a row without logits, and one with a logit that is not finite: nothing can be chosen by it.
Result<void> check_logits(std::span<const float> logits);
// The tokens with the largest logits of one row, largest first; of equal ones the first. Refused, unless
// `most` is 0: what check_logits() refuses.
Result<std::vector<NextToken>> next_tokens(std::span<const float> logits, size_t most);

// The likeliest tokens beside what the model says without a reader's changes.
struct ComparedTokens {
    std::vector<NextToken> next;       // the likeliest
    std::vector<NextToken> before;     // the likeliest without the changes, as many
    std::vector<NextToken> unchanged;  // each token of `next` without the changes
};
// Of one row of logits each. `unchanged` is empty where there are no changes: then only `next` is filled.
Result<ComparedTokens> compared_tokens(std::span<const float> logits, std::span<const float> unchanged,
                                       size_t most);

// Rows [rows, width] behind any block of a model to logits [rows, vocabulary]: final norm, prediction head
// and unembedding, in plain float32. Behind the last block it is what the model says; behind an earlier one
// the logit lens (nostalgebraist, 2020). Refused: a model without an unembedding, rows of another width. Of a
// checkpoint, see CheckpointModel::logits().
Result<F32Tensor> logits_of(const Model& model, F32Tensor rows);

}  // namespace fovea

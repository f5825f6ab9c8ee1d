// Cross-entropy of the next token, with its gradient.
#pragma once

#include <fovea/train/task.hpp>

namespace fovea {

struct LossReport {
    double objective = 0;  // mean over the loss weights
    double loss = 0;       // mean over what is scored; NaN where that is nothing
    double accuracy = 0;   // share of it whose likeliest token is the target
};

// logits [rows * context, vocabulary]. dlogits, the gradient of the objective, may be null; may be `logits`
// itself. `probabilities` and `said` may be null.
LossReport cross_entropy(const Batch& batch, uint32_t vocabulary, const float* logits, float* dlogits,
                         float* probabilities, uint32_t* said);

}  // namespace fovea

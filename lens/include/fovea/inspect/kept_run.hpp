// A model on a text, keeping the tensors that a caller names.
#pragma once

#include <fovea/model/checkpoint_model.hpp>

#include <span>
#include <string>
#include <vector>

namespace fovea {

// Runs a model and returns the tensors named by `keep`, in its order. A place after a colon picks a part:
// "weights:3.1" is head 1 of layer 3, "q:3" has all heads of layer 3. Names:
//   hidden       [layers + 1, tokens, width]: what enters each layer, and what leaves the last. ":N": one
//   logits       [tokens, vocabulary]. ":T": [vocabulary], after token T, in the order of generation's sums
//   q, k, v      [layers, heads, tokens, head width], as attention takes them; k and v have the KV heads
//   context      the same of o, what the heads give to the output projection
//   lse          [layers, heads, tokens]
//   other stages of a layer by their names (stage_name): "weights", "scores" [layers, heads, tokens, tokens],
//                "ff_hidden" [layers, tokens, columns], ...
// A place drops the axes that it names. Of the options the changes, hook, entering state and arithmetic
// count. The result is never of a part of the text, whatever is kept. Rejects what run_model() rejects,
// unknown names, places outside the model, and more memory than is free.
Result<std::vector<F32Tensor>> run_keeping(const CheckpointModel& model, std::span<const uint32_t> ids,
                                           std::span<const std::string> keep, ModelRunOptions options);

// Rejects a run of more bytes than this machine has free; where that is unknown (not Linux) none. The error
// ends in `hint`.
Result<void> check_memory(uint64_t bytes, std::string_view hint);
// "1.5 GB".
std::string bytes_text(uint64_t bytes);

}  // namespace fovea

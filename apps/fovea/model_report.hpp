// A checkpoint in words and as JSON.
#pragma once

#include "arguments.hpp"

#include "model/tokenizer.hpp"

#include <fovea/model/checkpoint_model.hpp>

#include <optional>
#include <string>

namespace fovea::app {

std::string model_text(const CheckpointModel& model);
std::string model_json(const CheckpointModel& model);

// "12.3 MB"
std::string bytes_text(uint64_t bytes);

// The tokens with the largest logits of one row, with their probabilities, largest first; of equal ones the
// first.
struct NextToken {
    uint32_t id;
    float logit;
    double probability;
};
std::vector<NextToken> next_tokens(std::span<const float> logits, size_t most);

// What the model is run on: --tokens, numbers by comma, or --text with the tokenizer of the model's folder,
// which is then there.
struct ModelTokens {
    std::vector<uint32_t> ids;
    std::optional<TextTokenizer> tokenizer;
};
Result<ModelTokens> input_tokens(const Arguments& arguments, const CheckpointModel& model);
// --threads: from 1 to 1024, or all of the machine.
Result<uint32_t> thread_count(const Arguments& arguments);

}  // namespace fovea::app

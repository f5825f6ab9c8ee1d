// A checkpoint in words and as JSON.
#pragma once

#include "arguments.hpp"

#include <fovea/model/checkpoint_model.hpp>

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

// --tokens: numbers by comma.
Result<std::vector<uint32_t>> token_numbers(std::string_view list);
// --threads: from 1 to 1024, or all of the machine.
Result<uint32_t> thread_count(const Arguments& arguments);

}  // namespace fovea::app

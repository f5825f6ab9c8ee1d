// From a text to queries, keys and values: the small models of the tutorials, with PyTorch's random numbers,
// so that the same seed gives the digits of the reader's notebook.
#pragma once

#include "model/settings.hpp"

#include <fovea/fovea.hpp>
#include <fovea/layers.hpp>

#include <string>
#include <vector>

namespace fovea::visualizer {

// One step of the walk from tokens to contexts that happens outside the attention call.
struct HostStage {
    std::string name, formula;
    F32Tensor tensor;  // [rows, columns], or [heads, rows, columns]
};

struct Projected {
    std::vector<std::string> tokens;
    F32Tensor inputs;               // [L, d_in]
    std::vector<HostStage> stages;  // inputs, weights and what they gave
    F32Tensor q, k, v;              // [1, H, L, D]
    float divisor = 1;              // of the scores, before the temperature
    bool has_output_layer = false;
    Linear output_layer;  // level 6 and 7
};

// Words of the text, at most `limit` of them; punctuation is a token of its own.
std::vector<std::string> split_words(const std::string& text, size_t limit);

// The six words of the tutorials' sentence have the tutorials' vectors; any other word has one drawn from its
// letters.
F32Tensor embed_words(const std::vector<std::string>& tokens);

Result<Projected> project(const Settings& settings);

}  // namespace fovea::visualizer

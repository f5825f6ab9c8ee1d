// From a text to queries, keys and values: the small models of the tutorials, with PyTorch's random numbers,
// so that the same seed gives the digits of the reader's notebook.
#pragma once

#include "model/settings.hpp"

#include <fovea/fovea.hpp>
#include <fovea/model.hpp>

#include <string>
#include <vector>

namespace fovea::visualizer {

// One step of the walk from tokens to contexts that happens outside the attention call.
struct HostStage {
    std::string name, formula;
    F32Tensor tensor;  // [rows, columns], or [heads, rows, columns]
};

// What a file's call has beside queries, keys and values.
struct CallExtras {
    // Heads and rows are those of the call or 1, which stands for all of them.
    uint64_t mask_heads = 0, mask_rows = 0, bias_heads = 0, bias_rows = 0;
    std::vector<uint8_t> mask;        // [mask_heads, mask_rows, keys], 1 is visible; empty: none
    std::vector<float> bias;          // [bias_heads, bias_rows, keys], added to the scores; empty: none
    std::vector<float> sinks, alibi;  // one for each query head, or none
};

struct Projected {
    std::vector<std::string> tokens;
    F32Tensor inputs;               // [L, d_in]
    std::vector<HostStage> stages;  // inputs, weights and what they gave
    F32Tensor q, k, v;              // [1, H, L, D]; k and v may have fewer heads
    float divisor = 1;              // of the scores, before the temperature
    bool has_output_layer = false;
    Linear output_layer;  // level 6 and 7
    CallExtras extras;
    std::vector<std::string> warnings;
};

// The text's tokens, at most `limit` of them. Words: punctuation is a token of its own. Characters: code
// points of UTF-8, spaces too. Bytes: ASCII as it is, others as "c3"; a space stands as an open box.
std::vector<std::string> split_text(const std::string& text, Tokenizer how, size_t limit);

// The six words of the tutorials' sentence have the tutorials' vectors; any other word has one drawn from its
// letters.
F32Tensor embed_words(const std::vector<std::string>& tokens);

// The tokens of the settings' text.
std::vector<std::string> text_tokens(const Settings& settings);
// A normal vector for each token, drawn from its letters: [L, width].
F32Tensor drawn_inputs(const std::vector<std::string>& tokens, uint64_t width);

Result<Projected> project(const Settings& settings);

}  // namespace fovea::visualizer

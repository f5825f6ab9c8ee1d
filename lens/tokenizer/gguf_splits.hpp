// The splits into words that tokenizer.ggml.pre names, after llama.cpp (src/llama-vocab.cpp).
#pragma once

#include <array>
#include <string_view>

namespace fovea {

struct GgufSplit {
    std::string_view names;                    // with a space before and after each
    std::array<std::string_view, 6> patterns;  // applied one after the other
    bool whole_words = false,
         begins = false;  // a word that is a token is not merged; a BOS token comes first
};

// Null where the name is not known.
const GgufSplit* gguf_split(std::string_view name);

}  // namespace fovea

// Classifies a head of a language model by its attention weights on one text.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fovea {

// Means over the text's tokens of the weight that a token's row gives to the named keys; NaN where no token
// of the text has such a key. Of several keys the sum counts.
struct TokenScores {
    float previous = 0;   // the token before; of all tokens but the first
    float induction = 0;  // tokens after earlier occurrences of the same token (Olsson et al., 2022)
    float first = 0;      // the first token; of all others (Xiao et al., 2023)
    float same = 0;       // earlier places of the same token
};
// The scores by name: a key for files, a label for people.
struct TokenScoreName {
    const char *key, *label;
    float TokenScores::*value;
};
std::span<const TokenScoreName> token_score_names();
// The smallest score, a mean weight, by which a head is named.
constexpr float kMinJob = 0.4f;
// Returns the label of the largest score, or "" if none reaches kMinJob.
std::string_view head_job(const TokenScores& scores);

// `weights` is [tokens, tokens] of one head, row-major; `ids` the text's token IDs, as many.
TokenScores token_scores(std::span<const float> weights, std::span<const uint32_t> ids);

}  // namespace fovea

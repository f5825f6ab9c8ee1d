// The job of a head as a sentence for people, and the stripe by which its matrix shows the job.
//
// Nothing here keeps state or throws; all functions are safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// A head's label as text for people; both parts are empty for a label that says nothing ("no clear role").
struct HeadRole {
    std::string sentence;  // "This head looks for what came after the same letter last time"
    std::string stripe;    // text for its stripe; empty: the label has none
};
// `label` is one of LearnedModel::head_labels or of head_job(). `task` names the model's task. It decides how
// its tokens are called: letter, number, key or word; another task's tokens are called tokens.
HeadRole head_role(std::string_view label, std::string_view task = {});

// A slanted run of cells that each hold a large share of their row: cell n is (row + n, column + n * step).
struct WeightStripe {
    uint32_t row = 0, column = 0, length = 0;
    int step = 1;  // columns to the right for each row down: 1 or -1
};
// Returns the longest run of at least three cells with a weight of 0.4 or more. `weights` is [queries,
// columns], row-major. Of equal runs it is the first from the top, those to the right before those to the
// left.
std::optional<WeightStripe> longest_stripe(std::span<const float> weights, uint64_t columns);

// Returns how clearly a head shows the job that its label names, from 0 to 1. That is the mean weight on the
// keys of token_scores(). A label that is none of its scores has the mean along the longest stripe.
// `weights` is [tokens, tokens], row-major; `ids` has as many tokens.
double job_share(std::string_view label, std::span<const float> weights, std::span<const uint32_t> ids);

// True for each token after the first that follows a space of the text from which the tokens were made. Other
// characters are skipped. Empty if each token is a word, or one is missing from the text.
std::vector<bool> word_starts(std::string_view text, std::span<const std::string> tokens);

}  // namespace fovea

// What a model says next behind a token, layer by layer, beside what it says without the reader's changes.
#pragma once

#include "document/settings.hpp"

#include <fovea/model/next_tokens.hpp>

#include <memory>
#include <string>
#include <vector>

namespace fovea::visualizer {

// What enters each layer of a model, and what leaves the last: [tokens, width] each.
using Stream = std::vector<std::shared_ptr<const F32Tensor>>;

struct NextTable {
    struct Entry {
        std::string text;
        NextToken token;
    };
    uint64_t row = 0;                        // the token behind which it says it
    std::vector<std::vector<Entry>> behind;  // of n layers, n = 0 to all of them; the likeliest first
    std::vector<double> unchanged;           // probabilities of the last list's tokens without the changes
    std::vector<Entry> said_before;          // the likeliest without them; empty: there are none
};
// `unchanged` is the stream of the model as it is; empty: `stream` is.
Result<NextTable> next_table(const Settings& settings, const Stream& stream, const Stream& unchanged,
                             uint64_t row);

// Whether the reader has changed what the model does: heads that are off, keys that are hidden, other rules.
bool changes_model(const Settings& settings);

}  // namespace fovea::visualizer

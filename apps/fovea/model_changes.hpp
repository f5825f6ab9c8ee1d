// How `fovea model` departs from a model: heads switched off, scaled or patched, tokens hidden; and which
// score, logit or head it is asked about.
#pragma once

#include "arguments.hpp"

#include <fovea/inspect/writers.hpp>
#include <fovea/model/checkpoint_model.hpp>

#include <optional>

namespace fovea::app {

// True if --off, --scale, --hide, --patch or a related option is given.
bool has_changes(const Arguments& arguments);

// Returns the changes that the options describe for a run on `tokens` tokens. It runs the other text of
// --patch here, with `options`, as far as its heads need. Rejects heads and tokens that do not exist, a head
// named twice, a patch without another text and the reverse, and another text of another length; the error
// names the option.
Result<RunChanges> model_changes(const Arguments& arguments, const CheckpointModel& model, uint64_t tokens,
                                 const ModelRunOptions& options);

// The cell of --why for a text of `tokens` tokens. Rejects a head, query and key that do not exist.
Result<LayerCell> why_cell(const Arguments& arguments, const CheckpointModel& model, uint64_t tokens);

// The position of --logit for a text of `tokens` tokens, and the token ID if one is given.
struct AskedLogit {
    uint64_t position = 0;
    std::optional<uint32_t> token;
};
Result<AskedLogit> asked_logit(const Arguments& arguments, uint64_t tokens);

// The head of --directions, and how many directions it asks for.
struct AskedDirections {
    uint32_t layer = 0, head = 0;
    size_t count = 3;
};
Result<AskedDirections> asked_directions(const Arguments& arguments, const CheckpointModel& model);

}  // namespace fovea::app

// How `fovea model` departs from a model: heads switched off, scaled or patched, tokens hidden.
#pragma once

#include "arguments.hpp"

#include <fovea/model/checkpoint_model.hpp>

namespace fovea::app {

// Whether --off, --scale, --hide, --patch or what belongs to it is given.
bool has_changes(const Arguments& arguments);

// What the options say of a run on `tokens` tokens. The other text of --patch is run here, by `options`, as
// far as its heads need. Refused by the option's name: heads and tokens that there are not, a head named
// twice, a patch without another text and the reverse, another text of another length.
Result<RunChanges> model_changes(const Arguments& arguments, const CheckpointModel& model, uint64_t tokens,
                                 const ModelRunOptions& options);

}  // namespace fovea::app

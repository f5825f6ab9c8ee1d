// States and trained weights as files, and as the models that every program shows.
#pragma once

#include <fovea/files.hpp>
#include <fovea/model/learned.hpp>
#include <fovea/train/trainer.hpp>

namespace fovea {

// The whole state, moments included, in float32: taking it up again gives the bits of never having stopped.
Result<TensorSet> state_tensors(const TrainState& state);
// The weights alone, in float16: half the size of float32 and as good to look at.
Result<TensorSet> weight_tensors(const TrainState& state);
// Either of both. Weights alone make a state whose moments are zero. Refused: tensors or notes that are
// missing, of another shape or type, or not numbers.
Result<TrainState> read_state(const TensorSet& file);

// The state's model as every program takes one.
Result<LearnedModel> state_model(const TrainState& state);

}  // namespace fovea

// States and trained weights as files, and as the models that every program shows.
#pragma once

#include <fovea/files.hpp>
#include <fovea/model/learned.hpp>
#include <fovea/train/trainer.hpp>

namespace fovea {

// A text task, whose vocabulary is that of its text, is given to the forms that take a task.

// The whole state, moments included, in float32: taking it up again gives the bits of never having stopped.
Result<TensorSet> state_tensors(const TrainState& state);
Result<TensorSet> state_tensors(const Task& task, const TrainState& state);
// Returns only the weights, as float16: half the size of float32, and precise enough to inspect.
Result<TensorSet> weight_tensors(const TrainState& state);
Result<TensorSet> weight_tensors(const Task& task, const TrainState& state);
// Reads either of both kinds. A file with only weights gives a state with zero moments. Rejects tensors or
// notes that are missing, have another shape or type, or are not numbers.
Result<TrainState> read_state(const TensorSet& file);
// The task that such a file is of; a text task without its text, so that its model can be probed.
Result<Task> read_task(const TensorSet& file);

// The state's model as every program takes one.
Result<LearnedModel> state_model(const TrainState& state);
Result<LearnedModel> state_model(const Task& task, const TrainState& state);

}  // namespace fovea

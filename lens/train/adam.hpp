#pragma once

#include <fovea/train/trainer.hpp>

namespace fovea {

// One step of Adam (Kingma and Ba, 2014) with the state's own step number; counts the step. A gradient longer
// than the recipe allows is first shortened to that length (Pascanu et al., 2013). If its length is not
// finite, returns false and changes nothing.
bool adam_step(const TaskRecipe& recipe, std::vector<float>& gradient, TrainState& state);

}  // namespace fovea

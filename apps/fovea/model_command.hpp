// `fovea model`: what a checkpoint is, and what it computes for given tokens.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int model_command(Words words);

}  // namespace fovea::app

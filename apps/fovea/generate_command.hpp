// `fovea generate`: token after token from a model's files.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int generate_command(Words words);

}  // namespace fovea::app

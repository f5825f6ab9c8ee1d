// `fovea lesson`: the tutorials' worked examples, printed, checked and drawn.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int lesson_command(Words words);

}  // namespace fovea::app

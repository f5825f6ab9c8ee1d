// `fovea map`: a picture of any rectangle of the attention weights, however long the context.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int map_command(Words words);

}  // namespace fovea::app

// fovea bench: speed as a share of what this machine reaches in the same process.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int bench_command(Words words);

}  // namespace fovea::app

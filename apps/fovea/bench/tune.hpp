// `fovea bench --tune`: the tiles of flash that are best on one Vulkan device, as a file for --tuning.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int bench_tune_command(Words words);

}  // namespace fovea::app

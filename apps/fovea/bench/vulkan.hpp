// `fovea bench vulkan`: attention on one Vulkan device against that device's own ceilings.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int bench_vulkan_command(Words words);

}  // namespace fovea::app

// How many threads it is worth to start.
#pragma once

#include <cstdint>

namespace fovea::runtime {

// Processors that this process may use, at least 1.
uint32_t available_processors();

}  // namespace fovea::runtime

// Describes a picture or window as text, for scripts, tests and screen readers.
#pragma once

#include "document/workbench.hpp"

#include <string>

namespace fovea::visualizer {

// Level, tokens, the shown stage's numbers and the picked cell's derivation.
std::string describe(Workbench& bench);

}  // namespace fovea::visualizer

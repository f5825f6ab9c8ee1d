// The program with a window.
#pragma once

#include "options.hpp"

namespace fovea::visualizer {

Result<void> run_window(const Options& options);

}  // namespace fovea::visualizer

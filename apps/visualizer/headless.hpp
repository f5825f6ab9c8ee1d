// Pictures, numbers and descriptions without a window.
#pragma once

#include "options.hpp"

namespace fovea::visualizer {

Result<void> run_headless(const Options& options);

}  // namespace fovea::visualizer

// Pictures, numbers and descriptions without a window.
#pragma once

#include "options.hpp"

namespace fovea::visualizer {

Result<void> run_headless(const Options& options);

// Computes what --against names and keeps it as A of the comparison; nothing where it names nothing.
Result<void> keep_a(GpuDevice& device, Workbench& bench, const Options& options);

}  // namespace fovea::visualizer

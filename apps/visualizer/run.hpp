// The program: a window; or pictures, numbers and descriptions without one.
#pragma once

#include "options.hpp"

namespace fovea::visualizer {

Result<void> run_window(const Options& options);
Result<void> run_headless(const Options& options);

// Computes what --against names and keeps it as A of the comparison; nothing where it names nothing.
Result<void> keep_a(GpuDevice& device, Workbench& bench, const Options& options);

// Describes a picture or window as text, for scripts, tests and screen readers: level, tokens, the shown
// stage's numbers and the picked cell's derivation.
std::string describe(Workbench& bench);

}  // namespace fovea::visualizer

// The shown head's matrix as values or a drawing; the same code with a window and without.
#pragma once

#include "document/workbench.hpp"

#include <string>

namespace fovea::visualizer {

// By the extension: .csv, .npy, .svg; .npz: every head of the shown stage; or .fovea for the session.
// Pictures (.png) are drawn by picture.hpp.
Result<void> export_file(const Workbench& bench, const std::string& path);

// From the window: .png is drawn after the frame, the rest written now; what is rejected goes to the Problems
// panel.
void save_shown(Workbench& bench, const std::string& path);

}  // namespace fovea::visualizer

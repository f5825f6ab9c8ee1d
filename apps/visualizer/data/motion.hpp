// Detects if the reader has asked the system, or this program, for less motion.
#pragma once

#include <string_view>

namespace fovea::visualizer {

// True if a GTK settings.ini or KDE's kdeglobals, given as text, switches animations off.
bool says_no_motion(std::string_view settings);
// FOVEA_REDUCED_MOTION other than "" and "0", or one of those files in the reader's configuration.
bool wants_reduced_motion();

}  // namespace fovea::visualizer

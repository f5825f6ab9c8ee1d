// The settings that a window remembers between runs: panels, size, theme. They are a text file of lines "name
// value" that a person can read and edit. And the wish for less motion, which the system may hold.
#pragma once

#include "document/window_state.hpp"
#include "theme/theme.hpp"

#include <fovea/fovea.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fovea::visualizer {

struct WindowSettings {
    Layout layout;
    Theme theme = Theme::dark;
    std::optional<bool> motion;  // none: what the system asks for
    float scale_factor = 1;
    uint32_t width = 1600, height = 960;  // units of the layout
    friend bool operator==(const WindowSettings&, const WindowSettings&) = default;
};

std::string window_settings_text(const WindowSettings& settings);
// A line that is unknown, repeated or out of range makes the whole text invalid; the error names the line,
// its value and what is expected. A missing name has its default.
Result<WindowSettings> parse_window_settings(std::string_view text);

// A file that is not there gives the defaults.
Result<WindowSettings> read_window_settings(const std::filesystem::path& path);
// Whole or not at all.
Result<void> write_window_settings(const std::filesystem::path& path, const WindowSettings& settings);

// True if a GTK settings.ini or KDE's kdeglobals, given as text, switches animations off.
bool says_no_motion(std::string_view settings);
// FOVEA_REDUCED_MOTION other than "" and "0", or one of those files in the reader's configuration.
bool wants_reduced_motion();

}  // namespace fovea::visualizer

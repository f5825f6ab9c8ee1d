#include "data/motion.hpp"

#include "data/text_file.hpp"

#include <algorithm>
#include <cstdlib>

namespace fovea::visualizer {

bool says_no_motion(std::string_view settings) {
    for (size_t at = 0; at < settings.size();) {
        const size_t end = std::min(settings.find('\n', at), settings.size());
        std::string line;
        for (const char c : settings.substr(at, end - at))
            if (c != ' ' && c != '\t' && c != '\r') line += c;
        if (line == "gtk-enable-animations=0" || line == "gtk-enable-animations=false" ||
            line == "AnimationDurationFactor=0")
            return true;
        at = end + 1;
    }
    return false;
}

bool wants_reduced_motion() {
    if (const char* wish = std::getenv("FOVEA_REDUCED_MOTION"); wish && *wish)
        return std::string_view(wish) != "0";
    std::filesystem::path folder;
    if (const char* config = std::getenv("XDG_CONFIG_HOME"); config && *config)
        folder = config;
    else if (const char* home = std::getenv("HOME"); home && *home)
        folder = std::filesystem::path(home) / ".config";
    else
        return false;
    for (const char* name : {"gtk-4.0/settings.ini", "gtk-3.0/settings.ini", "kdeglobals"})
        if (const Result<std::string> text = read_text_file(folder / name); text && says_no_motion(*text))
            return true;
    return false;
}

}  // namespace fovea::visualizer

#include "data/window_settings.hpp"

#include "data/text_file.hpp"

#include <fovea/files.hpp>
#include <fovea/inspect.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

namespace fovea::visualizer {
namespace {

constexpr std::string_view kTitle = "fovea window 1";

// One line: how it is written, and how it is read; `expected` describes a valid value for errors.
struct Line {
    const char* name;
    std::string expected;
    std::function<std::string(const WindowSettings&)> write;
    std::function<bool(WindowSettings&, std::string_view)> read;
};

template <class Member>
Line number(const char* name, double low, double high, Member member) {
    return {
        name, "a number from " + format_number(low, 6) + " to " + format_number(high, 6),
        [member](WindowSettings s) { return format_number(double(member(s)), 7); },
        [=](WindowSettings& s, std::string_view text) {
            double value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc{} || end != text.data() + text.size() || !(value >= low && value <= high))
                return false;
            auto& place = member(s);
            place = std::remove_reference_t<decltype(place)>(value);
            return true;
        }};
}

template <class Member>
Line choice(const char* name, const char* no, const char* yes, Member member) {
    return {name, std::string("'") + no + "' or '" + yes + "'",
            [=](WindowSettings s) -> std::string { return member(s) ? yes : no; },
            [=](WindowSettings& s, std::string_view text) {
                if (text != no && text != yes) return false;
                member(s) = text == yes;
                return true;
            }};
}

std::vector<Line> lines() {
    using S = WindowSettings;
    return {number("left", 200, 520, [](S& s) -> float& { return s.layout.left; }),
            number("right", 260, 620, [](S& s) -> float& { return s.layout.right; }),
            number("bottom", 90, 420, [](S& s) -> float& { return s.layout.bottom; }),
            number("tokens", 0.15, 0.8, [](S& s) -> float& { return s.layout.tokens; }),
            number("inspector", 0.2, 0.85, [](S& s) -> float& { return s.layout.inspector; }),
            choice("left_panels", "hidden", "shown", [](S& s) -> bool& { return s.layout.left_shown; }),
            choice("right_panels", "hidden", "shown", [](S& s) -> bool& { return s.layout.right_shown; }),
            choice("bottom_panels", "hidden", "shown", [](S& s) -> bool& { return s.layout.bottom_shown; }),
            choice("sides", "as_at_first", "swapped", [](S& s) -> bool& { return s.layout.mirrored; }),
            {"theme", "'dark' or 'light'",
             [](const S& s) -> std::string { return s.theme == Theme::dark ? "dark" : "light"; },
             [](S& s, std::string_view text) {
                 s.theme = text == "light" ? Theme::light : Theme::dark;
                 return text == "light" || text == "dark";
             }},
            {"motion", "'system', 'on' or 'off'",
             [](const S& s) -> std::string { return !s.motion   ? "system"
                                                    : *s.motion ? "on"
                                                                : "off"; },
             [](S& s, std::string_view text) {
                 s.motion.reset();
                 if (text != "system") s.motion = text == "on";
                 return text == "system" || text == "on" || text == "off";
             }},
            number("scale", 0.75, 3, [](S& s) -> float& { return s.scale_factor; }),
            number("width", 320, 16384, [](S& s) -> uint32_t& { return s.width; }),
            number("height", 240, 16384, [](S& s) -> uint32_t& { return s.height; })};
}

Error refused(size_t line, std::string_view found, const std::string& expected) {
    return Error{FOVEA_INVALID_ARGUMENT, "window settings",
                 "line " + std::to_string(line) + " is '" + printable_name(std::string(found), 60) +
                     "'; it must be " + expected};
}

}  // namespace

std::string window_settings_text(const WindowSettings& settings) {
    std::string text = std::string(kTitle) + "\n";
    for (const Line& line : lines()) text += std::string(line.name) + " " + line.write(settings) + "\n";
    return text;
}

Result<WindowSettings> parse_window_settings(std::string_view text) {
    WindowSettings settings;
    const std::vector<Line> known = lines();
    std::vector<bool> seen(known.size());
    size_t number = 0;
    while (!text.empty()) {
        ++number;
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (number == 1) {
            if (line != kTitle) return refused(number, line, "'" + std::string(kTitle) + "'");
            continue;
        }
        if (line.empty()) continue;
        const size_t space = std::min(line.find(' '), line.size());
        size_t at = 0;
        while (at < known.size() && known[at].name != line.substr(0, space)) ++at;
        if (at == known.size()) return refused(number, line, "a name that this version knows");
        if (seen[at]) return refused(number, line, "a name that is not given before");
        seen[at] = true;
        if (space == line.size() || !known[at].read(settings, line.substr(space + 1)))
            return refused(number, line, std::string(known[at].name) + " and " + known[at].expected);
    }
    if (number == 0) return refused(1, "", "'" + std::string(kTitle) + "'");
    return settings;
}

Result<WindowSettings> read_window_settings(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return WindowSettings{};
    const Result<std::string> text = read_text_file(path);
    if (!text) return text.error();
    Result<WindowSettings> settings = parse_window_settings(*text);
    if (!settings)
        return Error{settings.error().code, "window settings", path.string() + ": " + settings.error().text};
    return settings;
}

Result<void> write_window_settings(const std::filesystem::path& path, const WindowSettings& settings) {
    return write_text_file(path, window_settings_text(settings));
}

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

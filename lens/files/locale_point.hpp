// C reads and writes numbers with the decimal point of the application's locale; our texts always have ".".
// (from_chars and to_chars of a double would work, but their tables would enlarge the page.)
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace fovea::files {

// "." almost everywhere, "," after setlocale(LC_ALL, "de_DE.UTF-8").
inline std::string locale_point() {
    char half[16];
    const int size = std::snprintf(half, sizeof half, "%.1f", 0.5);
    return {half + 1, size_t(size) - 2};
}

// Prepares a number for strtod. A number with the locale's own decimal point is not valid.
inline std::string for_strtod(std::string_view text) {
    std::string out(text);
    if (out.find_first_not_of("0123456789") == out.npos) return out;
    const std::string point = locale_point();
    if (point == ".") return out;
    for (size_t at = out.find(point); at != out.npos; at = out.find(point))
        out.replace(at, point.size(), "?");
    if (const size_t at = out.find('.'); at != out.npos) out.replace(at, 1, point);
    return out;
}

// printf of one number: "%.*g", "%.*f" or "%.*e".
inline std::string number_by(const char* pattern, int precision, double value) {
    char text[400];  // the largest number has 309 digits before its point
    std::string out(text, size_t(std::snprintf(text, sizeof text, pattern, precision, value)));
    if (out.find_first_not_of("-0123456789") == out.npos || out.find('.') != out.npos) return out;
    const std::string point = locale_point();
    if (const size_t at = out.find(point); point != "." && at != out.npos) out.replace(at, point.size(), ".");
    return out;
}

}  // namespace fovea::files

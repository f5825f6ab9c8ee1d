// Text inside SVG and HTML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fovea::app {

// The text with &, <, > and " escaped and without control characters other than tabs and line ends. Safe from
// any thread.
inline std::string xml_text(std::string_view text) {
    std::string out;
    for (const char c : text)
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else if (uint8_t(c) >= 32 || c == '\t' || c == '\n')
            out += c;
    return out;
}

}  // namespace fovea::app

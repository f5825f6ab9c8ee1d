// Text as a JSON string: all that writes JSON here has it from this file, libraries and programs alike.
#pragma once

#include <string>
#include <string_view>

namespace fovea::files {

/// Appends `text` (valid UTF-8) with its quotes.
inline void append_json_string(std::string& out, std::string_view text) {
    constexpr char kHex[] = "0123456789abcdef";
    out += '"';
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (byte < 0x20u)
            out += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15u]};
        else
            out += c;
    }
    out += '"';
}

}  // namespace fovea::files

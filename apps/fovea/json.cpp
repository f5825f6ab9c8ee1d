#include "json.hpp"

#include "files/json_string.hpp"

#include <charconv>
#include <cmath>

namespace fovea::app {

std::string json_string(std::string_view text) {
    std::string out;
    files::append_json_string(out, text);
    return out;
}

std::string json_number(double value) {
    if (!std::isfinite(value)) return "null";
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    return error == std::errc{} ? std::string(text, end) : "null";
}

}  // namespace fovea::app

#include "json_text.hpp"

#include "files/json_string.hpp"

#include <cmath>
#include <cstdio>

namespace fovea::web {

void JsonText::separate() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
}

JsonText& JsonText::open(char c) {
    separate();
    out_ += c;
    needs_comma_ = false;
    return *this;
}

JsonText& JsonText::close(char c) {
    out_ += c;
    needs_comma_ = true;
    return *this;
}

JsonText& JsonText::key(std::string_view name) {
    text(name);
    out_ += ':';
    needs_comma_ = false;
    return *this;
}

JsonText& JsonText::text(std::string_view value) {
    separate();
    files::append_json_string(out_, value);
    return *this;
}

JsonText& JsonText::number(double value) {
    separate();
    if (std::isnan(value)) {
        out_ += "\"nan\"";
    } else if (std::isinf(value)) {
        out_ += value < 0 ? "\"-inf\"" : "\"inf\"";
    } else {
        char digits[40];
        std::snprintf(digits, sizeof digits, "%.9g", value);
        out_ += digits;
    }
    return *this;
}

JsonText& JsonText::texts(std::span<const std::string> values) {
    begin_array();
    for (const std::string& value : values) text(value);
    return end_array();
}

JsonText& JsonText::whole(int64_t value) {
    separate();
    char digits[24];
    std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(value));
    out_ += digits;
    return *this;
}

JsonText& JsonText::boolean(bool value) {
    separate();
    out_ += value ? "true" : "false";
    return *this;
}

JsonText& JsonText::numbers(std::span<const float> values) {
    begin_array();
    for (const float value : values) number(value);
    return end_array();
}

JsonText& JsonText::shape(std::span<const uint64_t> sizes) {
    begin_array();
    for (const uint64_t size : sizes) whole(static_cast<int64_t>(size));
    return end_array();
}

}  // namespace fovea::web

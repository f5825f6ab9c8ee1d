#include <fovea/files/json.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "files/json_string.hpp"
#include "files/json_text.hpp"
#include "files/locale_point.hpp"
#include "files/utf8.hpp"

namespace fovea {

// Builds values from text that was checked.
class JsonTree {
  public:
    static void read(files::JsonCursor& cursor, JsonValue& out) {
        switch (cursor.kind()) {
            case files::JsonKind::object:
                out.kind_ = JsonValue::Kind::object;
                cursor.enter();
                while (cursor.next()) {
                    auto& [name, member] = out.members_.emplace_back();
                    name = cursor.key().decoded();
                    read(cursor, member);
                }
                return;
            case files::JsonKind::array:
                out.kind_ = JsonValue::Kind::array;
                cursor.enter();
                while (cursor.next()) read(cursor, out.items_.emplace_back());
                return;
            case files::JsonKind::string:
                out.kind_ = JsonValue::Kind::text;
                out.text_ = cursor.string().decoded();
                return;
            case files::JsonKind::number:
                out.kind_ = JsonValue::Kind::number;
                out.text_ = cursor.number();
                return;
            case files::JsonKind::null:
                break;
            default:
                out.kind_ = JsonValue::Kind::boolean;
                out.text_ = cursor.kind() == files::JsonKind::true_ ? "true" : "false";
        }
        cursor.skip_value();
    }
};

double JsonValue::number() const { return std::strtod(files::for_strtod(number_text()).c_str(), nullptr); }
float JsonValue::number_f32() const { return std::strtof(files::for_strtod(number_text()).c_str(), nullptr); }

const JsonValue* JsonValue::find(std::string_view name) const {
    for (const auto& [key, value] : members_)
        if (key == name) return &value;
    return nullptr;
}

const JsonValue& JsonValue::operator[](std::string_view name) const {
    static const JsonValue kNull;
    const JsonValue* found = find(name);
    return found != nullptr ? *found : kNull;
}

Result<JsonValue> parse_json(std::string_view text, size_t max_depth) {
    if (const std::optional<files::JsonFault> fault = files::check_json(text, max_depth))
        return Error{FOVEA_INVALID_ARGUMENT, "JSON",
                     "byte " + std::to_string(fault->offset) + ": " + fault->reason};
    JsonValue value;
    files::JsonCursor cursor(text);
    JsonTree::read(cursor, value);
    return value;
}

std::string json_string(std::string_view text) {
    std::string valid, out;
    for (size_t at = files::utf8_fault(text); at < text.size(); at = files::utf8_fault(text)) {
        valid += text.substr(0, at);
        valid += "\xef\xbf\xbd";
        text.remove_prefix(at + 1);
    }
    files::append_json_string(out, valid.append(text));
    return out;
}

std::string json_number(double value) {
    if (!std::isfinite(value)) return "null";
    char text[32];
#if defined(__EMSCRIPTEN__)
    // Its printf knows one locale; the tables behind to_chars of a double would be 120 KiB of a page. With
    // seventeen digits every value reads back.
    for (int digits = 15; digits <= 17; ++digits) {
        std::snprintf(text, sizeof text, "%.*g", digits, value);
        if (std::strtod(text, nullptr) == value) break;
    }
    return text;
#else
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    return error == std::errc{} ? std::string(text, end) : "null";
#endif
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
    if (text_.size() > 1) text_ += ", ";
    files::append_json_string(text_, key);
    text_ += ": ";
    text_ += json;
    return *this;
}

namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::span<const std::byte> bytes, bool for_address) {
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t word = 0;
        const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
        for (size_t b = 0; b < 3; ++b) word = word << 8 | (b < count ? uint32_t(bytes[i + b]) : 0);
        for (size_t c = 0; c < 4; ++c) {
            if (c <= count)
                text += kBase64[word >> (18 - 6 * c) & 63];
            else if (!for_address)
                text += '=';
        }
    }
    if (for_address)
        for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
    return text;
}

std::optional<std::vector<uint8_t>> from_base64(std::string_view text) {
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    if (text.size() % 4 == 1) return std::nullopt;
    std::vector<uint8_t> bytes;
    uint32_t word = 0, bits = 0;
    for (const char c : text) {
        const size_t at = kBase64.find(c == '-' ? '+' : c == '_' ? '/' : c);
        if (at == std::string_view::npos) return std::nullopt;
        word = word << 6 | uint32_t(at);
        if ((bits += 6) >= 8) bytes.push_back(uint8_t(word >> (bits -= 8)));
    }
    return bytes;
}

}  // namespace fovea

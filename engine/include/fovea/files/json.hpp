// JSON as a tree of values, and as text: sessions, lessons, tables, and what programs print. For a header
// from a stranger, which must be checked before anything is allocated, fovea_files has a reader of its own.
#pragma once

#include <fovea/fovea.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

// A value of any kind. Asking for another kind than it is gives that kind's empty value, so that a reader can
// name what is missing instead of failing at the first step.
class JsonValue {
  public:
    enum class Kind { null, boolean, number, text, array, object };

    Kind kind() const { return kind_; }
    bool boolean() const { return kind_ == Kind::boolean && text_ == "true"; }
    // The number as it stands in the source, so that a float32 is read without a detour over float64.
    std::string_view number_text() const { return kind_ == Kind::number ? std::string_view(text_) : "0"; }
    double number() const;
    float number_f32() const;
    std::string_view text() const {
        return kind_ == Kind::text ? std::string_view(text_) : std::string_view();
    }
    // A text as it is, a number and a boolean as they stand in the source; empty for the other kinds.
    std::string_view scalar_text() const { return text_; }
    const std::vector<JsonValue>& items() const { return items_; }
    // The members of an object, in source order; a name that stands twice is there twice.
    const std::vector<std::pair<std::string, JsonValue>>& members() const { return members_; }
    const JsonValue* find(std::string_view name) const;  // the first of that name
    // The member, or null's value.
    const JsonValue& operator[](std::string_view name) const;

  private:
    friend class JsonTree;
    Kind kind_ = Kind::null;
    std::string text_;
    std::vector<JsonValue> items_;
    std::vector<std::pair<std::string, JsonValue>> members_;
};

// Refused with the byte and the reason: text that is not one JSON value of RFC 8259 in valid UTF-8, or deeper
// than `max_depth`.
Result<JsonValue> parse_json(std::string_view text, size_t max_depth = 32);

// The text with its quotes. Bytes that are no UTF-8, as paths may have them, become U+FFFD.
std::string json_string(std::string_view text);
// The shortest digits that read back to the same value; NaN and infinities, which JSON lacks, become null.
std::string json_number(double value);

// Writes one object on one line, members in the order of the calls.
class JsonObject {
  public:
    JsonObject& raw(std::string_view key, std::string_view json);  // `json` is a value already
    JsonObject& text(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
    JsonObject& number(std::string_view key, double value) { return raw(key, json_number(value)); }
    JsonObject& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
    std::string done() const { return text_ + "}"; }

  private:
    std::string text_ = "{";
};

// Base64 of RFC 4648: the standard alphabet with padding, or that of addresses without. Both alphabets are
// read; nothing where the text is neither.
std::string to_base64(std::span<const std::byte> bytes, bool for_address);
std::optional<std::vector<uint8_t>> from_base64(std::string_view text);

}  // namespace fovea

// JSON as values, and as text: sessions, lessons, tables, configurations, and what programs print.
#pragma once

#include <fovea/fovea.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

template <class Item>
class JsonRange;

// A value of any kind. Asking for another kind than it is gives that kind's empty value, so that a reader can
// name what is missing instead of failing at the first step.
//
// A value is a place in the parsed text, which every value of it keeps alive: copying one copies no text, and
// a parsed text takes about as many bytes as the source, whatever it holds. Texts that a value returns live
// as long as any value of the same source.
class JsonValue {
  public:
    enum class Kind : uint8_t { null, boolean, number, text, array, object };

    JsonValue() = default;  // null

    Kind kind() const;
    bool boolean() const { return kind() == Kind::boolean && scalar_text() == "true"; }
    // The number as the source has it, so that a float32 is read without a detour over float64.
    std::string_view number_text() const { return kind() == Kind::number ? scalar_text() : "0"; }
    double number() const;
    float number_f32() const;
    std::string_view text() const { return kind() == Kind::text ? scalar_text() : std::string_view(); }
    // A text as it is, a number and a boolean as the source has them; empty for the other kinds.
    std::string_view scalar_text() const;
    JsonRange<JsonValue> items() const;
    // The members of an object, in source order; a name that appears twice is there twice.
    JsonRange<std::pair<std::string, JsonValue>> members() const;
    // The first member of that name, after a search from the beginning.
    std::optional<JsonValue> find(std::string_view name) const;
    // The member, or null's value.
    JsonValue operator[](std::string_view name) const;

  private:
    friend class JsonTape;
    template <class Item>
    friend class JsonRange;
    explicit JsonValue(std::shared_ptr<const char> at) : at_(std::move(at)) {}

    std::shared_ptr<const char> at_;  // null: null's value
};

// The values of an array, or the members of an object. Going to the next costs the same for all; `size()` and
// `[]` count from the beginning.
template <class Item>
class JsonRange {
  public:
    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Item;
        using difference_type = ptrdiff_t;
        using pointer = const Item*;
        using reference = Item;

        Item operator*() const;
        Iterator& operator++();
        bool operator==(const Iterator& other) const { return at_ == other.at_; }

      private:
        friend class JsonRange;
        explicit Iterator(std::shared_ptr<const char> at) : at_(std::move(at)) {}
        std::shared_ptr<const char> at_;
    };

    Iterator begin() const { return Iterator(begin_); }
    Iterator end() const { return Iterator({begin_, end_}); }
    bool empty() const { return begin_.get() == end_; }
    size_t size() const;
    Item operator[](size_t index) const;  // `index` must be less than size()

  private:
    friend class JsonValue;
    JsonRange(std::shared_ptr<const char> begin, const char* end) : begin_(std::move(begin)), end_(end) {}
    std::shared_ptr<const char> begin_;
    const char* end_;
};
extern template class JsonRange<JsonValue>;
extern template class JsonRange<std::pair<std::string, JsonValue>>;

// Values that JSON lacks: `python` accepts NaN, Infinity and -Infinity, as Python writes them.
enum class JsonNumbers : uint8_t { strict, python };

// Rejects text that is not one JSON value of RFC 8259 in valid UTF-8, or deeper than `max_depth`. The error
// has the byte and the reason.
Result<JsonValue> parse_json(std::string_view text, size_t max_depth = 32,
                             JsonNumbers numbers = JsonNumbers::strict);

// Returns the text with its quotes. Bytes that are not valid UTF-8, as in some paths, become U+FFFD.
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

// A reader of JSON for data that the library carries within itself: the lessons. Not for files from
// strangers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

// A value of any kind. Asking for another kind than it is gives that kind's empty value, so that the reader
// of a lesson can name what is missing instead of failing at the first step.
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
    const std::vector<JsonValue>& items() const { return items_; }
    // Of an object, in source order.
    const std::vector<std::pair<std::string, JsonValue>>& members() const { return members_; }
    const JsonValue* find(std::string_view name) const;
    // The member, or null's value.
    const JsonValue& operator[](std::string_view name) const;

  private:
    friend class JsonReader;
    Kind kind_ = Kind::null;
    std::string text_;
    std::vector<JsonValue> items_;
    std::vector<std::pair<std::string, JsonValue>> members_;
};

// Nothing if the text is not one JSON value; escapes beyond \" \\ \/ \n \t are not known.
std::optional<JsonValue> parse_json(std::string_view text);

}  // namespace fovea

#pragma once
// JSON as the safetensors header needs it read: nothing is allocated while reading.
//
// Written here and not taken from a library, because the rules for an untrusted header (duplicate keys
// rejected, depth <= 4, byte offset in each error, no allocation before the whole header is known to be
// right) leave nothing of a library to use: a document tree costs many times the header, and an event parser
// such as the SAX interface of nlohmann/json allocates every string, is silent about duplicates and gives no
// offset of a value.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fovea/files/json.hpp>

namespace fovea::files {

struct JsonFault {
    size_t offset = 0;
    const char* reason = nullptr;  // static text
};

/// Checks that `text` is one JSON value (RFC 8259) with nothing but white space around it, valid UTF-8,
/// escapes that name characters (no lone surrogate), and no deeper than `max_depth` objects or arrays.
std::optional<JsonFault> check_json(std::string_view text, size_t max_depth,
                                    JsonNumbers numbers = JsonNumbers::strict);

/// The text between the quotes of a checked JSON string.
struct JsonString {
    std::string_view raw;

    /// The characters meant, as UTF-8. The only function here that allocates.
    std::string decoded() const;
    /// Order and equality of the characters meant ("\u0061" equals "a").
    int compare(const JsonString& other) const;
    bool equals(std::string_view text) const;
};

enum class JsonKind { object, array, string, number, true_, false_, null };

/// Walks through text that check_json() accepted; every call relies on that.
class JsonCursor {
  public:
    explicit JsonCursor(std::string_view checked, size_t offset = 0) : text_(checked), at_(offset) {
        skip_space();
    }

    size_t offset() const { return at_; }
    JsonKind kind() const;

    /// Each steps over what it returns; call it only on a value of that kind.
    JsonString string();
    std::string_view number();
    void skip_value();

    /// Steps over the opening bracket of an object or array.
    void enter();
    /// True if another member follows (the cursor is then at it); otherwise steps over the closing bracket.
    bool next();
    /// Returns the key of the member that next() found; the cursor is then at its value.
    JsonString key();

  private:
    void skip_space();

    std::string_view text_;
    size_t at_;
};

/// The number as an unsigned integer; nothing when it has a sign, fraction or exponent or exceeds 64 bits.
std::optional<uint64_t> json_unsigned(std::string_view number);

/// Appends `text` (valid UTF-8) as a JSON string, with its quotes. Everything here that writes JSON uses it.
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

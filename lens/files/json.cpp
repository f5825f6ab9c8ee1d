#include <fovea/files/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "files/json_text.hpp"
#include "files/locale_point.hpp"
#include "files/utf8.hpp"

namespace fovea {

// A parsed text as one string: each value is a byte of its kind and size, where the size is 31 or more the
// size as a varint, then its bytes: the decoded text, the number's characters, or the values of an array or
// an object (where each name is a text before its value). No value takes more bytes than its source and one,
// and the next value is found without reading this one.
class JsonTape {
  public:
    enum Code : uint8_t { null, no, yes, number, text, array, object };
    struct Head {
        Code code = null;
        const char* begin = nullptr;  // begin of the bytes that follow
        size_t size = 0;
        const char* end() const { return begin + size; }
        std::string_view bytes() const { return {begin, size}; }
    };

    static JsonValue read(std::string_view checked) {
        auto tape = std::make_shared<std::string>();
        // Sizes of long values are the only bytes that a source does not have.
        tape->reserve(checked.size() + checked.size() / 64 + 64);
        files::JsonCursor cursor(checked);
        JsonTape(*tape).put(cursor);
        const char* const begin = tape->data();
        return JsonValue(std::shared_ptr<const char>(std::move(tape), begin));
    }

    static Head head(const char* at) {
        const auto first = static_cast<uint8_t>(*at++);
        Head head{Code(first & 7u), at, size_t(first >> 3u)};
        if (head.size != kLong) return head;
        head.size = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = static_cast<uint8_t>(*at++);
            head.size |= size_t(byte & 127u) << shift;
            if (byte < 128u) break;
        }
        head.begin = at;
        return head;
    }
    static Head head(const JsonValue& value) { return value.at_ ? head(value.at_.get()) : Head(); }

  private:
    static constexpr size_t kLong = 31;

    explicit JsonTape(std::string& tape) : tape_(tape) {}

    void put(files::JsonCursor& cursor) {
        switch (cursor.kind()) {
            case files::JsonKind::object:
            case files::JsonKind::array:
                return put_list(cursor, cursor.kind() == files::JsonKind::object);
            case files::JsonKind::string:
                return put(text, cursor.string().decoded());
            case files::JsonKind::number:
                return put(number, cursor.number());
            case files::JsonKind::true_:
                put(yes, {});
                break;
            case files::JsonKind::false_:
                put(no, {});
                break;
            case files::JsonKind::null:
                put(null, {});
        }
        cursor.skip_value();
    }
    void put(Code code, std::string_view bytes) {
        const size_t at = tape_.size();
        tape_ += bytes;
        close(code, at);
    }
    void put_list(files::JsonCursor& cursor, bool is_object) {
        const size_t at = tape_.size();
        cursor.enter();
        while (cursor.next()) {
            if (is_object) put(text, cursor.key().decoded());
            put(cursor);
        }
        close(is_object ? object : array, at);
    }
    // Puts the head before the bytes from `at` on. Bytes move once for each list around them.
    void close(Code code, size_t at) {
        size_t size = tape_.size() - at;
        char head[12];
        size_t count = 0;
        head[count++] = char(code | std::min(size, kLong) << 3u);
        if (size >= kLong) {
            for (; size >= 128; size >>= 7u) head[count++] = char(size | 128u);
            head[count++] = char(size);
        }
        tape_.insert(at, head, count);
    }

    std::string& tape_;
};

JsonValue::Kind JsonValue::kind() const {
    static constexpr Kind kKinds[] = {Kind::null, Kind::boolean, Kind::boolean, Kind::number,
                                      Kind::text, Kind::array,   Kind::object};
    return kKinds[JsonTape::head(*this).code];
}

std::string_view JsonValue::scalar_text() const {
    const JsonTape::Head head = JsonTape::head(*this);
    switch (head.code) {
        case JsonTape::no:
            return "false";
        case JsonTape::yes:
            return "true";
        case JsonTape::number:
        case JsonTape::text:
            return head.bytes();
        default:
            return {};
    }
}

double JsonValue::number() const { return std::strtod(files::for_strtod(number_text()).c_str(), nullptr); }
float JsonValue::number_f32() const { return std::strtof(files::for_strtod(number_text()).c_str(), nullptr); }

JsonRange<JsonValue> JsonValue::items() const {
    const JsonTape::Head head = JsonTape::head(*this);
    if (head.code != JsonTape::array) return {nullptr, nullptr};
    return {std::shared_ptr<const char>(at_, head.begin), head.end()};
}

JsonRange<std::pair<std::string, JsonValue>> JsonValue::members() const {
    const JsonTape::Head head = JsonTape::head(*this);
    if (head.code != JsonTape::object) return {nullptr, nullptr};
    return {std::shared_ptr<const char>(at_, head.begin), head.end()};
}

std::optional<JsonValue> JsonValue::find(std::string_view name) const {
    const JsonTape::Head object = JsonTape::head(*this);
    if (object.code != JsonTape::object) return std::nullopt;
    for (const char* at = object.begin; at != object.end();) {
        const JsonTape::Head key = JsonTape::head(at);
        if (key.bytes() == name) return JsonValue(std::shared_ptr<const char>(at_, key.end()));
        at = JsonTape::head(key.end()).end();
    }
    return std::nullopt;
}

JsonValue JsonValue::operator[](std::string_view name) const { return find(name).value_or(JsonValue()); }

template <class Item>
Item JsonRange<Item>::Iterator::operator*() const {
    if constexpr (std::is_same_v<Item, JsonValue>) {
        return JsonValue(at_);
    } else {
        const JsonTape::Head key = JsonTape::head(at_.get());
        return {std::string(key.bytes()), JsonValue({at_, key.end()})};
    }
}

template <class Item>
typename JsonRange<Item>::Iterator& JsonRange<Item>::Iterator::operator++() {
    const char* end = JsonTape::head(at_.get()).end();
    if constexpr (!std::is_same_v<Item, JsonValue>) end = JsonTape::head(end).end();
    at_ = std::shared_ptr<const char>(std::move(at_), end);
    return *this;
}

template <class Item>
size_t JsonRange<Item>::size() const {
    return size_t(std::distance(begin(), end()));
}

template <class Item>
Item JsonRange<Item>::operator[](size_t index) const {
    return *std::next(begin(), ptrdiff_t(index));
}

template class JsonRange<JsonValue>;
template class JsonRange<std::pair<std::string, JsonValue>>;

Result<JsonValue> parse_json(std::string_view text, size_t max_depth, JsonNumbers numbers) {
    if (const std::optional<files::JsonFault> fault = files::check_json(text, max_depth, numbers))
        return Error{FOVEA_INVALID_ARGUMENT, "JSON",
                     "byte " + std::to_string(fault->offset) + ": " + fault->reason};
    return JsonTape::read(text);
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
    // The page's printf knows only one locale; the tables of to_chars for double would add 120 KiB to the
    // page. With seventeen digits every value reads back.
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

#include "files/json_text.hpp"

#include <algorithm>

#include "files/utf8.hpp"

namespace fovea::files {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_value(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// The four hex digits at `at`, or -1.
int hex4(std::string_view text, size_t at) {
    if (at > text.size() || text.size() - at < 4) return -1;
    int value = 0;
    for (size_t i = 0; i < 4; ++i) {
        const int digit = hex_value(text[at + i]);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

bool is_high_surrogate(int unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_low_surrogate(int unit) { return unit >= 0xdc00 && unit < 0xe000; }

/// Recursive descent; the recursion is as deep as max_depth allows and no deeper.
class JsonChecker {
  public:
    JsonChecker(std::string_view text, size_t max_depth, JsonNumbers numbers)
        : text_(text), depth_left_(max_depth), numbers_(numbers) {}

    std::optional<JsonFault> run() {
        skip_space();
        if (text_.starts_with("\xef\xbb\xbf"))
            fail("begins with a byte order mark: save it as UTF-8 without one");
        if (fault_ || !value()) return fault_;
        skip_space();
        if (at_ != text_.size()) fail("text after the end of the JSON value");
        return fault_;
    }

  private:
    bool fail(const char* reason) { return fail_at(at_, reason); }
    bool fail_at(size_t offset, const char* reason) {
        if (!fault_) fault_ = JsonFault{offset, reason};
        return false;
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_space() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    }

    bool value() {
        switch (peek()) {
            case '{':
                return members('}');
            case '[':
                return members(']');
            case '"':
                return string();
            case 't':
                return word("true");
            case 'f':
                return word("false");
            case 'n':
                return word("null");
            default:
                return number();
        }
    }

    bool word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) return fail("not a JSON value");
        at_ += expected.size();
        return true;
    }

    bool members(char close) {
        if (depth_left_ == 0) return fail("objects and arrays nested too deeply");
        --depth_left_;
        ++at_;
        skip_space();
        bool more = peek() != close;
        while (more) {
            if (close == '}' && !member_key()) return false;
            if (!value()) return false;
            skip_space();
            more = peek() == ',';
            if (more) {
                ++at_;
                skip_space();
            } else if (peek() != close) {
                return fail(close == '}' ? "',' or '}' expected" : "',' or ']' expected");
            }
        }
        ++at_;
        ++depth_left_;
        return true;
    }

    bool member_key() {
        if (peek() != '"') return fail("a key in quotes expected");
        if (!string()) return false;
        skip_space();
        if (peek() != ':') return fail("':' expected");
        ++at_;
        skip_space();
        return true;
    }

    bool string() {
        const size_t start = at_++;
        while (at_ < text_.size()) {
            const auto c = static_cast<unsigned char>(text_[at_]);
            if (c == '"') {
                ++at_;
                return true;
            }
            if (c < 0x20u) return fail("control character inside a string");
            if (c == '\\') {
                if (!escape()) return false;
                continue;
            }
            const size_t length = utf8_length(text_.substr(at_));
            if (length == 0) return fail("not valid UTF-8");
            at_ += length;
        }
        return fail_at(start, "string without an end");
    }

    bool escape() {
        const size_t start = at_++;
        const char c = peek();
        ++at_;
        if (c != 'u')
            return (c != '\0' && std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) ||
                   fail_at(start, "unknown escape");
        const int unit = hex4(text_, at_);
        if (unit < 0) return fail_at(start, "four hex digits expected after \\u");
        at_ += 4;
        if (is_low_surrogate(unit)) return fail_at(start, "lone surrogate");
        if (!is_high_surrogate(unit)) return true;
        if (text_.substr(at_, 2) != "\\u" || !is_low_surrogate(hex4(text_, at_ + 2)))
            return fail_at(start, "lone surrogate");
        at_ += 6;
        return true;
    }

    bool number() {
        const size_t start = at_;
        if (numbers_ == JsonNumbers::python)
            for (const std::string_view name : {"NaN", "Infinity", "-Infinity"})
                if (text_.substr(at_, name.size()) == name) return word(name);
        if (peek() == '-') ++at_;
        if (!is_digit(peek())) return fail_at(start, "not a JSON value");
        if (peek() == '0')
            ++at_;
        else
            digits();
        if (is_digit(peek())) return fail_at(start, "number with a leading zero");
        if (peek() == '.') {
            ++at_;
            if (!digits()) return fail_at(start, "digits expected after '.'");
        }
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            if (!digits()) return fail_at(start, "digits expected in the exponent");
        }
        return true;
    }

    bool digits() {
        const size_t start = at_;
        while (is_digit(peek())) ++at_;
        return at_ != start;
    }

    std::string_view text_;
    size_t at_ = 0;
    size_t depth_left_;
    JsonNumbers numbers_;
    std::optional<JsonFault> fault_;
};

/// Yields the decoded bytes of a checked string one by one.
class DecodedBytes {
  public:
    explicit DecodedBytes(std::string_view raw) : raw_(raw) {}

    /// 0 to 255, or -1 at the end.
    int next() {
        if (pending_at_ < pending_count_) return pending_[pending_at_++];
        if (at_ == raw_.size()) return -1;
        const char c = raw_[at_++];
        if (c != '\\') return static_cast<unsigned char>(c);
        const char escaped = raw_[at_++];
        switch (escaped) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                return unicode();
            default:
                return static_cast<unsigned char>(escaped);
        }
    }

  private:
    int unicode() {
        int code = hex4(raw_, at_);
        at_ += 4;
        if (is_high_surrogate(code)) {
            code = 0x10000 + ((code - 0xd800) << 10) + (hex4(raw_, at_ + 2) - 0xdc00);
            at_ += 6;
        }
        if (code < 0x80) return code;
        pending_at_ = 0;
        const int tails = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        constexpr int kLead[] = {0, 0xc0, 0xe0, 0xf0};
        for (int i = 0; i < tails; ++i)
            pending_[i] = static_cast<unsigned char>(0x80 | ((code >> (6 * (tails - 1 - i))) & 0x3f));
        pending_count_ = tails;
        return kLead[tails] | (code >> (6 * tails));
    }

    std::string_view raw_;
    size_t at_ = 0;
    unsigned char pending_[3] = {};
    int pending_at_ = 0, pending_count_ = 0;
};

bool has_escape(std::string_view raw) { return raw.find('\\') != std::string_view::npos; }

}  // namespace

std::optional<JsonFault> check_json(std::string_view text, size_t max_depth, JsonNumbers numbers) {
    return JsonChecker(text, max_depth, numbers).run();
}

std::string JsonString::decoded() const {
    std::string out;
    out.reserve(raw.size());
    DecodedBytes bytes(raw);
    for (int byte = bytes.next(); byte >= 0; byte = bytes.next()) out += static_cast<char>(byte);
    return out;
}

int JsonString::compare(const JsonString& other) const {
    // Stops at the first difference: a search for escapes through a name as long as the header, repeated for
    // each comparison of a sort, would let a small file cost minutes.
    const size_t shorter = std::min(raw.size(), other.raw.size());
    size_t same = 0;
    while (same < shorter && raw[same] == other.raw[same] && raw[same] != '\\') ++same;
    DecodedBytes mine(raw.substr(same)), theirs(other.raw.substr(same));
    for (;;) {
        const int a = mine.next(), b = theirs.next();
        if (a != b) return a < b ? -1 : 1;
        if (a < 0) return 0;
    }
}

bool JsonString::equals(std::string_view text) const {
    if (!has_escape(raw)) return raw == text;
    DecodedBytes mine(raw);
    for (const char c : text)
        if (mine.next() != static_cast<unsigned char>(c)) return false;
    return mine.next() < 0;
}

void JsonCursor::skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

JsonKind JsonCursor::kind() const {
    switch (text_[at_]) {
        case '{':
            return JsonKind::object;
        case '[':
            return JsonKind::array;
        case '"':
            return JsonKind::string;
        case 't':
            return JsonKind::true_;
        case 'f':
            return JsonKind::false_;
        case 'n':
            return JsonKind::null;
        default:
            return JsonKind::number;
    }
}

JsonString JsonCursor::string() {
    const size_t start = ++at_;
    while (text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    const JsonString result{text_.substr(start, at_ - start)};
    ++at_;
    skip_space();
    return result;
}

std::string_view JsonCursor::number() {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ']' && text_[at_] != '}' &&
           !is_space(text_[at_]))
        ++at_;
    const std::string_view result = text_.substr(start, at_ - start);
    skip_space();
    return result;
}

void JsonCursor::skip_value() {
    switch (kind()) {
        case JsonKind::string:
            string();
            return;
        case JsonKind::number:
            number();
            return;
        case JsonKind::true_:
        case JsonKind::null:
            at_ += 4;
            break;
        case JsonKind::false_:
            at_ += 5;
            break;
        case JsonKind::object:
        case JsonKind::array: {
            const bool object = kind() == JsonKind::object;
            enter();
            while (next()) {
                if (object) key();
                skip_value();
            }
            return;
        }
    }
    skip_space();
}

void JsonCursor::enter() {
    ++at_;
    skip_space();
}

bool JsonCursor::next() {
    const char c = text_[at_];
    if (c == ',') {
        ++at_;
        skip_space();
        return true;
    }
    if (c != '}' && c != ']') return true;
    ++at_;
    skip_space();
    return false;
}

JsonString JsonCursor::key() {
    const JsonString result = string();
    ++at_;  // the colon
    skip_space();
    return result;
}

std::optional<uint64_t> json_unsigned(std::string_view number) {
    uint64_t value = 0;
    for (const char c : number) {
        if (!is_digit(c)) return std::nullopt;
        const auto digit = static_cast<uint64_t>(c - '0');
        if (value > (UINT64_MAX - digit) / 10) return std::nullopt;
        value = value * 10 + digit;
    }
    return value;
}

}  // namespace fovea::files

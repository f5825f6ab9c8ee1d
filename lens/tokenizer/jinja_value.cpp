// Values of a template: text and JSON of them, operators, filters, tests and methods, as Python and Jinja
// have them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "files/number_text.hpp"
#include "files/refusal.hpp"
#include "files/utf8.hpp"
#include "tokenizer/code_set.hpp"
#include "tokenizer/jinja.hpp"

#include <fovea/files/json.hpp>
#include <fovea/tokenizer/characters.hpp>

namespace fovea::jinja {
namespace {

using files::cat;

std::string real_text(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    std::string text;
    files::append_number(text, value);
    const size_t e = text.find('e');
    if (e == text.npos) return text.find('.') == text.npos ? text + ".0" : text;
    // Python writes a sign and two digits of the exponent.
    const bool has_sign = text[e + 1] == '-' || text[e + 1] == '+';
    if (!has_sign) text.insert(e + 1, "+");
    if (text.size() - e < 4) text.insert(e + 2, "0");
    return text;
}

}  // namespace

const char* kind_name(Kind kind) {
    constexpr const char* kNames[] = {"undefined", "None",   "a boolean", "an integer", "a float",
                                      "a text",    "a list", "a mapping", "a function"};
    return kNames[size_t(kind)];
}

bool items_of(const Value& value, List& out) {
    if (value.kind == Kind::list) return out = *value.list, true;
    if (value.kind == Kind::undefined) return true;
    if (value.kind == Kind::text)
        for (const std::string_view c : characters_of(value.text)) out.push_back(Value::of(std::string(c)));
    else if (value.kind == Kind::map)
        for (const auto& [name, member] : value.map->members) out.push_back(Value::of(name));
    else
        return false;
    return true;
}

Error failed(std::string text) {
    return Error{FOVEA_UNSUPPORTED, "chat template", "the chat template: " + std::move(text)};
}

const Value* Map::find(std::string_view name) const {
    for (const auto& [key, value] : members)
        if (key == name) return &value;
    return nullptr;
}
void Map::set(std::string_view name, Value value) {
    for (auto& [key, old] : members)
        if (key == name) return void(old = std::move(value));
    members.emplace_back(std::string(name), std::move(value));
}

std::vector<std::string_view> characters_of(std::string_view text) {
    std::vector<std::string_view> out;
    for (size_t at = 0; at < text.size();) {
        const size_t length = std::max<size_t>(1, files::utf8_length(text.substr(at)));
        out.push_back(text.substr(at, length));
        at += length;
    }
    return out;
}
size_t characters_in(std::string_view text) { return characters_of(text).size(); }

bool is_white(std::string_view character) {
    if (character.size() == 1)
        return kSpaces.find(character[0]) != kSpaces.npos || (character[0] >= 0x1c && character[0] <= 0x1f);
    return space_set().has(character_at(character, 0).value);
}

bool Value::truth() const {
    switch (kind) {
        case Kind::undefined:
        case Kind::none:
            return false;
        case Kind::boolean:
        case Kind::integer:
            return integer != 0;
        case Kind::real:
            return real != 0;
        case Kind::text:
            return !text.empty();
        case Kind::list:
            return !list->empty();
        case Kind::map:
            return !map->members.empty();
        case Kind::function:
            return true;
    }
    return false;
}

std::string Value::quoted() const {
    if (kind == Kind::list) {
        std::string out(1, is_tuple ? '(' : '[');
        for (const Value& item : *list) out += (out.size() > 1 ? ", " : "") + item.quoted();
        if (is_tuple && list->size() == 1) out += ',';
        return out + (is_tuple ? ')' : ']');
    }
    if (kind == Kind::map) {
        std::string out = "{";
        for (const auto& [name, value] : map->members)
            out += (out.size() > 1 ? ", " : "") + Value::of(name).quoted() + ": " + value.quoted();
        return out + "}";
    }
    if (kind != Kind::text) return shown();
    const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
    const char quote = single ? '\'' : '"';
    std::string out(1, quote);
    for (const char c : text) {
        if (c == quote || c == '\\')
            out += '\\', out += c;
        else if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else if (static_cast<unsigned char>(c) < 32 || c == 127) {
            constexpr char kDigits[] = "0123456789abcdef";
            out += cat("\\x", kDigits[c >> 4 & 15], kDigits[c & 15]);
        } else {
            out += c;
        }
    }
    return out + quote;
}

std::string Value::shown() const {
    switch (kind) {
        case Kind::undefined:
            return {};
        case Kind::none:
            return "None";
        case Kind::boolean:
            return integer ? "True" : "False";
        case Kind::integer:
            return std::to_string(integer);
        case Kind::real:
            return real_text(real);
        case Kind::text:
            return text;
        case Kind::function:
            return "<function " + text + ">";
        case Kind::list:
        case Kind::map:
            return quoted();
    }
    return {};
}

namespace {

// json.dumps has short forms where json_string() has \u.
std::string json_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        constexpr std::string_view kShort = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
        if (const size_t at = kShort.find(c); at != kShort.npos)
            out += '\\', out += kLetters[at];
        else if (static_cast<unsigned char>(c) < 32)
            out += cat("\\u00", "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]);
        else
            out += c;
    }
    return out + "\"";
}

std::string json_of(const Value& value, int indent, int depth) {
    const auto lines = [&](int level) {
        return indent < 0 ? std::string() : "\n" + std::string(size_t(indent * level), ' ');
    };
    const std::string between = indent < 0 ? ", " : "," + lines(depth + 1);
    std::string out;
    switch (value.kind) {
        case Kind::boolean:
            return value.integer ? "true" : "false";
        case Kind::integer:
        case Kind::real:
            return value.shown();
        case Kind::text:
            return json_text(value.text);
        case Kind::list:
            for (const Value& item : *value.list)
                out += (out.empty() ? "" : between) + json_of(item, indent, depth + 1);
            return out.empty() ? "[]" : "[" + lines(depth + 1) + out + lines(depth) + "]";
        case Kind::map:
            for (const auto& [name, member] : value.map->members)
                out += (out.empty() ? "" : between) + json_text(name) + ": " +
                       json_of(member, indent, depth + 1);
            return out.empty() ? "{}" : "{" + lines(depth + 1) + out + lines(depth) + "}";
        default:
            return "null";
    }
}

}  // namespace

std::string Value::json(int indent) const { return json_of(*this, indent, 0); }

bool equal(const Value& a, const Value& b) {
    if (a.is_number() && b.is_number())
        return a.kind == Kind::real || b.kind == Kind::real ? a.number() == b.number()
                                                            : a.integer == b.integer;
    if (a.kind != b.kind) return false;
    if (a.kind == Kind::text || a.kind == Kind::function) return a.text == b.text;
    if (a.kind == Kind::list)
        return a.is_tuple == b.is_tuple &&
               std::equal(a.list->begin(), a.list->end(), b.list->begin(), b.list->end(), equal);
    if (a.kind != Kind::map) return true;
    if (a.map->members.size() != b.map->members.size()) return false;
    return std::all_of(a.map->members.begin(), a.map->members.end(), [&](const auto& member) {
        const Value* other = b.map->find(member.first);
        return other && equal(member.second, *other);
    });
}

// ---- operators ----

Result<Value> binary(std::string_view op, const Value& a, const Value& b) {
    if (op == "~") return Value::of(a.shown() + b.shown());
    if (op == "+" && a.kind == Kind::text && b.kind == Kind::text) return Value::of(a.text + b.text);
    if (op == "+" && a.kind == Kind::list && b.kind == Kind::list) {
        List both = *a.list;
        both.insert(both.end(), b.list->begin(), b.list->end());
        return Value::of(std::move(both));
    }
    if (op == "*" && a.kind == Kind::text && b.kind == Kind::integer) {
        std::string out;
        for (int64_t i = 0; i < b.integer && !a.text.empty(); ++i) {
            out += a.text;
            if (out.size() > kMaxText) return failed("a text has more than 64 MiB");
        }
        return Value::of(std::move(out));
    }
    if (!a.is_number() || !b.is_number())
        return failed(cat("'", op, "' has ", kind_name(a.kind), " and ", kind_name(b.kind),
                          ", which it does not support"));
    const bool divides = op == "/" || op == "//" || op == "%";
    if (divides && b.number() == 0) return failed("a division by zero");
    if (op == "/") return Value::of(a.number() / b.number());
    if (a.kind == Kind::real || b.kind == Kind::real) {
        const double x = a.number(), y = b.number();
        if (op == "+") return Value::of(x + y);
        if (op == "-") return Value::of(x - y);
        if (op == "*") return Value::of(x * y);
        return Value::of(op == "//" ? std::floor(x / y) : x - y * std::floor(x / y));
    }
    const int64_t x = a.integer, y = b.integer;
    constexpr int64_t kBound = int64_t{1} << 31;  // products and sums of such integers are exact
    if (std::min(x, y) < -kBound || std::max(x, y) > kBound) return failed("an integer is beyond +-2^31");
    if (op == "+") return Value::of(x + y);
    if (op == "-") return Value::of(x - y);
    if (op == "*") return Value::of(x * y);
    const int64_t quotient = x / y - (x % y != 0 && (x < 0) != (y < 0));
    return Value::of(op == "//" ? quotient : x - y * quotient);
}

Result<bool> compare(std::string_view op, const Value& a, const Value& b) {
    if (op == "==") return equal(a, b);
    if (op == "!=") return !equal(a, b);
    if (op == "in" || op == "not in") {
        bool found = false;
        List items;
        if (b.kind == Kind::text && a.kind == Kind::text)
            found = b.text.find(a.text) != b.text.npos;
        else if (b.kind != Kind::text && items_of(b, items))
            found =
                std::any_of(items.begin(), items.end(), [&](const Value& item) { return equal(item, a); });
        else
            return failed(cat("'in' has ", kind_name(a.kind), " and ", kind_name(b.kind),
                              ", which it does not support"));
        return found == (op == "in");
    }
    const bool numbers = a.is_number() && b.is_number(), texts = a.kind == Kind::text && b.kind == Kind::text;
    if (!numbers && !texts)
        return failed(cat("'", op, "' has ", kind_name(a.kind), " and ", kind_name(b.kind),
                          ", which it does not support"));
    const bool less = numbers ? a.number() < b.number() : a.text < b.text;
    const bool greater = numbers ? a.number() > b.number() : a.text > b.text;
    return op == "<" ? less : op == ">" ? greater : op == "<=" ? !greater : !less;
}

// ---- members ----

Result<Value> attribute_of(const Value& value, std::string_view name) {
    if (value.kind == Kind::undefined)
        return failed(cat("'", printable_name(name, 60), "' is asked of a value that is not defined"));
    const Value* member = value.kind == Kind::map ? value.map->find(name) : nullptr;
    return member ? *member : Value();
}

}  // namespace fovea::jinja

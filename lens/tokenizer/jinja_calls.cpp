// Methods, tests and filters of values by name, as Python and Jinja have them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "files/number_text.hpp"
#include "files/refusal.hpp"
#include "tokenizer/jinja.hpp"

namespace fovea::jinja {
namespace {

using files::cat;

Value pair_of(const std::string& name, const Value& member) {
    return Value::of(List{Value::of(name), member}, true);
}

std::string cased(std::string_view text, bool upper) {
    std::string out(text);
    for (char& c : out)
        if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c ^= 0x20;
    return out;
}

std::string capitalized(std::string_view text) {
    std::string out = cased(text, false);
    return out.empty() ? out : cased(out.substr(0, 1), true) + out.substr(1);
}

// As the filter: words follow white space and -({[<.
std::string words_capitalized(std::string_view text) {
    std::string out = cased(text, false);
    bool first = true;
    for (char& c : out) {
        if (first && c >= 'a' && c <= 'z') c ^= 0x20;
        first =
            kSpaces.find(c) != kSpaces.npos || std::string_view("-({[<").find(c) != std::string_view::npos;
    }
    return out;
}

// As str.title(): a word begins after anything that is not a letter.
std::string titled(std::string_view text) {
    std::string out(text);
    bool first = true;
    for (char& c : out) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (letter && (c >= 'a') == first) c ^= 0x20;
        first = !letter;
    }
    return out;
}

// upper, lower, capitalize and title; nothing for other names. Only of ASCII: what Python does to other
// letters depends on its tables.
std::optional<Result<Value>> with_case(std::string_view name, const std::string& text,
                                       std::string (*title)(std::string_view)) {
    if (name != "upper" && name != "lower" && name != "capitalize" && name != "title") return {};
    if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 127; }))
        return failed(cat("'", name, "' of a text with characters beyond ASCII is not supported"));
    return Value::of(name == "title"        ? title(text)
                     : name == "capitalize" ? capitalized(text)
                                            : cased(text, name == "upper"));
}

Result<Value> replaced(std::string_view text, std::string_view from, std::string_view to, int64_t times) {
    std::string out;
    size_t at = 0;
    while (times != 0 && !from.empty()) {
        const size_t found = text.find(from, at);
        if (found == text.npos) break;
        out.append(text, at, found - at).append(to);
        if (out.size() > kMaxText) return failed("a text has more than 64 MiB");
        at = found + from.size(), times -= times > 0;
    }
    return Value::of(out.append(text, at));
}

List split_of(std::string_view text, const Value* separator, int64_t most, bool from_left) {
    List parts;
    const auto take = [&](std::string_view part) { parts.push_back(Value::of(std::string(part))); };
    if (!separator || separator->kind != Kind::text || separator->text.empty()) {
        while (true) {
            const size_t begin = text.find_first_not_of(kSpaces);
            if (begin == text.npos) return parts;
            text.remove_prefix(begin);
            if (most == 0) return take(text), parts;
            const size_t end = std::min(text.find_first_of(kSpaces), text.size());
            take(text.substr(0, end)), text.remove_prefix(end), --most;
        }
    }
    while (most != 0) {
        const size_t found = from_left ? text.find(separator->text) : text.rfind(separator->text);
        if (found == text.npos) break;
        if (from_left)
            take(text.substr(0, found)), text.remove_prefix(found + separator->text.size());
        else
            take(text.substr(found + separator->text.size())), text = text.substr(0, found);
        --most;
    }
    take(text);
    if (!from_left) std::reverse(parts.begin(), parts.end());
    return parts;
}

}  // namespace

// ---- methods ----

Result<Value> method(const Call& call) {
    const Value& of = call.of;
    const List& given = call.arguments;
    const std::string_view name = call.name;
    const auto has_texts = [&](size_t least, size_t most) {
        return given.size() >= least && given.size() <= most && call.named.members.empty() &&
               std::all_of(given.begin(), given.begin() + ptrdiff_t(least),
                           [](const Value& v) { return v.kind == Kind::text; });
    };
    const auto starts = [&](bool front) {
        List options;
        if (given[0].kind == Kind::list)
            options = *given[0].list;
        else
            options = {given[0]};
        return std::any_of(options.begin(), options.end(), [&](const Value& option) {
            return option.kind == Kind::text &&
                   (front ? of.text.starts_with(option.text) : of.text.ends_with(option.text));
        });
    };
    if (of.kind == Kind::text) {
        const std::string_view letters = given.empty() ? kSpaces : std::string_view(given[0].text);
        if (name == "strip" && has_texts(0, 1)) return Value::of(stripped(of.text, letters, true, true));
        if (name == "lstrip" && has_texts(0, 1)) return Value::of(stripped(of.text, letters, true, false));
        if (name == "rstrip" && has_texts(0, 1)) return Value::of(stripped(of.text, letters, false, true));
        if (given.empty())
            if (const auto made = with_case(name, of.text, titled)) return *made;
        if ((name == "startswith" || name == "endswith") && given.size() == 1)
            return Value::of(starts(name == "startswith"));
        if ((name == "split" || name == "rsplit") && has_texts(0, 2))
            return Value::of(split_of(of.text, given.empty() ? nullptr : &given[0],
                                      given.size() > 1 ? given[1].integer : -1, name == "split"));
        if (name == "replace" && has_texts(2, 3))
            return replaced(of.text, given[0].text, given[1].text, given.size() > 2 ? given[2].integer : -1);
        if (name == "find" && has_texts(1, 1)) {
            const size_t found = of.text.find(given[0].text);
            return Value::of(found == of.text.npos
                                 ? int64_t{-1}
                                 : int64_t(characters_in(std::string_view(of.text).substr(0, found))));
        }
        if (name == "join" && given.size() == 1) {
            const List self = {of};
            return filter({"join", given[0], self, {}});
        }
    }
    if (of.kind == Kind::map) {
        List out;
        if (name == "get" && !given.empty() && given.size() < 3) {
            const Value* member = of.map->find(given[0].text);
            return member ? *member : given.size() > 1 ? given[1] : Value::none();
        }
        if (!given.empty())
            return failed(cat("the method '", printable_name(name, 60), "' is not supported"));
        for (const auto& [key, member] : of.map->members)
            out.push_back(name == "items" ? pair_of(key, member) : name == "keys" ? Value::of(key) : member);
        if (name == "items" || name == "keys" || name == "values") return Value::of(std::move(out));
    }
    return failed(cat("the method '", printable_name(name, 60), "' of ", kind_name(of.kind),
                      " with these arguments is not supported"));
}

// ---- tests ----

namespace {

struct NamedTest {
    std::string_view name;
    bool (*holds)(const Value&);
};
constexpr NamedTest kTests[] = {
    {"defined", [](const Value& v) { return v.kind != Kind::undefined; }},
    {"undefined", [](const Value& v) { return v.kind == Kind::undefined; }},
    {"none", [](const Value& v) { return v.kind == Kind::none; }},
    {"boolean", [](const Value& v) { return v.kind == Kind::boolean; }},
    {"true", [](const Value& v) { return v.kind == Kind::boolean && v.integer; }},
    {"false", [](const Value& v) { return v.kind == Kind::boolean && !v.integer; }},
    {"integer", [](const Value& v) { return v.kind == Kind::integer; }},
    {"float", [](const Value& v) { return v.kind == Kind::real; }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"string", [](const Value& v) { return v.kind == Kind::text; }},
    {"mapping", [](const Value& v) { return v.kind == Kind::map; }},
    {"iterable",
     [](const Value& v) {
         return v.kind == Kind::undefined || (v.kind >= Kind::text && v.kind <= Kind::map);
     }},
    {"sequence",
     [](const Value& v) {
         return v.kind == Kind::undefined || (v.kind >= Kind::text && v.kind <= Kind::map);
     }},
    {"callable", [](const Value& v) { return v.kind == Kind::function; }},
    {"odd", [](const Value& v) { return v.integer % 2 != 0; }},
    {"even", [](const Value& v) { return v.integer % 2 == 0; }},
};
// Tests with an operand, and the comparison that each is.
constexpr std::pair<std::string_view, std::string_view> kComparisons[] = {
    {"==", "=="},         {"eq", "=="},      {"equalto", "=="}, {"!=", "!="}, {"ne", "!="},
    {"<", "<"},           {"lt", "<"},       {"le", "<="},      {"gt", ">"},  {"ge", ">="},
    {"greaterthan", ">"}, {"lessthan", "<"}, {"in", "in"}};

const NamedTest* test_named(std::string_view name) {
    const auto* const found = std::find_if(std::begin(kTests), std::end(kTests),
                                           [&](const NamedTest& one) { return one.name == name; });
    return found == std::end(kTests) ? nullptr : found;
}
std::string_view comparison_of(std::string_view name) {
    for (const auto& [test, sign] : kComparisons)
        if (test == name) return sign;
    return {};
}

}  // namespace

bool has_test(std::string_view name) {
    return test_named(name) || !comparison_of(name).empty() || name == "divisibleby";
}

Result<bool> test(const Call& call) {
    if (const NamedTest* one = test_named(call.name))
        if (call.arguments.empty()) return one->holds(call.of);
    if (call.arguments.size() == 1) {
        if (const std::string_view sign = comparison_of(call.name); !sign.empty())
            return compare(sign, call.of, call.arguments[0]);
        if (call.name == "divisibleby" && call.arguments[0].integer)
            return call.of.integer % call.arguments[0].integer == 0;
    }
    return failed(
        cat("the test '", printable_name(call.name, 60), "' has ", call.arguments.size(), " arguments"));
}

// ---- filters ----

namespace {

Result<Value> length_of(const Value& value) {
    List items;
    if (value.kind == Kind::text) return Value::of(int64_t(characters_in(value.text)));
    if (!items_of(value, items)) return failed(cat("the length of ", kind_name(value.kind), " is asked for"));
    return Value::of(int64_t(items.size()));
}

Result<Value> integer_of(const Call& call) {
    if (call.of.kind == Kind::real && std::fabs(call.of.real) < 1e15) return Value::of(int64_t(call.of.real));
    if (call.of.is_number()) return Value::of(call.of.integer);
    const auto parsed = files::parse_number(stripped(call.of.text, kSpaces, true, true));
    if (call.of.kind == Kind::text && parsed && std::fabs(*parsed) < 1e15) return Value::of(int64_t(*parsed));
    return call.arguments.empty() ? Value::of(int64_t{0}) : call.arguments[0];
}

// map, select, reject, selectattr and rejectattr.
Result<Value> of_each(const Call& call, List items) {
    const List& given = call.arguments;
    const bool by_attribute = call.name.ends_with("attr"), keeps = call.name.starts_with("select");
    const bool maps = call.name == "map";
    const Value* const attribute = maps ? call.named.find("attribute") : nullptr;
    const size_t used = (by_attribute ? 1 : 0) + (maps && attribute ? 0 : 1);
    if ((by_attribute && given.empty()) || (maps && !attribute && given.empty()))
        return failed(cat("the filter '", call.name, "' needs an argument"));
    const std::string name = given.size() >= used && used > 0 ? given[used - 1].text : std::string();
    const List rest(given.begin() + ptrdiff_t(std::min(used, given.size())), given.end());
    if (maps && !attribute && !has_filter(name))
        return failed(cat("the filter '", printable_name(name, 60), "' is not supported"));
    if (!maps && !name.empty() && !has_test(name))
        return failed(cat("the test '", printable_name(name, 60), "' is not supported"));
    List out;
    for (const Value& item : items) {
        if (maps) {
            Result<Value> made =
                attribute ? attribute_of(item, attribute->text) : filter({name, item, rest, {}});
            if (!made) return made;
            if (const Value* other = call.named.find("default"); other && made->kind == Kind::undefined)
                made = *other;
            out.push_back(std::move(*made));
            continue;
        }
        const Result<Value> tested = by_attribute ? attribute_of(item, given[0].text) : Result<Value>(item);
        if (!tested) return tested;
        const Result<bool> holds =
            name.empty() ? Result<bool>(tested->truth()) : test({name, *tested, rest, {}});
        if (!holds) return holds.error();
        if (*holds == keeps) out.push_back(item);
    }
    return Value::of(std::move(out));
}

Result<Value> joined(const Call& call, const List& items) {
    const Value* const attribute = call.named.find("attribute");
    const std::string between = call.arguments.empty() ? std::string() : call.arguments[0].shown();
    std::string out;
    for (size_t i = 0; i < items.size(); ++i) {
        const Result<Value> item =
            attribute ? attribute_of(items[i], attribute->text) : Result<Value>(items[i]);
        if (!item) return item;
        out += (i ? between : std::string()) + item->shown();
        if (out.size() > kMaxText) return failed("a text has more than 64 MiB");
    }
    return Value::of(std::move(out));
}

constexpr std::string_view kFilters[] = {
    "abs",    "capitalize", "count",   "d",       "default", "dictsort", "first",      "float",
    "int",    "items",      "join",    "last",    "length",  "list",     "lower",      "map",
    "reject", "rejectattr", "replace", "reverse", "safe",    "select",   "selectattr", "string",
    "title",  "tojson",     "trim",    "unique",  "upper"};

}  // namespace

bool has_filter(std::string_view name) {
    return std::find(std::begin(kFilters), std::end(kFilters), name) != std::end(kFilters);
}

Result<Value> filter(const Call& call) {
    const Value& of = call.of;
    const List& given = call.arguments;
    const std::string_view name = call.name;
    const auto argument = [&](size_t at, std::string_view named) -> const Value* {
        return at < given.size() ? &given[at] : call.named.find(named);
    };
    if (name == "default" || name == "d") {
        const Value *other = argument(0, "default_value"), *empty_too = argument(1, "boolean");
        const bool missing = of.kind == Kind::undefined || (empty_too && empty_too->truth() && !of.truth());
        return !missing ? of : other ? *other : Value::of(std::string());
    }
    if (name == "tojson") {
        const Value* indent = argument(0, "indent");
        if (of.kind == Kind::undefined || of.kind == Kind::function)
            return failed(cat("tojson has ", kind_name(of.kind), ", which JSON lacks"));
        if (indent && indent->kind == Kind::integer && (indent->integer < 0 || indent->integer > 16))
            return failed("the indent of tojson must be from 0 to 16");
        return Value::of(of.json(indent && indent->kind == Kind::integer ? int(indent->integer) : -1));
    }
    if (name == "string" || name == "safe") return Value::of(of.shown());
    if (name == "trim")
        return Value::of(
            stripped(of.shown(), given.empty() ? kSpaces : std::string_view(given[0].text), true, true));
    if (const auto made = with_case(name, of.shown(), words_capitalized)) return *made;
    if (name == "replace") {
        if (given.size() < 2) return failed("the filter 'replace' needs two arguments");
        return replaced(of.shown(), given[0].shown(), given[1].shown(),
                        given.size() > 2 ? given[2].integer : -1);
    }
    if (name == "length" || name == "count") return length_of(of);
    if (name == "int") return integer_of(call);
    if (name == "float") {
        const auto parsed = of.is_number() ? std::optional(of.number()) : files::parse_number(of.text);
        return Value::of(parsed.value_or(0.0));
    }
    if (name == "abs") {
        if (!of.is_number()) return failed(cat("the filter 'abs' has ", kind_name(of.kind)));
        return of.kind == Kind::real ? Value::of(std::fabs(of.real))
                                     : Value::of(of.integer < 0 ? -of.integer : of.integer);
    }
    if (name == "items" || name == "dictsort") {
        if (of.kind == Kind::undefined && name == "items") return Value::of(List{});
        if (of.kind != Kind::map) return failed(cat("the filter '", name, "' has ", kind_name(of.kind)));
        Map sorted = *of.map;
        if (name == "dictsort")
            std::stable_sort(sorted.members.begin(), sorted.members.end(), [](const auto& a, const auto& b) {
                return cased(a.first, false) < cased(b.first, false);
            });
        List out;
        for (const auto& [key, member] : sorted.members) out.push_back(pair_of(key, member));
        return Value::of(std::move(out));
    }
    List items;
    if (!items_of(of, items)) return failed(cat("the filter '", name, "' has ", kind_name(of.kind)));
    if (name == "list") return Value::of(std::move(items));
    if (name == "first") return items.empty() ? Value() : items.front();
    if (name == "last") return items.empty() ? Value() : items.back();
    if (name == "join") return joined(call, items);
    if (name == "reverse") {
        std::reverse(items.begin(), items.end());
        if (of.kind == Kind::text) return joined({"join", of, {}, {}}, items);
        return Value::of(std::move(items));
    }
    if (name == "unique") {  // whatever the case of texts
        const auto same = [](const Value& a, const Value& b) {
            return a.kind == Kind::text && b.kind == Kind::text ? cased(a.text, false) == cased(b.text, false)
                                                                : equal(a, b);
        };
        if (items.size() > 10'000) return failed("the filter 'unique' has more than 10,000 items");
        List out;
        for (const Value& item : items)
            if (std::none_of(out.begin(), out.end(), [&](const Value& one) { return same(one, item); }))
                out.push_back(item);
        return Value::of(std::move(out));
    }
    return of_each(call, std::move(items));
}

}  // namespace fovea::jinja

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
    if (from.empty()) return failed("'replace' of an empty text is not supported");
    std::string out;
    size_t at = 0;
    while (times != 0) {
        const size_t found = text.find(from, at);
        if (found == text.npos) break;
        out.append(text, at, found - at).append(to);
        if (out.size() > kMaxText) return failed("a text has more than 64 MiB");
        at = found + from.size(), times -= times > 0;
    }
    return Value::of(out.append(text, at));
}

List split_at_spaces(std::string_view text) {
    List parts;
    bool inside = false;
    for (const std::string_view c : characters_of(text)) {
        const bool space = is_white(c);
        if (!space && !inside) parts.push_back(Value::of(std::string()));
        if (!space) parts.back().text += c;
        inside = !space;
    }
    return parts;
}

Result<Value> split_at(std::string_view text, std::string_view separator, int64_t most, bool from_left) {
    if (separator.empty()) return failed("a text is split at an empty text");
    List parts;
    const auto take = [&](std::string_view part) { parts.push_back(Value::of(std::string(part))); };
    for (; most != 0; --most) {
        const size_t found = from_left ? text.find(separator) : text.rfind(separator);
        if (found == text.npos) break;
        if (from_left)
            take(text.substr(0, found)), text.remove_prefix(found + separator.size());
        else
            take(text.substr(found + separator.size())), text = text.substr(0, found);
    }
    take(text);
    if (!from_left) std::reverse(parts.begin(), parts.end());
    return Value::of(std::move(parts));
}

// strip() and its kin: `letters` is undefined for white space.
Result<Value> strip(std::string_view text, const Value& letters, bool left, bool right) {
    if (std::any_of(letters.text.begin(), letters.text.end(),
                    [](char c) { return static_cast<unsigned char>(c) > 127; }))
        return failed("characters beyond ASCII are stripped, which is not supported");
    std::vector<std::string_view> all = characters_of(text);
    const auto goes = [&](std::string_view c) {
        return letters.kind == Kind::text ? letters.text.find(c) != std::string::npos : is_white(c);
    };
    size_t begin = 0, end = all.size();
    while (left && begin < end && goes(all[begin])) ++begin;
    while (right && begin < end && goes(all[end - 1])) --end;
    std::string out;
    for (size_t i = begin; i < end; ++i) out += all[i];
    return Value::of(std::move(out));
}

}  // namespace

// ---- methods ----

Result<Value> method(const Call& call) {
    const Value& of = call.of;
    const List& given = call.arguments;
    const std::string_view name = call.name;
    // True if the arguments are of these kinds: t text, i integer; those after ? may be missing.
    const auto has = [&](std::string_view kinds) {
        size_t at = 0;
        bool optional = false;
        for (const char kind : kinds) {
            if (kind == '?') {
                optional = true;
            } else if (at == given.size()) {
                return optional && call.named.members.empty();
            } else if (given[at++].kind != (kind == 't' ? Kind::text : Kind::integer)) {
                return false;
            }
        }
        return at == given.size() && call.named.members.empty();
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
        const Value letters = given.empty() ? Value() : given[0];
        if (name == "strip" && has("?t")) return strip(of.text, letters, true, true);
        if (name == "lstrip" && has("?t")) return strip(of.text, letters, true, false);
        if (name == "rstrip" && has("?t")) return strip(of.text, letters, false, true);
        if (has(""))
            if (const auto made = with_case(name, of.text, titled)) return *made;
        if ((name == "startswith" || name == "endswith") && given.size() == 1 && call.named.members.empty())
            return Value::of(starts(name == "startswith"));
        if ((name == "split" || name == "rsplit") && has("")) return Value::of(split_at_spaces(of.text));
        if ((name == "split" || name == "rsplit") && has("t?i"))
            return split_at(of.text, given[0].text, given.size() > 1 ? given[1].integer : -1,
                            name == "split");
        if (name == "replace" && has("tt?i"))
            return replaced(of.text, given[0].text, given[1].text, given.size() > 2 ? given[2].integer : -1);
        if (name == "find" && has("t")) {
            const size_t found = of.text.find(given[0].text);
            return Value::of(found == of.text.npos
                                 ? int64_t{-1}
                                 : int64_t(characters_in(std::string_view(of.text).substr(0, found))));
        }
        if (name == "join" && given.size() == 1 && call.named.members.empty()) {
            const List self = {of};
            return filter({"join", given[0], self, {}});
        }
    }
    if (of.kind == Kind::map) {
        List out;
        if (name == "get" &&
            (has("t") || (given.size() == 2 && given[0].kind == Kind::text && call.named.members.empty()))) {
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

Value integer_of(const Value& of, const Value& otherwise) {
    if (of.kind == Kind::real && std::fabs(of.real) < 1e15) return Value::of(int64_t(of.real));
    if (of.is_number()) return Value::of(of.integer);
    const auto parsed = files::parse_number(strip(of.text, {}, true, true)->text);
    if (of.kind == Kind::text && parsed && std::fabs(*parsed) < 1e15) return Value::of(int64_t(*parsed));
    return otherwise.kind == Kind::undefined ? Value::of(int64_t{0}) : otherwise;
}

// The member of a value, or of its member: "function.name".
Result<Value> member_by_path(const Value& of, std::string_view path) {
    const size_t dot = path.find('.');
    const Result<Value> member = attribute_of(of, path.substr(0, dot));
    return !member || dot == path.npos ? member : member_by_path(*member, path.substr(dot + 1));
}

// map, select, reject, selectattr and rejectattr.
Result<Value> of_each(const Call& call, List items) {
    const List& given = call.arguments;
    const bool by_attribute = call.name.ends_with("attr"), keeps = call.name.starts_with("select");
    const bool maps = call.name == "map";
    const Value* const attribute = maps ? call.named.find("attribute") : nullptr;
    for (const auto& [key, value] : call.named.members)
        if (!maps || !attribute || (key != "attribute" && key != "default"))
            return failed(cat("the argument '", printable_name(key, 60), "' of the filter '", call.name,
                              "' is not supported"));
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
                attribute ? member_by_path(item, attribute->text) : filter({name, item, rest, {}});
            if (!made) return made;
            if (const Value* other = call.named.find("default"); other && made->kind == Kind::undefined)
                made = *other;
            out.push_back(std::move(*made));
            continue;
        }
        const Result<Value> tested = by_attribute ? member_by_path(item, given[0].text) : Result<Value>(item);
        if (!tested) return tested;
        const Result<bool> holds =
            name.empty() ? Result<bool>(tested->truth()) : test({name, *tested, rest, {}});
        if (!holds) return holds.error();
        if (*holds == keeps) out.push_back(item);
    }
    return Value::of(std::move(out));
}

Result<Value> joined(const List& items, const std::string& between, const Value& attribute) {
    std::string out;
    for (size_t i = 0; i < items.size(); ++i) {
        const Result<Value> item =
            attribute.kind == Kind::text ? member_by_path(items[i], attribute.text) : Result<Value>(items[i]);
        if (!item) return item;
        out += (i ? between : std::string()) + item->shown();
        if (out.size() > kMaxText) return failed("a text has more than 64 MiB");
    }
    return Value::of(std::move(out));
}

// A filter and its parameters, by comma; "*": of_each() reads them.
struct NamedFilter {
    std::string_view name, parameters;
};
constexpr NamedFilter kFilters[] = {{"abs", ""},
                                    {"capitalize", ""},
                                    {"count", ""},
                                    {"d", "default_value,boolean"},
                                    {"dictsort", ""},
                                    {"first", ""},
                                    {"float", "default"},
                                    {"default", "default_value,boolean"},
                                    {"int", "default"},
                                    {"items", ""},
                                    {"join", "d,attribute"},
                                    {"last", ""},
                                    {"length", ""},
                                    {"list", ""},
                                    {"lower", ""},
                                    {"map", "*"},
                                    {"reject", "*"},
                                    {"rejectattr", "*"},
                                    {"replace", "old,new,count"},
                                    {"reverse", ""},
                                    {"safe", ""},
                                    {"select", "*"},
                                    {"selectattr", "*"},
                                    {"string", ""},
                                    {"title", ""},
                                    {"tojson", "ensure_ascii,indent,separators,sort_keys"},
                                    {"trim", "chars"},
                                    {"unique", ""},
                                    {"upper", ""}};

const NamedFilter* filter_named(std::string_view name) {
    const auto* const found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                           [&](const NamedFilter& one) { return one.name == name; });
    return found == std::end(kFilters) ? nullptr : found;
}

// The arguments in the order of the parameters; undefined where one is missing. Rejects what has no
// parameter.
Result<List> placed(const Call& call, std::string_view parameters) {
    List out;
    size_t named = 0;
    for (std::string_view rest = parameters; !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
        const Value* const value =
            out.size() < call.arguments.size() ? &call.arguments[out.size()] : call.named.find(one);
        named += out.size() >= call.arguments.size() && value;
        out.push_back(value ? *value : Value());
    }
    if (call.arguments.size() > out.size() || named != call.named.members.size())
        return failed(cat("the filter '", call.name, "' with these arguments is not supported"));
    return out;
}

Result<Value> json_of(const Value& of, const List& given) {
    if (of.kind == Kind::undefined || of.kind == Kind::function)
        return failed(cat("tojson has ", kind_name(of.kind), ", which JSON lacks"));
    const Value& indent = given[1];
    if (given[0].truth() || given[2].truth() || given[3].truth())
        return failed("tojson with ensure_ascii, separators or sort_keys is not supported");
    if (indent.kind != Kind::undefined && indent.kind != Kind::none &&
        (indent.kind != Kind::integer || indent.integer < 0 || indent.integer > 16))
        return failed("the indent of tojson must be from 0 to 16");
    return Value::of(of.json(indent.kind == Kind::integer ? int(indent.integer) : -1));
}

}  // namespace

bool has_filter(std::string_view name) { return filter_named(name) != nullptr; }

Result<Value> filter(const Call& call) {
    const Value& of = call.of;
    const std::string_view name = call.name;
    const NamedFilter* const known = filter_named(name);
    if (!known) return failed(cat("the filter '", printable_name(name, 60), "' is not supported"));
    List items;
    if (known->parameters == "*") {
        if (!items_of(of, items)) return failed(cat("the filter '", name, "' has ", kind_name(of.kind)));
        return of_each(call, std::move(items));
    }
    const Result<List> arguments = placed(call, known->parameters);
    if (!arguments) return arguments.error();
    const List& given = *arguments;
    if (name == "default" || name == "d") {
        const bool missing = of.kind == Kind::undefined || (given[1].truth() && !of.truth());
        return !missing ? of : given[0].kind == Kind::undefined ? Value::of(std::string()) : given[0];
    }
    if (name == "tojson") return json_of(of, given);
    if (name == "string" || name == "safe") return Value::of(of.shown());
    if (name == "trim") return strip(of.shown(), given[0], true, true);
    if (const auto made = with_case(name, of.shown(), words_capitalized)) return *made;
    if (name == "replace") {
        if (given[1].kind == Kind::undefined) return failed("the filter 'replace' needs two arguments");
        return replaced(of.shown(), given[0].shown(), given[1].shown(),
                        given[2].kind == Kind::integer ? given[2].integer : -1);
    }
    if (name == "length" || name == "count") return length_of(of);
    if (name == "int") return integer_of(of, given[0]);
    if (name == "float") {
        const auto parsed = of.is_number() ? std::optional(of.number()) : files::parse_number(of.text);
        return parsed || given[0].kind == Kind::undefined ? Value::of(parsed.value_or(0.0)) : given[0];
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
    if (!items_of(of, items)) return failed(cat("the filter '", name, "' has ", kind_name(of.kind)));
    if (name == "list") return Value::of(std::move(items));
    if (name == "first") return items.empty() ? Value() : items.front();
    if (name == "last") return items.empty() ? Value() : items.back();
    if (name == "join") return joined(items, given[0].shown(), given[1]);
    if (name == "reverse") {
        std::reverse(items.begin(), items.end());
        if (of.kind == Kind::text) return joined(items, {}, {});
        return Value::of(std::move(items));
    }
    // unique, whatever the case of texts
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

}  // namespace fovea::jinja

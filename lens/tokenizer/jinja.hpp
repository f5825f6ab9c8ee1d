#pragma once
// Jinja as far as chat templates of published models use it, with what transformers sets: trim_blocks,
// lstrip_blocks, `break` and `continue`, `generation` blocks, tojson as json.dumps. The rest of the language
// is rejected by an error that names it. Templates come out of untrusted files: depth, steps and output are
// bounded.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fovea/fovea.hpp>

namespace fovea::jinja {

struct Value;
using List = std::vector<Value>;

// Members in the order of their first assignment, as in Python.
struct Map {
    std::vector<std::pair<std::string, Value>> members;

    const Value* find(std::string_view name) const;
    void set(std::string_view name, Value value);
};

enum class Kind : uint8_t { undefined, none, boolean, integer, real, text, list, map, function };

// A value of Python. Copies share lists and maps.
struct Value {
    Kind kind = Kind::undefined;
    bool is_tuple = false;  // true if a list is shown in parentheses
    int64_t integer = 0;    // a boolean is 0 or 1
    double real = 0;
    std::string text;  // a function has its name here
    std::shared_ptr<List> list;
    std::shared_ptr<Map> map;

    static Value none() { return {.kind = Kind::none}; }
    static Value of(bool value) { return {.kind = Kind::boolean, .integer = value}; }
    static Value of(int64_t value) { return {.kind = Kind::integer, .integer = value}; }
    static Value of(double value) { return {.kind = Kind::real, .real = value}; }
    static Value of(std::string value) { return {.kind = Kind::text, .text = std::move(value)}; }
    static Value of(List value, bool is_tuple = false) {
        return {.kind = Kind::list, .is_tuple = is_tuple, .list = std::make_shared<List>(std::move(value))};
    }
    static Value of(Map value) { return {.kind = Kind::map, .map = std::make_shared<Map>(std::move(value))}; }
    static Value function(std::string name) { return {.kind = Kind::function, .text = std::move(name)}; }

    bool is_number() const { return kind <= Kind::real && kind >= Kind::boolean; }
    double number() const { return kind == Kind::real ? real : double(integer); }
    bool truth() const;
    // str() and repr() of Python.
    std::string shown() const;
    std::string quoted() const;
    // json.dumps(ensure_ascii=False); `indent` below 0: on one line.
    std::string json(int indent) const;
};
bool equal(const Value& a, const Value& b);
// Characters of UTF-8, and one of them: Python counts characters.
size_t characters_in(std::string_view text);
std::vector<std::string_view> characters_of(std::string_view text);
constexpr std::string_view kSpaces = " \t\n\r\f\v";
bool is_white(std::string_view character);  // as str.isspace()
// Appends the items that a loop goes over: characters of a text, keys of a mapping. False for other kinds.
bool items_of(const Value& value, List& out);
const char* kind_name(Kind kind);  // for errors
constexpr size_t kMaxText = size_t{64} << 20;

enum class Op : uint8_t {
    // expressions
    literal,
    name,
    list,
    tuple,
    map,
    attribute,
    item,
    slice,
    call,
    filter,
    test,
    negate,
    plus_sign,
    logical_not,
    logical_and,
    logical_or,
    choice,
    binary,
    compare,
    // statements
    text,
    output,
    sequence,
    loop,
    condition,
    set,
    set_block,
    macro,
    leave,
    next,
};

// A node of a parsed template. `text` and `parts` depend on `op`: see the parser.
struct Node {
    Op op = Op::literal;
    size_t line = 0;
    std::string text;
    Value value;
    std::vector<Node> parts;
    std::vector<std::pair<std::string, Node>> named;
};

// The template as one Op::sequence. Errors have the line and what is not supported.
Result<Node> parse(std::string_view source);
Result<std::string> render(const Node& tree, Map globals);

// Filters, tests and methods by name; false if there is none of that name, an error where arguments do not
// fit.
struct Call {
    std::string_view name;
    const Value& of;
    const List& arguments;
    const Map& named;
};
bool has_filter(std::string_view name);
bool has_test(std::string_view name);
Result<Value> filter(const Call& call);
Result<bool> test(const Call& call);
Result<Value> method(const Call& call);
Result<Value> attribute_of(const Value& value, std::string_view name);
Result<Value> binary(std::string_view op, const Value& a, const Value& b);
Result<bool> compare(std::string_view op, const Value& a, const Value& b);
Error failed(std::string text);

}  // namespace fovea::jinja

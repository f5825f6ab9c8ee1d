// Runs a parsed template.
#include <algorithm>
#include <ctime>
#include <optional>

#include "files/refusal.hpp"
#include "tokenizer/jinja.hpp"

namespace fovea::jinja {
namespace {

using files::cat;

constexpr size_t kMaxSteps = size_t{1} << 24, kMaxOutput = size_t{64} << 20, kMaxRange = 100'000;
constexpr int kMaxCalls = 200;

constexpr std::string_view kFunctions[] = {"raise_exception", "namespace", "range", "dict", "strftime_now"};

// How many values and sixteens of bytes a value holds, at most `limit`: values share parts, whose number may
// double at each step.
size_t weight(const Value& value, size_t limit) {
    size_t sum = 1 + value.text.size() / 16;
    if (value.kind == Kind::list)
        for (const Value& item : *value.list)
            if (sum < limit) sum += weight(item, limit - sum);
    if (value.kind == Kind::map)
        for (const auto& [name, member] : value.map->members)
            if (sum < limit) sum += name.size() / 16 + weight(member, limit - sum);
    return std::min(sum, limit);
}

bool holds(const Value& value, const Map* map) {
    if (value.kind == Kind::list)
        return std::any_of(value.list->begin(), value.list->end(),
                           [&](const Value& v) { return holds(v, map); });
    return value.kind == Kind::map &&
           (value.map.get() == map ||
            std::any_of(value.map->members.begin(), value.map->members.end(),
                        [&](const auto& member) { return holds(member.second, map); }));
}

class Run {
  public:
    explicit Run(Map globals) { scopes_.push_back(std::move(globals)); }

    Result<std::string> all(const Node& tree) {
        std::string out;
        run(tree, out);
        if (error_) return *error_;
        return out;
    }

  private:
    enum class Flow : uint8_t { on, leave, next };

    Value fail(const Node& at, Error error) {
        if (!error_) {
            constexpr std::string_view kBegin = "the chat template: ";
            if (error.text.starts_with(kBegin)) error.text.insert(kBegin.size(), cat("line ", at.line, ": "));
            error_ = std::move(error);
        }
        return {};
    }
    Value fail(const Node& at, std::string text) { return fail(at, failed(std::move(text))); }
    template <class T>
    T take(const Node& at, Result<T> result) {
        if (result) return std::move(*result);
        fail(at, result.error());
        return {};
    }
    bool may_go_on(const Node& at) {
        if (++steps_ > kMaxSteps) fail(at, "it takes more than 2^24 steps");
        return !error_;
    }

    // ---- names ----
    Value named(const std::string& name) const {
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
            if (const Value* value = scope->find(name)) return *value;
        const bool known =
            std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
        return known || macros_.end() != macro(name) ? Value::function(name) : Value();
    }
    using Macros = std::vector<const Node*>;
    Macros::const_iterator macro(std::string_view name) const {
        return std::find_if(macros_.begin(), macros_.end(),
                            [&](const Node* one) { return one->text == name; });
    }

    // ---- expressions ----
    Value value(const Node& node) {
        if (!may_go_on(node)) return {};
        Value made = value_of(node);
        if (node.op == Op::list || node.op == Op::tuple || node.op == Op::map || node.op == Op::slice ||
            node.op == Op::call || node.op == Op::filter || node.op == Op::binary)
            steps_ += weight(made, kMaxSteps);
        return made;
    }
    Value value_of(const Node& node) {
        switch (node.op) {
            case Op::literal:
                return node.value;
            case Op::name:
                return named(node.text);
            case Op::list:
            case Op::tuple:
                return Value::of(values(node, 0), node.op == Op::tuple);
            case Op::map:
                return mapping(node);
            case Op::attribute:
                return take(node, attribute_of(value(node.parts[0]), node.text));
            case Op::item:
                return item(node);
            case Op::slice:
                return slice(node);
            case Op::call:
                return call(node);
            case Op::filter: {
                const Value of = value(node.parts[0]);
                const List arguments = values(node, 1);
                const Map by_name = names(node);
                return error_ ? Value() : take(node, filter({node.text, of, arguments, by_name}));
            }
            case Op::test: {
                const Value of = value(node.parts[0]);
                const List arguments = values(node, 1);
                return error_ ? Value() : Value::of(take(node, test({node.text, of, arguments, {}})));
            }
            case Op::negate: {
                const Value of = value(node.parts[0]);
                return take(node, binary("-", Value::of(int64_t{0}), of));
            }
            case Op::plus_sign:
                return value(node.parts[0]);
            case Op::logical_not:
                return Value::of(!value(node.parts[0]).truth());
            case Op::logical_and:
            case Op::logical_or: {
                Value left = value(node.parts[0]);
                return left.truth() == (node.op == Op::logical_or) ? left : value(node.parts[1]);
            }
            case Op::choice:
                return value(node.parts[value(node.parts[0]).truth() ? 1 : 2]);
            case Op::binary: {
                const Value left = value(node.parts[0]), right = value(node.parts[1]);
                return error_ ? Value() : take(node, binary(node.text, left, right));
            }
            case Op::compare: {
                const Value left = value(node.parts[0]), right = value(node.parts[1]);
                return error_ ? Value() : Value::of(take(node, compare(node.text, left, right)));
            }
            default:
                return fail(node, "a statement is in the place of a value");
        }
    }
    List values(const Node& node, size_t first) {
        List out;
        for (size_t i = first; i < node.parts.size() && !error_; ++i) out.push_back(value(node.parts[i]));
        return out;
    }
    Map names(const Node& node) {
        Map out;
        for (const auto& [name, part] : node.named) out.set(name, value(part));
        return out;
    }
    Value mapping(const Node& node) {
        Map out;
        for (size_t i = 0; i + 1 < node.parts.size() && !error_; i += 2) {
            const Value key = value(node.parts[i]);
            if (key.kind != Kind::text) return fail(node, "the key of a mapping must be a text");
            out.set(key.text, value(node.parts[i + 1]));
        }
        return Value::of(std::move(out));
    }
    Value item(const Node& node) {
        const Value of = value(node.parts[0]), at = value(node.parts[1]);
        if (error_) return {};
        if (of.kind == Kind::undefined)
            return fail(
                node, cat("'", printable_name(at.shown(), 60), "' is asked of a value that is not defined"));
        if (at.kind == Kind::text) return take(node, attribute_of(of, at.text));
        if (at.kind != Kind::integer && at.kind != Kind::boolean) return {};
        const std::vector<std::string_view> letters =
            of.kind == Kind::text ? characters_of(of.text) : std::vector<std::string_view>();
        const auto size = int64_t(of.kind == Kind::list ? of.list->size() : letters.size());
        const int64_t place = at.integer < 0 ? at.integer + size : at.integer;
        if (place < 0 || place >= size) return {};
        return of.kind == Kind::list ? (*of.list)[size_t(place)]
                                     : Value::of(std::string(letters[size_t(place)]));
    }
    Value slice(const Node& node) {
        const List parts = values(node, 0);
        if (error_) return {};
        const Value& of = parts[0];
        List items;
        if (of.kind == Kind::list)
            items = *of.list;
        else if (of.kind == Kind::text)
            for (const std::string_view c : characters_of(of.text))
                items.push_back(Value::of(std::string(c)));
        else
            return fail(node, "a slice needs a list or a text");
        const auto given = [&](size_t i) { return parts[i].kind == Kind::integer; };
        const auto size = int64_t(items.size());
        const int64_t step = given(3) ? parts[3].integer : 1;
        if (step == 0) return fail(node, "the step of a slice is 0");
        const auto bound = [&](size_t i, int64_t otherwise) {  // as slice.indices() of Python
            if (!given(i)) return otherwise;
            const int64_t place = parts[i].integer < 0 ? parts[i].integer + size : parts[i].integer;
            return std::clamp(place, step < 0 ? int64_t{-1} : 0, step < 0 ? size - 1 : size);
        };
        const int64_t first = bound(1, step < 0 ? size - 1 : 0), end = bound(2, step < 0 ? -1 : size);
        List out;
        for (int64_t i = first; step > 0 ? i < end : i > end; i += step) out.push_back(items[size_t(i)]);
        if (of.kind == Kind::list) return Value::of(std::move(out), of.is_tuple);
        std::string text;
        for (const Value& c : out) text += c.text;
        return Value::of(std::move(text));
    }
    Value call(const Node& node) {
        const Node& of = node.parts[0];
        const List arguments = values(node, 1);
        const Map by_name = names(node);
        if (error_) return {};
        if (of.op == Op::attribute) {
            const Value object = value(of.parts[0]);
            if (error_) return {};
            return take(node, method({of.text, object, arguments, by_name}));
        }
        const Value function = value(of);
        if (error_) return {};
        if (function.kind != Kind::function)
            return fail(node,
                        cat("'", printable_name(of.text, 60), "' is called, which is not a function here"));
        const std::string& name = function.text;
        if (const auto found = macro(name); found != macros_.end())
            return run_macro(**found, node, arguments, by_name);
        if (name == "raise_exception")
            return fail(node, Error{FOVEA_INVALID_ARGUMENT, "chat template",
                                    cat("the model's chat template rejects the messages: ",
                                        printable_name(arguments.empty() ? "" : arguments[0].shown(), 400))});
        if (name == "namespace" || name == "dict")
            return arguments.empty() ? Value::of(by_name)
                                     : fail(node, cat("'", name, "' with these arguments is not supported"));
        if (name == "range") return range(node, arguments);
        return today(node, arguments);
    }
    Value range(const Node& node, const List& given) {
        if (given.empty() || given.size() > 3 ||
            !std::all_of(given.begin(), given.end(), [](const Value& v) { return v.kind == Kind::integer; }))
            return fail(node, "range needs one to three integers");
        const int64_t first = given.size() > 1 ? given[0].integer : 0, end = given[given.size() > 1].integer,
                      step = given.size() > 2 ? given[2].integer : 1;
        List out;
        for (int64_t i = first; step > 0 ? i < end : step < 0 && i > end; i += step) {
            if (out.size() == kMaxRange)
                return fail(node, cat("a range has more than ", kMaxRange, " integers"));
            out.push_back(Value::of(i));
        }
        return Value::of(std::move(out));
    }
    // The present local time, in the format of strftime().
    Value today(const Node& node, const List& given) {
        if (given.size() != 1 || given[0].kind != Kind::text)
            return fail(node, "strftime_now needs one text");
        const std::time_t now = std::time(nullptr);
        const std::tm* const local = std::localtime(&now);
        char text[256];
        if (!local || given[0].text.size() > 60) return fail(node, "the time cannot be told");
        return Value::of(std::string(text, std::strftime(text, sizeof text, given[0].text.c_str(), local)));
    }
    Value run_macro(const Node& macro, const Node& at, const List& arguments, const Map& by_name) {
        if (++depth_ > kMaxCalls) return fail(at, cat("macros call each other deeper than ", kMaxCalls));
        Map parameters;
        for (const auto& [name, value] : by_name.members)
            if (std::none_of(macro.named.begin(), macro.named.end(),
                             [&](const auto& one) { return one.first == name; }))
                return fail(at, cat("the macro '", macro.text, "' has no parameter '",
                                    printable_name(name, 60), "'"));
        if (arguments.size() > macro.named.size())
            return fail(at, cat("the macro '", macro.text, "' has ", macro.named.size(),
                                " parameters and gets ", arguments.size(), " arguments"));
        for (size_t i = 0; i < macro.named.size(); ++i) {
            const auto& [name, otherwise] = macro.named[i];
            const Value* given = i < arguments.size() ? &arguments[i] : by_name.find(name);
            parameters.set(name, given ? *given : value(otherwise));
        }
        // A macro sees what the template has outside of its loops.
        std::vector<Map> outer(std::make_move_iterator(scopes_.begin() + 1),
                               std::make_move_iterator(scopes_.end()));
        scopes_.resize(1);
        scopes_.push_back(std::move(parameters));
        std::string text;
        run(macro.parts[0], text);
        scopes_.resize(1);
        for (Map& scope : outer) scopes_.push_back(std::move(scope));
        --depth_;
        return Value::of(std::move(text));
    }

    // ---- statements ----
    Flow run(const Node& node, std::string& out) {
        if (!may_go_on(node)) return Flow::leave;
        if (out.size() > kMaxOutput) return fail(node, "its text has more than 64 MiB"), Flow::leave;
        switch (node.op) {
            case Op::text:
                out += node.text;
                break;
            case Op::output:
                out += value(node.parts[0]).shown();
                break;
            case Op::sequence:
                for (const Node& part : node.parts)
                    if (const Flow flow = run(part, out); flow != Flow::on) return flow;
                break;
            case Op::condition: {
                const size_t chosen = value(node.parts[0]).truth() ? 1 : 2;
                if (!error_ && chosen < node.parts.size()) return run(node.parts[chosen], out);
                break;
            }
            case Op::loop:
                return loop(node, out);
            case Op::set:
                assign(node, value(node.parts[0]));
                break;
            case Op::set_block: {
                std::string text;
                const Flow flow = run(node.parts[0], text);
                assign(node, Value::of(std::move(text)));
                return flow;
            }
            case Op::macro:
                macros_.insert(macros_.begin(), &node);
                break;
            case Op::leave:
                return Flow::leave;
            case Op::next:
                return Flow::next;
            default:
                fail(node, "a value is in the place of a statement");
        }
        return error_ ? Flow::leave : Flow::on;
    }
    void assign(const Node& node, Value value) {
        if (error_) return;
        const size_t dot = node.text.find('.');
        if (dot == node.text.npos) return scopes_.back().set(node.text, std::move(value));
        const Value space = named(node.text.substr(0, dot));
        if (space.kind != Kind::map) {
            fail(node, cat("'", printable_name(node.text, 60), "' is assigned to, which needs a namespace"));
            return;
        }
        if (holds(value, space.map.get())) {
            fail(node, cat("'", printable_name(node.text, 60), "' is assigned to a value that contains it"));
            return;
        }
        space.map->set(node.text.substr(dot + 1), std::move(value));
    }
    // Sets the names of a loop, by comma, to the item or its parts.
    void bind(const Node& node, const Value& item, Map& scope) {
        if (node.text.find(',') == node.text.npos) return scope.set(node.text, item);
        size_t at = 0, i = 0;
        for (; at <= node.text.size(); ++i) {
            const size_t end = std::min(node.text.find(',', at), node.text.size());
            if (item.kind == Kind::list && i < item.list->size())
                scope.set(node.text.substr(at, end - at), (*item.list)[i]);
            at = end + 1;
        }
        if (item.kind != Kind::list || item.list->size() != i)
            fail(node, cat("a loop over ", i, " names has an item of another size"));
    }
    Flow loop(const Node& node, std::string& out) {
        const Value of = value(node.parts[0]);
        if (error_) return Flow::leave;
        const Value as_list = take(node, filter({"list", of, {}, {}}));
        if (error_) return Flow::leave;
        List items;
        for (const Value& item : *as_list.list) {
            scopes_.emplace_back();
            bind(node, item, scopes_.back());
            const bool kept = value(node.parts[1]).truth();
            scopes_.pop_back();
            if (error_) return Flow::leave;
            if (kept) items.push_back(item);
        }
        if (items.empty()) return run(node.parts[3], out);
        for (size_t i = 0; i < items.size() && !error_; ++i) {
            Map state;
            const auto whole = [](size_t number) { return Value::of(int64_t(number)); };
            state.set("index", whole(i + 1)), state.set("index0", whole(i));
            state.set("revindex", whole(items.size() - i)),
                state.set("revindex0", whole(items.size() - i - 1));
            state.set("first", Value::of(i == 0)), state.set("last", Value::of(i + 1 == items.size()));
            state.set("length", whole(items.size()));
            state.set("depth", whole(1)), state.set("depth0", whole(0));
            if (i > 0) state.set("previtem", items[i - 1]);
            if (i + 1 < items.size()) state.set("nextitem", items[i + 1]);
            Map scope;
            scope.set("loop", Value::of(std::move(state)));
            bind(node, items[i], scope);
            scopes_.push_back(std::move(scope));
            const Flow flow = run(node.parts[2], out);
            scopes_.pop_back();
            if (flow == Flow::leave) break;
        }
        return error_ ? Flow::leave : Flow::on;
    }

    std::vector<Map> scopes_;  // the last one is searched first
    Macros macros_;
    size_t steps_ = 0;
    int depth_ = 0;
    std::optional<Error> error_;
};

}  // namespace

Result<std::string> render(const Node& tree, Map globals) { return Run(std::move(globals)).all(tree); }

}  // namespace fovea::jinja

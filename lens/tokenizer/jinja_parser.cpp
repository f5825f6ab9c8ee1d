// Parses the pieces of a template into one tree.
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include "files/refusal.hpp"
#include "tokenizer/jinja_lexer.hpp"

namespace fovea::jinja {
namespace {

using files::cat;

constexpr int kMaxDepth = 64;

// ---- expressions and statements ----

class Parser {
  public:
    explicit Parser(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

    Result<Node> all() {
        Node tree = body({});
        if (error_) return *error_;
        return tree;
    }

  private:
    using Kind = Token::Kind;

    // ---- tokens of the present tag ----
    const Token& now() const {
        static const Token none;
        return piece_ < pieces_.size() ? pieces_[piece_].tokens[token_] : none;
    }
    bool is(Kind kind, std::string_view text) const { return now().kind == kind && now().text == text; }
    bool is_sign(std::string_view text) const { return is(Kind::sign, text); }
    bool is_word(std::string_view text) const { return is(Kind::name, text); }
    bool take(Kind kind, std::string_view text) {
        if (!is(kind, text)) return false;
        ++token_;
        return true;
    }
    bool take_sign(std::string_view text) { return take(Kind::sign, text); }
    bool take_word(std::string_view text) { return take(Kind::name, text); }
    void expect_sign(std::string_view text) {
        if (!take_sign(text)) unexpected(cat("'", text, "'"));
    }
    std::string expect_name() {
        if (now().kind != Kind::name) return unexpected("a name"), std::string();
        return pieces_[piece_].tokens[token_++].text;
    }
    void expect_end() {
        if (now().kind != Kind::end) unexpected("the end of the tag");
    }
    void unexpected(std::string_view wanted) {
        fail(cat("'", printable_name(now().text, 60), "' is found where ", wanted, " is needed"));
    }
    // Keeps the first error.
    Node fail(std::string text) {
        if (!error_) error_ = at_line(line(), std::move(text));
        return {};
    }
    size_t line() const { return piece_ < pieces_.size() ? pieces_[piece_].line : 1; }
    bool failed_already() const { return error_.has_value(); }

    Node node(Op op, std::string text = {}, std::vector<Node> parts = {}) const {
        return {.op = op, .line = line(), .text = std::move(text), .parts = std::move(parts)};
    }
    Node literal(Value value) const { return {.line = line(), .value = std::move(value)}; }

    // ---- expressions, in the order of their precedence ----
    Node expression() {
        if (++depth_ > kMaxDepth)
            return --depth_, fail(cat("an expression is nested deeper than ", kMaxDepth));
        Node value = logical_or();
        while (!failed_already() && take_word("if")) {
            Node condition = logical_or();
            Node other = take_word("else") ? expression() : literal({});
            value = node(Op::choice, "", {std::move(condition), std::move(value), std::move(other)});
        }
        --depth_;
        return value;
    }
    Node logical_or() {
        Node left = logical_and();
        while (!failed_already() && take_word("or"))
            left = node(Op::logical_or, "", {std::move(left), logical_and()});
        return left;
    }
    Node logical_and() {
        Node left = logical_not();
        while (!failed_already() && take_word("and"))
            left = node(Op::logical_and, "", {std::move(left), logical_not()});
        return left;
    }
    Node logical_not() {
        size_t times = 0;
        while (take_word("not")) ++times;
        Node value = comparison();
        if (times == 0) return value;
        value = node(Op::logical_not, "", {std::move(value)});
        return times % 2 == 1 ? value : node(Op::logical_not, "", {std::move(value)});
    }
    std::string comparison_sign() {
        for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"})
            if (take_sign(sign)) return std::string(sign);
        if (take_word("in")) return "in";
        if (is_word("not") && pieces_[piece_].tokens[token_ + 1].text == "in") return token_ += 2, "not in";
        return {};
    }
    // In a chain a < b < c each neighbouring pair must hold.
    Node comparison() {
        Node left = sum();
        std::string sign = comparison_sign();
        if (sign.empty()) return left;
        Node result;
        for (bool first = true; !failed_already() && !sign.empty(); sign = comparison_sign(), first = false) {
            Node right = sum();
            Node one = node(Op::compare, sign, {std::move(left), right});
            result = first ? std::move(one) : node(Op::logical_and, "", {std::move(result), std::move(one)});
            left = std::move(right);
        }
        return result;
    }
    template <class Next>
    Node binary_chain(std::initializer_list<std::string_view> signs, const Next& next) {
        Node left = next();
        while (!failed_already()) {
            std::string_view taken;
            for (const std::string_view sign : signs)
                if (taken.empty() && take_sign(sign)) taken = sign;
            if (taken.empty()) break;
            left = node(Op::binary, std::string(taken), {std::move(left), next()});
        }
        return left;
    }
    Node sum() {
        const auto product = [&] { return binary_chain({"*", "//", "/", "%"}, [&] { return unary(true); }); };
        const auto joined = [&] { return binary_chain({"~"}, product); };
        return binary_chain({"+", "-"}, joined);
    }
    Node unary(bool filtered) {
        if (++depth_ > kMaxDepth)
            return --depth_, fail(cat("an expression is nested deeper than ", kMaxDepth));
        Node value;
        if (take_sign("-"))
            value = node(Op::negate, "", {unary(false)});
        else if (take_sign("+"))
            value = node(Op::plus_sign, "", {unary(false)});
        else
            value = postfix(primary());
        if (is_sign("**")) fail("the operator ** is not supported");
        if (filtered) value = filters(std::move(value));
        --depth_;
        return value;
    }
    Node primary() {
        const Token token = now();
        if (token.kind == Kind::end) return unexpected("a value"), Node();
        ++token_;
        if (token.kind == Kind::text) {
            std::string text = token.text;
            while (now().kind == Kind::text) text += pieces_[piece_].tokens[token_++].text;
            return literal(Value::of(std::move(text)));
        }
        if (token.kind == Kind::integer) return literal(Value::of(int64_t(std::atoll(token.text.c_str()))));
        if (token.kind == Kind::real) return literal(Value::of(std::strtod(token.text.c_str(), nullptr)));
        if (token.kind == Kind::name) {
            const std::string& t = token.text;
            if (t == "true" || t == "True") return literal(Value::of(true));
            if (t == "false" || t == "False") return literal(Value::of(false));
            if (t == "none" || t == "None") return literal(Value::none());
            return node(Op::name, t);
        }
        if (token.text == "(") {
            Node first = is_sign(")") ? node(Op::tuple) : expression();
            if (is_sign(",")) {
                first = node(Op::tuple, "", {std::move(first)});
                while (!failed_already() && take_sign(",") && !is_sign(")"))
                    first.parts.push_back(expression());
            }
            expect_sign(")");
            return first;
        }
        if (token.text == "[") {
            Node list = node(Op::list);
            while (!failed_already() && !is_sign("]")) {
                list.parts.push_back(expression());
                if (!take_sign(",")) break;
            }
            expect_sign("]");
            return list;
        }
        if (token.text == "{") {
            Node map = node(Op::map);
            while (!failed_already() && !is_sign("}")) {
                map.parts.push_back(expression());
                expect_sign(":");
                map.parts.push_back(expression());
                if (!take_sign(",")) break;
            }
            expect_sign("}");
            return map;
        }
        --token_;
        return unexpected("a value"), Node();
    }
    Node postfix(Node value) {
        while (!failed_already()) {
            if (take_sign(".")) {
                if (now().kind == Kind::integer)
                    value = node(Op::item, "", {std::move(value), primary()});
                else
                    value = node(Op::attribute, expect_name(), {std::move(value)});
            } else if (take_sign("[")) {
                value = subscript(std::move(value));
            } else if (is_sign("(")) {
                value = called(std::move(value));
            } else {
                break;
            }
        }
        return value;
    }
    // [index] or [first:end:step], whose missing parts are undefined.
    Node subscript(Node value) {
        std::vector<Node> parts = {std::move(value)};
        bool slice = false;
        for (size_t i = 0; i < 3 && !failed_already(); ++i) {
            parts.push_back(is_sign(":") || is_sign("]") ? literal({}) : expression());
            if (!take_sign(":")) break;
            slice = true;
        }
        expect_sign("]");
        if (!slice) return node(Op::item, "", std::move(parts));
        parts.resize(4, literal({}));
        return node(Op::slice, "", std::move(parts));
    }
    Node called(Node value) {
        Node call = node(Op::call, "", {std::move(value)});
        arguments(call);
        return call;
    }
    void arguments(Node& call) {
        expect_sign("(");
        while (!failed_already() && !is_sign(")")) {
            const bool named = now().kind == Kind::name &&
                               pieces_[piece_].tokens[token_ + 1].kind == Kind::sign &&
                               pieces_[piece_].tokens[token_ + 1].text == "=";
            if (named) {
                std::string name = expect_name();
                expect_sign("=");
                call.named.emplace_back(std::move(name), expression());
            } else {
                if (!call.named.empty()) fail("an argument without a name follows one with a name");
                call.parts.push_back(expression());
            }
            if (!take_sign(",")) break;
        }
        expect_sign(")");
    }
    Node filters(Node value) {
        while (!failed_already()) {
            if (take_sign("|")) {
                value = node(Op::filter, expect_name(), {std::move(value)});
                if (!failed_already() && !has_filter(value.text))
                    fail(cat("the filter '", printable_name(value.text, 60), "' is not supported"));
                if (is_sign("(")) arguments(value);
            } else if (take_word("is")) {
                value = tested(std::move(value));
            } else if (is_sign("(")) {
                value = called(std::move(value));
            } else {
                break;
            }
        }
        return value;
    }
    Node tested(Node value) {
        const bool negated = take_word("not");
        Node test = node(Op::test, expect_name(), {std::move(value)});
        if (!failed_already() && !has_test(test.text))
            fail(cat("the test '", printable_name(test.text, 60), "' is not supported"));
        if (is_sign("("))
            arguments(test);
        else if (now().kind == Kind::text || now().kind == Kind::integer || now().kind == Kind::real ||
                 is_sign("[") || is_sign("{") ||
                 (now().kind == Kind::name && !is_word("else") && !is_word("or") && !is_word("and") &&
                  !is_word("is") && !is_word("if") && !is_word("in") && !is_word("not")))
            test.parts.push_back(postfix(primary()));
        if (!test.named.empty()) fail("a test with a named argument is not supported");
        return negated ? node(Op::logical_not, "", {std::move(test)}) : test;
    }

    // ---- statements ----

    // Parses pieces up to a statement that begins with one of `ends`, which stays the present one.
    Node body(std::initializer_list<std::string_view> ends) {
        Node out = node(Op::sequence);
        if (++depth_ > kMaxDepth) return --depth_, fail(cat("statements are nested deeper than ", kMaxDepth));
        while (!failed_already() && piece_ < pieces_.size()) {
            token_ = 0;
            Piece& piece = pieces_[piece_];
            if (piece.kind == Piece::Kind::text) {
                out.parts.push_back(node(Op::text, std::move(piece.text)));
                ++piece_;
                continue;
            }
            if (piece.kind == Piece::Kind::output) {
                out.parts.push_back(node(Op::output, "", {expression()}));
                expect_end();
                ++piece_;
                continue;
            }
            const std::string word = expect_name();
            for (const std::string_view end : ends)
                if (word == end) return --depth_, out;
            if (!failed_already()) out.parts.push_back(statement(word));
        }
        --depth_;
        if (!failed_already() && ends.size())
            fail(cat("a statement has no end: ", *(ends.end() - 1), " is missing"));
        return out;
    }
    // The statement is read to its end, which may be further pieces.
    void finish() {
        expect_end();
        piece_ += !failed_already();
    }
    // After body(): the word that ended it.
    std::string ending() const { return failed_already() ? std::string() : pieces_[piece_].tokens[0].text; }

    Node statement(const std::string& word) {
        if (word == "if") return condition();
        if (word == "for") return loop();
        if (word == "set") return set();
        if (word == "macro") return macro();
        if (word == "generation") {
            finish();
            Node inner = body({"endgeneration"});
            finish();
            return inner;
        }
        if (word == "break" || word == "continue") {
            if (!loops_) return fail(cat("'", word, "' is outside of a loop"));
            Node out = node(word == "break" ? Op::leave : Op::next);
            finish();
            return out;
        }
        return fail(cat("the statement '", printable_name(word, 60), "' is not supported"));
    }
    // Op::condition: condition, body, and what else: another condition or a sequence.
    Node condition() {
        Node out = node(Op::condition, "", {expression()});
        finish();
        out.parts.push_back(body({"elif", "else", "endif"}));
        const std::string end = ending();
        if (end == "elif") {
            if (++depth_ > kMaxDepth)
                return --depth_, fail(cat("statements are nested deeper than ", kMaxDepth));
            out.parts.push_back(condition());
            --depth_;
            return out;
        }
        if (end == "else") {
            finish();
            out.parts.push_back(body({"endif"}));
        }
        if (!failed_already()) finish();
        return out;
    }
    // Op::loop: what is iterated, its condition, body, what runs without items; `text`: names, by comma.
    Node loop() {
        Node out = node(Op::loop, expect_name());
        while (!failed_already() && take_sign(",")) out.text += "," + expect_name();
        if (!take_word("in")) unexpected("'in'");
        out.parts.push_back(logical_or());  // `if` after it is the loop's
        out.parts.push_back(take_word("if") ? expression() : literal(Value::of(true)));
        if (is_word("recursive")) fail("a recursive loop is not supported");
        finish();
        ++loops_;
        out.parts.push_back(body({"else", "endfor"}));
        --loops_;
        if (ending() == "else") {
            finish();
            out.parts.push_back(body({"endfor"}));
        } else {
            out.parts.push_back(node(Op::sequence));
        }
        if (!failed_already()) finish();
        return out;
    }
    // Op::set: the value; `text`: NAME, or NAME.MEMBER of a namespace. Op::set_block: a body in its place.
    Node set() {
        Node out = node(Op::set, expect_name());
        if (take_sign(".")) out.text += "." + expect_name();
        if (is_sign(",")) fail("an assignment to several names is not supported");
        if (take_sign("=")) {
            out.parts.push_back(expression());
            finish();
            return out;
        }
        out.op = Op::set_block;
        finish();
        out.parts.push_back(body({"endset"}));
        if (!failed_already()) finish();
        return out;
    }
    // Op::macro: the body; `named`: parameters and their defaults.
    Node macro() {
        Node out = node(Op::macro, expect_name());
        expect_sign("(");
        while (!failed_already() && !is_sign(")")) {
            std::string name = expect_name();
            out.named.emplace_back(std::move(name), take_sign("=") ? expression() : literal({}));
            if (!take_sign(",")) break;
        }
        expect_sign(")");
        finish();
        const int outer = std::exchange(loops_, 0);
        out.parts.push_back(body({"endmacro"}));
        loops_ = outer;
        if (!failed_already()) finish();
        return out;
    }

    std::vector<Piece> pieces_;
    size_t piece_ = 0, token_ = 0;
    int depth_ = 0, loops_ = 0;
    std::optional<Error> error_;
};

}  // namespace

Result<Node> parse(std::string_view source) {
    Result<std::vector<Piece>> pieces = split(source);
    if (!pieces) return pieces.error();
    return Parser(std::move(*pieces)).all();
}

}  // namespace fovea::jinja

#include <fovea/files.hpp>
#include <fovea/tokenizer/characters.hpp>

#include <algorithm>

#include "tokenizer/pattern_tree.hpp"

namespace fovea {
namespace {

using Node = PatternNode;

constexpr uint32_t kMaxRepeats = 100'000;  // as Oniguruma has it
constexpr int kDeepest = 200;

struct Options {
    bool ignore_case = false, any_with_newline = false, extended = false;
};

class PatternReader {
  public:
    explicit PatternReader(std::string_view pattern) : text_(pattern) {}

    Result<Node> read() {
        Node all = alternatives({}, 0);
        if (!error_ && at_ < text_.size()) fails("')' without '('", at_);
        if (error_) return *error_;
        return all;
    }

  private:
    // ---- characters of the pattern ----

    bool ends() const { return at_ >= text_.size() || error_; }
    char peek(size_t more = 0) const { return at_ + more < text_.size() ? text_[at_ + more] : '\0'; }
    bool eat(std::string_view what) {
        if (error_ || !text_.substr(at_).starts_with(what)) return false;
        at_ += what.size();
        return true;
    }
    uint32_t next() {
        const Character c = character_at(text_, at_);
        at_ += c.bytes;
        return c.value;
    }
    void fails(std::string what, size_t at) {
        if (!error_)
            error_ = Error{FOVEA_UNSUPPORTED, "pattern",
                           "the pattern has " + std::move(what) + " at its byte " + std::to_string(at)};
    }
    void unsupported(std::string_view what, size_t at) {
        fails(std::string(what) + ", which is not supported,", at);
    }
    // Up to `most` digits; nothing without one.
    std::optional<uint32_t> digits(uint32_t base, int most) {
        uint32_t value = 0;
        int count = 0;
        for (; count < most; ++count, ++at_) {
            const char c = peek();
            const uint32_t digit = c >= '0' && c <= '9'                     ? uint32_t(c - '0')
                                   : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? uint32_t((c | 0x20) - 'a') + 10
                                                                            : 99;
            if (digit >= base) break;
            value = value > CodeSet::kEnd ? value : value * base + digit;
        }
        return count == 0 ? std::nullopt : std::optional(value);
    }
    // White space and comments.
    void skip(const Options& options) {
        while (!ends()) {
            if (eat("(?#")) {
                while (!ends() && peek() != ')') at_ += peek() == '\\' ? 2 : 1;
                if (!eat(")")) fails("a comment without an end", text_.size());
            } else if (options.extended &&
                       std::string_view(" \t\n\r\f").find(peek()) != std::string_view::npos) {
                ++at_;
            } else if (options.extended && peek() == '#') {
                while (!ends() && peek() != '\n') ++at_;
            } else {
                return;
            }
        }
    }

    // ---- nodes ----

    static Node of_set(CodeSet set) {
        Node out;
        out.kind = Node::Kind::set;
        out.set = std::move(set);
        return out;
    }
    static Node of_place(PatternPlace place) {
        Node out;
        out.kind = Node::Kind::place;
        out.place = place;
        return out;
    }
    static Node atomic(Node body) {
        Node out;
        out.kind = Node::Kind::atomic;
        out.parts.push_back(std::move(body));
        return out;
    }
    Node literal(uint32_t c, const Options& options) {
        CodeSet set = CodeSet::one(c);
        if (!options.ignore_case) return of_set(std::move(set));
        if (folds_to_several().has(c)) unsupported("(?i) with a letter that equals several", at_);
        // Only adjacent letters are checked together.
        if (before_ && begins_a_fold(*before_, c))
            unsupported("(?i) with letters that one letter equals", at_);
        before_ = c;
        return of_set(with_cases(set));
    }

    Node alternatives(const Options& options, int depth) {
        Node choice;
        choice.kind = Node::Kind::choice;
        if (depth > kDeepest) fails("groups nested too deeply", at_);
        do choice.parts.push_back(sequence(options, depth));
        while (!ends() && eat("|"));
        return choice.parts.size() == 1 ? std::move(choice.parts[0]) : std::move(choice);
    }

    Node sequence(Options options, int depth) {
        Node out;
        for (before_.reset(), skip(options); !ends() && peek() != '|' && peek() != ')'; skip(options)) {
            const std::optional<uint32_t> last = std::exchange(before_, std::nullopt);
            if (std::optional<Options> changed = isolated_options(options)) {
                // These hold to the end of the group, its alternatives included.
                out.parts.push_back(alternatives(*changed, depth + 1));
                return out;
            }
            before_ = last;
            Node one = term(options, depth);
            skip(options);
            const std::optional<uint32_t> letter = one.kind == Node::Kind::set ? before_ : std::nullopt;
            while (!ends() && quantified(one)) skip(options);
            before_ = one.kind == Node::Kind::set ? letter : std::nullopt;
            out.parts.push_back(std::move(one));
        }
        return out;
    }

    // (?imx-imx) and what it says; (?imx-imx:...) is read by group().
    std::optional<Options> isolated_options(Options options) {
        const size_t begin = at_;
        if (!eat("(?")) return std::nullopt;
        if (read_options(options) && eat(")")) return options;
        at_ = begin;
        return std::nullopt;
    }
    // False where there are none.
    bool read_options(Options& options) {
        const size_t begin = at_;
        for (bool on = true;; ++at_) {
            if (peek() == '-')
                on = false;
            else if (peek() == 'i')
                options.ignore_case = on;
            else if (peek() == 'm')
                options.any_with_newline = on;
            else if (peek() == 'x')
                options.extended = on;
            else
                return at_ > begin;
        }
    }

    bool quantified(Node& one) {
        const size_t begin = at_;
        uint32_t least = 0, most = kUnbounded;
        bool possessive = false, greedy = true, interval = false, fixed = false;
        if (eat("*")) {
        } else if (eat("+")) {
            least = 1;
        } else if (eat("?")) {
            most = 1;
        } else if (eat("{")) {
            const auto low = digits(10, 9);
            const bool comma = eat(",");
            const auto high = comma ? digits(10, 9) : low;
            if ((!low && !high) || !eat("}")) {
                at_ = begin;  // a letter like others
                return false;
            }
            interval = true, fixed = !comma;
            least = low.value_or(0), most = high.value_or(kUnbounded);
            if (least > kMaxRepeats || (high && most > kMaxRepeats)) fails("more than 100000 repeats", begin);
            if (least > most) {
                std::swap(least, most);
                possessive = true;
            }
        } else {
            return false;
        }
        if (one.kind == Node::Kind::look || one.kind == Node::Kind::place)
            fails("a repeat of nothing", begin);
        // In Oniguruma an empty match ends some of these repeats before they have their least count.
        if (least > 1 && one.width().first == 0 && one.looks_around())
            unsupported("two or more repeats of what looks around and may be empty", begin);
        if (!fixed && !possessive && eat("?"))
            greedy = false;
        else if (!interval && eat("+"))
            possessive = true;
        Node out;
        out.kind = Node::Kind::repeat;
        out.greedy = greedy, out.least = least, out.most = most;
        out.parts.push_back(std::move(one));
        one = possessive ? atomic(std::move(out)) : std::move(out);
        return true;
    }

    Node term(const Options& options, int depth) {
        const size_t begin = at_;
        switch (peek()) {
            case '(':
                return group(options, depth);
            case '[': {
                ++at_;
                CodeSet set = bracket(options, depth, true);
                before_.reset();
                return of_set(std::move(set));
            }
            case '\\':
                return escape(options);
            case '.':
                ++at_, before_.reset();
                return of_set(options.any_with_newline ? ~CodeSet() : ~CodeSet::one('\n'));
            case '^':
                ++at_;
                return of_place(PatternPlace::line_begin);
            case '$':
                ++at_;
                return of_place(PatternPlace::line_end);
            case '*':
            case '+':
            case '?':
                fails("a repeat of nothing", begin);
                return {};
            case '{': {
                Node nothing;
                if (quantified(nothing)) fails("a repeat of nothing", begin);
                break;
            }
            default:
                break;
        }
        if (ends()) return {};
        return literal(next(), options);
    }

    Node group(Options options, int depth) {
        const size_t begin = at_;
        Node out;
        ++at_;
        if (peek() == '*') {
            unsupported("a callout", begin);
            return out;
        }
        if (eat("?")) {
            if (eat("=") || eat("!")) {
                out.kind = Node::Kind::look;
                out.negative = text_[at_ - 1] == '!';
            } else if (eat("<=") || eat("<!")) {
                out.kind = Node::Kind::look;
                out.behind = true, out.negative = text_[at_ - 1] == '!';
            } else if (eat(">")) {
                out.kind = Node::Kind::atomic;
            } else if (eat("<") || eat("'")) {
                const char last = text_[at_ - 1] == '<' ? '>' : '\'';
                while (!ends() && peek() != last && peek() != ')') ++at_;
                if (peek() != last) fails("a group's name without an end", begin);
                ++at_, ++groups_;
            } else if (peek() == '~') {
                unsupported("an absent function", begin);
            } else if (peek() == '(') {
                unsupported("a condition", begin);
            } else if (peek() == '{') {
                unsupported("a callout", begin);
            } else if (!eat(":")) {
                read_options(options);
                if (!eat(":")) {
                    std::string name = "(?";
                    if (at_ < text_.size()) append_utf8(name, character_at(text_, at_).value);
                    unsupported("the group " + printable_name(name, 20), begin);
                }
            }
        }
        groups_ += text_[begin + 1 < text_.size() ? begin + 1 : begin] != '?';
        behind_ += out.behind;
        Node body = alternatives(options, depth + 1);
        behind_ -= out.behind;
        if (!error_ && !eat(")")) fails("'(' without ')'", begin);
        before_.reset();
        if (out.kind == Node::Kind::sequence) return body;
        out.parts.push_back(std::move(body));
        return out;
    }

    // Parses \p{NAME}, \p{^NAME} and the negations, after the opening brace.
    CodeSet property(bool negative, bool in_brackets, size_t begin) {
        if (eat("^")) negative = !negative;
        const size_t end = text_.find('}', at_);
        if (end == std::string_view::npos) {
            fails("a property without '}'", begin);
            return {};
        }
        const std::string_view name = text_.substr(at_, end - at_);
        at_ = end + 1;
        std::optional<CodeSet> set = property_set(name);
        if (set && !in_brackets && set->bounds() == word_set().bounds()) set = outer_word_set();
        if (!set) unsupported("the property '" + printable_name(name, 60) + "'", begin);
        return !set ? CodeSet() : negative ? ~*set : *set;
    }

    // Parses escapes for classes, inside and outside of brackets; at_ is after the backslash.
    std::optional<CodeSet> class_escape(bool in_brackets, size_t begin) {
        const char c = peek();
        const CodeSet* set = nullptr;
        static const CodeSet kHex = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
        if ((c | 0x20) == 'w') set = in_brackets ? &word_set() : &outer_word_set();
        if ((c | 0x20) == 'd') set = &digit_set();
        if ((c | 0x20) == 's') set = &space_set();
        if ((c | 0x20) == 'h') set = &kHex;
        if (set) {
            ++at_;
            return c < 'a' ? ~*set : *set;
        }
        if ((c | 0x20) != 'p' || peek(1) != '{') return std::nullopt;
        at_ += 2;
        return property(c == 'P', in_brackets, begin);
    }

    // Parses escapes for one character, inside and outside of brackets; at_ is after the backslash.
    uint32_t character_escape(size_t begin) {
        auto code = std::optional<uint32_t>(0);
        constexpr std::pair<char, uint32_t> kControls[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'f', '\f'},
                                                           {'a', '\a'}, {'v', '\v'}, {'e', 0x1b}};
        for (const auto& [letter, control] : kControls)
            if (peek() == letter) {
                ++at_;
                return control;
            }
        bool byte = false;
        if (eat("x{") || eat("o{")) {
            code = digits(text_[at_ - 2] == 'x' ? 16 : 8, 11);
            if (!eat("}")) code.reset();
        } else if (eat("x")) {
            code = digits(16, 2);
            byte = true;
        } else if (eat("u")) {
            const size_t first = at_;
            code = digits(16, 4);
            if (at_ != first + 4) code.reset();
        } else if (peek() >= '0' && peek() <= '7') {
            code = digits(8, 3);
            byte = true;
        } else if (peek() == 'c' || (peek() == 'C' && peek(1) == '-') || (peek() == 'M' && peek(1) == '-')) {
            unsupported("a control character as \\c or \\M-", begin);
            return 0;
        } else {
            return next();
        }
        if (!code || *code >= CodeSet::kEnd || (*code >= 0xd800 && *code < 0xe000))
            fails("an escape without a character", begin);
        else if (byte && *code >= 0x80)
            unsupported("a byte above 0x7f", begin);
        return code.value_or(0);
    }

    Node escape(const Options& options) {
        const size_t begin = at_++;
        if (ends()) {
            fails("a backslash with nothing after it", begin);
            return {};
        }
        if (std::optional<CodeSet> set = class_escape(false, begin)) {
            before_.reset();
            return of_set(std::move(*set));
        }
        const char c = peek();
        constexpr std::pair<char, PatternPlace> kPlaces[] = {
            {'A', PatternPlace::text_begin},    {'z', PatternPlace::text_end},
            {'Z', PatternPlace::last_line_end}, {'G', PatternPlace::search_begin},
            {'b', PatternPlace::word_edge},     {'B', PatternPlace::no_word_edge}};
        for (const auto& [letter, place] : kPlaces)
            if (c == letter) {
                ++at_;
                return of_place(place);
            }
        if (c == 'N' || c == 'O') {
            ++at_, before_.reset();
            return of_set(c == 'O' ? ~CodeSet() : ~CodeSet::one('\n'));
        }
        if (c == 'R') {
            if (behind_ > 0) unsupported("\\R in a look-behind", begin);  // Oniguruma matches only "\r\n"
            ++at_, before_.reset();
            Node both, one;
            both.parts = {of_set(CodeSet::one('\r')), of_set(CodeSet::one('\n'))};
            one.kind = Node::Kind::choice;
            one.parts.push_back(std::move(both));
            one.parts.push_back(of_set(CodeSet{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}));
            return atomic(std::move(one));
        }
        if (c == 'K' || c == 'X' || c == 'y' || c == 'Y') unsupported(std::string("\\") + c, begin);
        // A number with fewer groups before it is octal from two digits on.
        const size_t digits_at = at_;
        const bool refers =
            c == 'k' || (c >= '1' && c <= '9' && digits(10, 9).value_or(0) <= std::max(9u, groups_));
        at_ = digits_at;
        if (refers) unsupported("a back reference", begin);
        if (c == 'g') unsupported("a subexpression call", begin);
        if (error_) return {};
        return literal(character_escape(begin), options);
    }

    // Parses [:alpha:] after its '['; returns nothing if it is something else.
    std::optional<CodeSet> posix() {
        size_t end = at_ + 1;
        const bool negative = peek(1) == '^';
        end += negative;
        const size_t begin = end;
        while (end < text_.size() && text_[end] >= 'a' && text_[end] <= 'z') ++end;
        if (peek() != ':' || end == begin || text_.substr(end, 2) != ":]") return std::nullopt;
        const std::string_view name = text_.substr(begin, end - begin);
        constexpr std::string_view kNames =
            " alnum alpha ascii blank cntrl digit graph lower print punct space upper xdigit word ";
        if (kNames.find(" " + std::string(name) + " ") == std::string_view::npos)
            unsupported("[:" + printable_name(name, 40) + ":]", at_);
        const std::optional<CodeSet> set = property_set(name == "punct" ? "posixpunct" : name);
        at_ = end + 2;
        return !set ? CodeSet() : negative ? ~*set : *set;
    }

    // Parses the text after '[' up to its ']'. Letters of both cases are added to the outermost brackets' set
    // before it is negated.
    CodeSet bracket(const Options& options, int depth, bool outermost) {
        const size_t begin = at_;
        if (depth > kDeepest) fails("brackets nested too deeply", at_);
        const bool negative = eat("^");
        CodeSet all = ~CodeSet(), some;  // the parts that && joins, and the current part
        // The letter that a range may begin with, and where brackets have had a class or a range before.
        std::optional<uint32_t> first;
        bool was_class = false, empty = true, joins = false;
        const auto put = [&] {
            if (first) some = some | CodeSet::one(*first);
            first.reset();
        };
        for (bool start = true;; start = false) {
            if (ends()) {
                fails("'[' without ']'", begin - 1);
                return {};
            }
            const size_t at = at_;
            if (peek() == ']' && !(start && closes_later())) {
                ++at_;
                break;
            }
            if (eat("&&")) {
                put();
                all = joins ? all & some : some;
                joins = true, was_class = false, some = {};
                continue;
            }
            empty = false;
            std::optional<CodeSet> set;
            uint32_t c = 0;
            if (eat("[")) {
                set = posix();
                if (!set) {
                    put();
                    some = some | bracket(options, depth + 1, false);
                    was_class = false;  // '-' after nested brackets is a literal
                    continue;
                }
            } else if (eat("\\")) {
                if (ends()) continue;
                set = class_escape(true, at);
                if (!set) c = peek() == 'b' ? (++at_, uint32_t{'\b'}) : character_escape(at);
            } else if (peek() == '-' && (first || was_class) && peek(1) != ']' &&
                       text_.substr(at_ + 1, 2) != "&&") {
                ++at_;
                if (was_class) {
                    fails("a range that begins with a class", at);
                    return {};
                }
                const uint32_t last = range_end(at);
                if (!error_ && last < *first) fails("a range that ends before it begins", at);
                if (!error_) some = some | CodeSet{{*first, last}};
                first.reset();
                continue;
            } else {
                c = next();
            }
            put();
            was_class = set.has_value();
            if (set)
                some = some | *set;
            else
                first = c;
        }
        put();
        if (joins) some = all & some;
        if (empty && !joins) fails("empty brackets", begin - 1);
        if (outermost && options.ignore_case) {
            // A negated set with all of them has all that equal each other, as U+00DF and U+1E9E.
            const CodeSet several = some & folds_to_several();
            if (!several.empty() && !(negative && several.bounds() == folds_to_several().bounds()))
                unsupported("(?i) with a letter that equals several", begin - 1);
            some = with_cases(some);
        }
        return negative ? ~some : some;
    }
    // A ']' that comes first is a letter where another follows.
    bool closes_later() const {
        for (size_t i = at_ + 1; i < text_.size(); ++i) {
            if (text_[i] == '\\')
                ++i;
            else if (text_[i] == ']')
                return true;
        }
        return false;
    }
    uint32_t range_end(size_t at) {
        if (ends()) return 0;
        if (!eat("\\")) {
            if (peek() == '[') unsupported("a range that ends with brackets", at);
            return next();
        }
        if (ends() || class_escape(true, at)) {
            fails("a range that ends with a class", at);
            return 0;
        }
        return peek() == 'b' ? (++at_, uint32_t{'\b'}) : character_escape(at);
    }

    std::string_view text_;
    size_t at_ = 0;
    uint32_t groups_ = 0;             // groups that have begun
    int behind_ = 0;                  // look-behinds that have begun
    std::optional<uint32_t> before_;  // the letter just read, where case does not matter
    std::optional<Error> error_;
};

}  // namespace

Result<PatternNode> read_pattern_tree(std::string_view pattern) { return PatternReader(pattern).read(); }

}  // namespace fovea

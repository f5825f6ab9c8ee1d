// Splits a template into text, tags and tokens.
#include <cctype>
#include <cstdlib>

#include "files/refusal.hpp"
#include "tokenizer/jinja_lexer.hpp"

#include <fovea/tokenizer/characters.hpp>

namespace fovea::jinja {
namespace {

using files::cat;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(source) {
        if (source_.ends_with('\n')) source_.remove_suffix(1);  // keep_trailing_newline is off
    }

    Result<std::vector<Piece>> pieces() {
        std::vector<Piece> out;
        while (at_ < source_.size()) {
            const size_t open = next_tag();
            const std::string_view kind = source_.substr(open, 2);
            const char mark = open + 2 < source_.size() ? source_[open + 2] : ' ';
            std::string_view before = source_.substr(at_, open - at_);
            if (strip_next_)
                while (!before.empty() && is_space(before.front())) before.remove_prefix(1);
            else if (newline_next_ && before.starts_with('\n'))
                before.remove_prefix(1);
            if (!kind.empty() && mark == '-')
                while (!before.empty() && is_space(before.back())) before.remove_suffix(1);
            else if (!kind.empty() && kind != "{{" && mark != '+')
                before = without_indent(before);
            if (!before.empty()) out.push_back({Piece::Kind::text, std::string(before), {}, line_});
            count_lines(open);
            strip_next_ = newline_next_ = false;
            at_ = open;
            if (kind.empty()) break;
            at_ += 2 + (mark == '-' || mark == '+');
            if (kind == "{#") {
                if (Result<void> r = skip_comment(); !r) return r.error();
                continue;
            }
            Piece piece{kind == "{{" ? Piece::Kind::output : Piece::Kind::statement, "", {}, line_};
            if (Result<void> r = tokens(kind == "{{" ? "}}" : "%}", piece.tokens); !r) return r.error();
            out.push_back(std::move(piece));
        }
        return out;
    }

  private:
    size_t next_tag() const {
        for (size_t at = source_.find('{', at_); at != source_.npos; at = source_.find('{', at + 1))
            if (at + 1 < source_.size() &&
                (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#'))
                return at;
        return source_.size();
    }
    // lstrip_blocks: blanks between the beginning of a line and a statement or comment.
    std::string_view without_indent(std::string_view text) const {
        size_t end = text.size();
        while (end > 0 && text[end - 1] != '\n' && is_space(text[end - 1])) --end;
        const size_t first = size_t(text.data() - source_.data());
        const bool begins_line = end > 0 ? text[end - 1] == '\n' : first == 0 || source_[first - 1] == '\n';
        return begins_line ? text.substr(0, end) : text;
    }
    void count_lines(size_t end) {
        for (size_t i = at_; i < end; ++i) line_ += source_[i] == '\n';
    }
    Result<void> skip_comment() {
        const size_t end = source_.find("#}", at_);
        if (end == source_.npos) return at_line(line_, "a comment has no end #}");
        strip_next_ = end > at_ && source_[end - 1] == '-';
        newline_next_ = !(end > at_ && source_[end - 1] == '+');
        count_lines(end);
        at_ = end + 2;
        return {};
    }
    // The tokens up to `end`, which may have a mark before it.
    Result<void> tokens(std::string_view end, std::vector<Token>& out) {
        int depth = 0;
        while (true) {
            while (at_ < source_.size() && is_space(source_[at_])) line_ += source_[at_++] == '\n';
            const std::string_view rest = source_.substr(at_);
            if (rest.empty()) return at_line(line_, cat("a tag has no end ", end));
            if (depth == 0 && (rest.starts_with(end) || rest.substr(1).starts_with(end))) {
                const bool marked = !rest.starts_with(end);
                if (!marked || rest[0] == '-' || rest[0] == '+') {
                    strip_next_ = marked && rest[0] == '-';
                    newline_next_ = !marked && end == "%}";
                    at_ += end.size() + marked;
                    out.push_back({Token::Kind::end, std::string(end), line_});
                    return {};
                }
            }
            Result<Token> token = next_token(rest);
            if (!token) return token.error();
            if (token->kind == Token::Kind::sign) {
                const char c = token->text[0];
                depth += c == '(' || c == '[' || c == '{';
                depth -= c == ')' || c == ']' || c == '}';
            }
            out.push_back(std::move(*token));
        }
    }
    Result<Token> next_token(std::string_view rest) {
        const char c = rest[0];
        if (c == '"' || c == '\'') return quoted(rest);
        size_t length = 0;
        if (std::isdigit(static_cast<unsigned char>(c))) {
            bool real = false;
            while (length < rest.size() && (std::isdigit(static_cast<unsigned char>(rest[length])) ||
                                            (rest[length] == '.' && !real && length + 1 < rest.size() &&
                                             std::isdigit(static_cast<unsigned char>(rest[length + 1])))))
                real = real || rest[length] == '.', ++length;
            if (length > 18) return at_line(line_, "a number has more than 18 digits");
            return take(real ? Token::Kind::real : Token::Kind::integer, rest.substr(0, length));
        }
        while (length < rest.size() && is_name(rest[length])) ++length;
        if (length) return take(Token::Kind::name, rest.substr(0, length));
        for (const std::string_view two : {"==", "!=", "<=", ">=", "//", "**"})
            if (rest.starts_with(two)) return take(Token::Kind::sign, two);
        if (std::string_view("+-*/%~<>=()[]{}.,:|").find(c) == std::string_view::npos)
            return at_line(line_, cat("'", printable_name(rest.substr(0, 1), 8), "' is not part of Jinja"));
        return take(Token::Kind::sign, rest.substr(0, 1));
    }
    Token take(Token::Kind kind, std::string_view text) {
        at_ += text.size();
        return {kind, std::string(text), line_};
    }
    Result<Token> quoted(std::string_view rest) {
        const size_t line = line_;
        std::string text;
        for (size_t i = 1; i < rest.size(); ++i) {
            const char c = rest[i];
            if (c == rest[0]) {
                at_ += i + 1;
                return Token{Token::Kind::text, std::move(text), line};
            }
            line_ += c == '\n';
            if (c != '\\' || i + 1 == rest.size()) {
                text += c;
                continue;
            }
            const char code = rest[++i];
            constexpr std::string_view kCodes = "ntr0\\'\"abfv", kMeant("\n\t\r\0\\'\"\a\b\f\v", 11);
            const size_t known = kCodes.find(code);
            if (code == '\n') {
                ++line_;
            } else if (known != kCodes.npos) {
                text += kMeant[known];
            } else if (code == 'x' || code == 'u' || code == 'U') {
                const size_t digits = code == 'x' ? 2 : code == 'u' ? 4 : 8;
                const std::string hex(rest.substr(i + 1, digits));
                if (hex.size() != digits || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos)
                    return at_line(line, cat("\\", code, " needs ", digits, " hexadecimal digits"));
                const auto character = uint32_t(std::strtoul(hex.c_str(), nullptr, 16));
                if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
                    return at_line(line, cat("\\", code, hex, " is not a character"));
                append_utf8(text, character);
                i += digits;
            } else {
                text += '\\', text += code;
            }
        }
        return at_line(line, "a text has no closing quote");
    }
    std::string_view source_;
    size_t at_ = 0, line_ = 1;
    bool strip_next_ = false, newline_next_ = false;
};

}  // namespace

Error at_line(size_t line, std::string text) { return failed(cat("line ", line, ": ", text)); }

Result<std::vector<Piece>> split(std::string_view source) { return Lexer(source).pieces(); }

}  // namespace fovea::jinja

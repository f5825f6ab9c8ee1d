#pragma once
// A template as text, tags and their tokens.
#include "tokenizer/jinja.hpp"

namespace fovea::jinja {

struct Token {
    enum class Kind : uint8_t { name, integer, real, text, sign, end };
    Kind kind = Kind::end;
    std::string text;
    size_t line = 0;
};

// A part of the source: text, {{ }} or {% %}.
struct Piece {
    enum class Kind : uint8_t { text, output, statement };
    Kind kind = Kind::text;
    std::string text;
    std::vector<Token> tokens;  // ends with Token::Kind::end
    size_t line = 0;
};

// Splits the source. Errors have the line.
Result<std::vector<Piece>> split(std::string_view source);
Error at_line(size_t line, std::string text);

}  // namespace fovea::jinja

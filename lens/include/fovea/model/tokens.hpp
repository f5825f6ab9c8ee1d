// From a text to tokens, the same in every program.
#pragma once

#include <fovea/model/session.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// One token and its place.
struct Token {
    std::string text;                  // as it is shown and hashed; valid UTF-8
    size_t first_byte = 0, bytes = 0;  // the bytes of the text that it was made from
    friend bool operator==(const Token&, const Token&) = default;
};

// Words: runs of letters, digits and marks, with ' and - inside; each punctuation mark and symbol by itself;
// an ideograph or kana by itself; an emoji with all that joins it (modifiers, joiners, flags of two letters)
// by itself; white space only separates. Characters: code points, spaces too. Bytes: ASCII as it is, others
// as "c3". In the latter two a space is an open box and a control character its two hexadecimal digits. Bytes
// that are not UTF-8 become U+FFFD, one for each.
std::vector<Token> split_text(std::string_view text, Tokenizer how);

// The result of session_tokens().
struct SessionTokens {
    std::vector<Token> tokens;       // in the order of the text
    std::vector<SessionNote> notes;  // the parts of the text that were left out, and why
};
// How many a level shows as whole matrices.
size_t most_tokens(int level);
// The tokens of a session's text: on a level that has a length repeated to it; at most `most`.
SessionTokens session_tokens(const Session& session, size_t most);
inline SessionTokens session_tokens(const Session& session) {
    return session_tokens(session, most_tokens(session.level));
}

}  // namespace fovea

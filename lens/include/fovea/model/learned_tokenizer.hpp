// A text as the tokens of a model that learned to read: byte pair encoding (Sennrich et al., 2016) over the
// code points of its training text, the most frequent words whole and the others in pieces. It needs no
// library of split patterns, so that the page runs it as the command line does.
//
// Nothing here throws; a tokenizer never changes, and all its functions are safe from any thread.
#pragma once

#include <fovea/fovea.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fovea {

// One token of a text and its place there, in bytes.
struct TextToken {
    uint32_t token = 0;
    size_t first_byte = 0, bytes = 0;
    friend bool operator==(const TextToken&, const TextToken&) = default;
};

// Splits texts into byte pairs that were learned from a text (Sennrich et al., 2016). Immutable: any number
// of threads may use one.
class LearnedTokenizer {
  public:
    // Every vocabulary begins with these tokens: the start of a sequence, and the replacement for code points
    // that the training text does not contain.
    static constexpr uint32_t kStart = 0, kUnknown = 1;

    // A text for each token: "<start>", "<unknown>", the code points, then what pairs of earlier tokens were
    // joined to, the most frequent pair first. A space is written as an open box and the end of a line as a
    // return arrow, so that no text holds either. Rejects a vocabulary that does not begin so, and empty or
    // duplicate texts.
    static Result<LearnedTokenizer> open(std::vector<std::string> vocabulary);

    // The text of each token, by its number.
    const std::vector<std::string>& vocabulary() const { return vocabulary_; }
    // Tokens in the order of the text, which they cover without gaps; kStart is not among them. Bytes that
    // are not UTF-8 are kUnknown, one for each.
    std::vector<TextToken> encode(std::string_view text) const;
    // Returns the text that encode() read. kUnknown becomes U+FFFD; kStart and invalid IDs become nothing.
    std::string decode(std::span<const uint32_t> tokens) const;
    // A token as a reader knows it: its text with spaces and line ends as such; "<start>" and "<unknown>" as
    // they are.
    std::string plain(uint32_t token) const;

  private:
    LearnedTokenizer() = default;
    std::vector<std::string> vocabulary_;
    std::unordered_map<std::string, uint32_t> numbers_;
};

// Splits a text into the pieces that no token crosses; encoding and learning a vocabulary share it. A piece
// is a run of letters, with apostrophes inside and the space before it; every other code point is a piece.
// Letters are those of ASCII and every code point above it.
struct TextPiece {
    size_t first_byte = 0;
    std::vector<std::string> symbols;  // code points as the vocabulary writes them
    std::vector<size_t> bytes;         // the bytes of each token in the text
};
std::vector<TextPiece> split_pieces(std::string_view text);

}  // namespace fovea

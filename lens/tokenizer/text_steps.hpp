// Rewrites and splits a text before its words become tokens: normalizers rewrite it, splitters cut it. Both
// are read from the parts `normalizer` and `pre_tokenizer` of tokenizer.json, and give the same results as
// the library `tokenizers`.
#pragma once

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>

#include <functional>
#include <string>
#include <vector>

#include "tokenizer/aligned_text.hpp"

namespace fovea {

using TextPieces = std::vector<AlignedText>;  // pieces of one text, in order; none is empty
// Changes the pieces in place. Rejects texts that this build cannot rewrite.
using TextStep = std::function<Result<void>(TextPieces&)>;

// Appends the steps of a normalizer or a pre_tokenizer, null's value for none. Errors name the step.
Result<void> read_normalizer(const JsonValue& json, std::vector<TextStep>& to);
Result<void> read_splitter(const JsonValue& json, std::vector<TextStep>& to);

// BERT's normalizer: control characters are removed, white space becomes spaces, ideographs are separated;
// marks and case are removed if asked for (Devlin et al., 2018).
struct BertNormalizer {
    bool clean = true, ideographs = true, strip_marks = true, lower = true;
    bool all_marks = false;  // marks of all kinds go (llama.cpp), not only those without a width
};
TextStep bert_normalizer(const BertNormalizer& options);
// Words at white space, punctuation marks by themselves.
TextStep bert_splitter();

// Words at the places where a pattern matches: each match and each stretch between two is a piece.
Result<TextStep> pattern_splitter(std::string_view pattern);
// Each byte becomes GPT-2's character for it.
TextStep byte_writer();
// Every `from` becomes `to`; `text` before the first piece.
TextStep replacer(std::string from, std::string to);
TextStep prepender(std::string text);
// The normalisation table that SentencePiece makes (a Darts double array and its texts). Rejects a table with
// references beyond its end. The library `tokenizers` looks up graphemes, then characters; llama.cpp
// (`longest`) the longest text at each place.
Result<TextStep> precompiled_normalizer(std::vector<uint8_t> table, bool longest = false);

// Spaces become `mark`; one is put before the first word, or at the end; with `merges` runs of them become
// one, and those around the text go.
struct UnigramSpaces {
    bool adds = true, at_end = false, merges = false;
    std::string_view mark;
};
TextStep unigram_spaces(const UnigramSpaces& options);

// GPT-2's character for a byte.
std::string_view byte_character(unsigned char byte);
// GPT-2's own split into words (Radford et al., 2019).
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// SentencePiece's mark for a space, U+2581.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

// ---- shared by the steps that rewrite texts and those that split them ----

inline Error unknown(std::string what) { return {FOVEA_UNSUPPORTED, "tokenizer", std::move(what)}; }
inline Error broken(std::string what) { return {FOVEA_INVALID_ARGUMENT, "tokenizer", std::move(what)}; }

inline Error too_costly() {
    return broken("the tokenizer's pattern needs too many steps for this text: over 2048 a byte");
}

// Returns the piece with `text` before it.
AlignedText with_before(const AlignedText& piece, std::string_view text);
// Runs steps in order, in builds that know the characters; others take ASCII.
TextStep in_order(std::vector<TextStep> steps, bool needs_tables);

}  // namespace fovea

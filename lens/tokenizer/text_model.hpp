// A published model together with how a text becomes its tokens: what programs that show models open.
#pragma once

#include "tokenizer/tokenizer.hpp"

#include <fovea/model/checkpoint_model.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

struct TextModel {
    CheckpointModel weights;
    std::optional<TextTokenizer> tokenizer;
    std::string why_no_text;  // where there is none: token numbers are typed
};

// A path as CheckpointModel::open() takes it, or files that a program holds. Refused besides: models that
// read pictures, and those that lack weights (a missing unembedding leaves what is to be seen of heads as it
// is). A tokenizer that cannot be read is no error.
Result<TextModel> open_text_model(const std::filesystem::path& path);
Result<TextModel> open_text_model(std::span<const NamedFile> files);

// By its tokenizer; without one, numbers with spaces or commas between: their places are those of the numbers
// in the text. Refused: a text without a token.
Result<std::vector<SplitToken>> split_text(const TextModel& model, std::string_view text);
Result<std::vector<uint32_t>> tokens_of(const TextModel& model, std::string_view text);
// What a token stands for within a text, in UTF-8: " cat" and not the letters that a vocabulary has for the
// space; bytes that are no whole character as "<0xC3>"; a special token's own text. It may hold control
// characters; empty beyond the vocabulary.
std::string token_text(const TextTokenizer& tokenizer, uint32_t id);
// The token as a person reads it; its number without a tokenizer.
std::string token_text(const TextModel& model, uint32_t id);
// What is shown of a model before the reader has typed anything.
std::string first_text(const TextModel& model);

}  // namespace fovea

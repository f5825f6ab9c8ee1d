// Text to token IDs and back, as a model's files say, and a published model that takes texts.
#pragma once

#include <fovea/files/checkpoint.hpp>
#include <fovea/model/checkpoint_model.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// One token and its bytes in the text: [begin, end). Tokens that the text does not hold (those that a model's
// inputs begin or end with, marks for a space before the text) have begin == end, the place where they stand.
// Where a tokenizer rewrites the text (lower case, composition), the bytes are those that the token was made
// from; two tokens of one rewritten character have the same bytes.
struct SplitToken {
    uint32_t id = 0;
    size_t begin = 0, end = 0;
    friend bool operator==(const SplitToken&, const SplitToken&) = default;
};

// Byte-pair encoding (Sennrich et al., 2016) over bytes (GPT-2, Llama 3, Qwen, NeoX) or over characters with
// bytes to fall back on (Llama 2, Mistral, Gemma), Unigram (Kudo, 2018: T5, XLM-R), WordPiece (Schuster and
// Nakajima, 2012: BERT) and whole words, with added and special tokens. Copies share the tables; safe from
// any thread.
class TextTokenizer {
  public:
    // True if this build has utf8proc, which knows the cases and compositions of characters. Without it texts
    // beyond ASCII are rejected where they would have to be rewritten.
    static bool available();
    // `folder` is a model's, or the path of a tokenizer.json; tokenizer_config.json beside it counts as in
    // transformers. Rejected with an error that names them: kinds of models, patterns and steps that are not
    // supported.
    static Result<TextTokenizer> open(const std::filesystem::path& folder);
    // The tokenizer of a checkpoint: tokenizer.json in its folder, or the tables inside its GGUF file.
    static Result<TextTokenizer> open(const Checkpoint& files);
    // The text of a tokenizer.json and, where it is not empty, of its tokenizer_config.json; the metadata of
    // a GGUF file.
    static Result<TextTokenizer> parse(std::string_view json, std::string_view config = {});
    static Result<TextTokenizer> parse(const GgufFile& file);

    // `text` must be UTF-8. With `special` the tokens that the model's inputs begin or end with are added.
    Result<std::vector<SplitToken>> tokens(std::string_view text, bool special = true) const;
    // Only their IDs.
    Result<std::vector<uint32_t>> encode(std::string_view text, bool special = true) const;
    // The bytes that the tokens stand for, as the tokenizer's decoder has them; special ones and IDs beyond
    // the table stand for nothing.
    std::string decode(std::span<const uint32_t> ids) const;
    // The token as its table has it, for people; empty beyond the table.
    std::string_view piece(uint32_t id) const;

    class Impl;  // in tokenizer_impl.hpp

  private:
    explicit TextTokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<const Impl> impl_;
};

// A published model and how a text becomes its tokens: what programs that show models open.
struct TextModel {
    CheckpointModel weights;
    std::optional<TextTokenizer> tokenizer;
    std::string why_no_text;  // where there is none: token IDs are typed
};

// A path as CheckpointModel::open() takes it, or files that a program holds. Also rejected: models that
// read pictures, and those that lack weights (a missing unembedding leaves what is to be seen of heads as it
// is). A tokenizer that cannot be read is no error.
Result<TextModel> open_text_model(const std::filesystem::path& path);
Result<TextModel> open_text_model(std::span<const NamedFile> files);

// Splits a text by the model's tokenizer; without one, token IDs with spaces or commas between: their places
// are those of the IDs in the text. Rejected: a text without a token.
Result<std::vector<SplitToken>> split_text(const TextModel& model, std::string_view text);
Result<std::vector<uint32_t>> tokens_of(const TextModel& model, std::string_view text);
// Returns the text of a token within a text, in UTF-8: " cat" and not the letters that a vocabulary has for
// the space; bytes that are no whole character as "<0xC3>"; a special token's own text. It may hold control
// characters; empty beyond the vocabulary.
std::string token_text(const TextTokenizer& tokenizer, uint32_t id);
// Returns the token as a person reads it; its ID without a tokenizer.
std::string token_text(const TextModel& model, uint32_t id);
// Returns the text that is shown of a model before the reader has typed anything.
std::string first_text(const TextModel& model);

}  // namespace fovea

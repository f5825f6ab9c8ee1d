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

// One token and its bytes in the text: [begin, end). Tokens that the text does not contain (start and end
// tokens of a model's input, marks for a space before the text) have begin == end at their place. If a
// tokenizer rewrites the text (lower case, composition), the bytes are those that the token was made from;
// two tokens of one rewritten character have the same bytes.
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
    // Opens a model's folder or the path of a tokenizer.json; tokenizer_config.json in the same folder
    // applies as in transformers. Unsupported models, patterns and steps are rejected with an error that
    // names them.
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
    // Returns the bytes of the tokens, as the tokenizer's decoder gives them. Special tokens and IDs beyond
    // the table give nothing.
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

// Opens a path that CheckpointModel::open() takes, or files in memory. Also rejects models that take images,
// and models without weights (a missing unembedding is fine: heads do not need it). A missing or unreadable
// tokenizer is not an error.
Result<TextModel> open_text_model(const std::filesystem::path& path);
Result<TextModel> open_text_model(std::span<const NamedFile> files);

// Splits a text by the model's tokenizer; without one, token IDs with spaces or commas between: their places
// are those of the IDs in the text. Rejected: a text without a token.
Result<std::vector<SplitToken>> split_text(const TextModel& model, std::string_view text);
Result<std::vector<uint32_t>> tokens_of(const TextModel& model, std::string_view text);
// Returns the text of a token in UTF-8: " cat", not the vocabulary's letters for the space; bytes of an
// incomplete character as "<0xC3>"; a special token's own text. It may contain control characters. It is
// empty beyond the vocabulary.
std::string token_text(const TextTokenizer& tokenizer, uint32_t id);
// Returns the token as a person reads it; its ID without a tokenizer.
std::string token_text(const TextModel& model, uint32_t id);
// Returns the text that is shown of a model before the reader has typed anything.
std::string first_text(const TextModel& model);

}  // namespace fovea

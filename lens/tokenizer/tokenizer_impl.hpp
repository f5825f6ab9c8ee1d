// The parts of a tokenizer; tokenizer_json.cpp and tokenizer_gguf.cpp fill them in.
#pragma once

#include "tokenizer/text_decoders.hpp"
#include "tokenizer/text_steps.hpp"
#include "tokenizer/token_models.hpp"

#include <fovea/tokenizer.hpp>

namespace fovea {

// A text that is always a single token.
struct AddedToken {
    std::string text;
    uint32_t id = 0;
    bool special = false;     // decodes to nothing
    bool normalized = false;  // looked for in the normalised text, not in the text as it was given
    bool strips_left = false, strips_right = false;  // white space next to it belongs to it
    bool single_word = false;                        // no letter or digit may be next to it
};

class TextTokenizer::Impl {
  public:
    Result<std::vector<SplitToken>> tokens(std::string_view text, bool special) const;
    std::string decode(std::span<const uint32_t> ids) const;
    std::string_view piece(uint32_t id) const;

    // IDs from 0 to 268,435,455.
    static constexpr uint32_t kMaxIds = 1u << 28;

    std::shared_ptr<TokenTable> table = std::make_shared<TokenTable>();
    std::unique_ptr<TokenModel> model;
    std::vector<TextStep> normalizers, splitters;
    std::vector<DecodeStep> decoders;
    // The frame of a model's inputs: special tokens, and kNoToken for each occurrence of the text.
    std::vector<uint32_t> frame = {kNoToken};
    // If added tokens overlap, the longest applies (llama.cpp), not the one that begins first.
    bool longest_first = false;

    void reserve_added(size_t tokens);
    // Must come after the normalisers are there. A token with the same ID is replaced.
    Result<void> add(const AddedToken& token);
    // Must come after all tokens are added. Rejects two tokens with the same normalized text, of which the
    // library takes either at random.
    Result<void> finish_added();
    // An added token's ID, or that of a text of the vocabulary.
    uint32_t id_of(std::string_view text) const;

  private:
    // An added token; texts are rows of added_texts_.
    struct Added {
        uint32_t id = 0, text = 0;
        uint32_t shown = 0;  // text for decoding, normalized if it was searched in normalized text
        bool special = false, normalized = false, strips_left = false, strips_right = false,
             single_word = false;
    };
    // A piece that is a token already, or one that is not.
    struct Segment {
        const Added* token = nullptr;
        AlignedText piece;
        ByteRange place;
    };
    struct Found {
        const Added* token;
        size_t begin, end;
    };
    std::vector<Found> find_added(const PrefixOrder& set, std::string_view text) const;
    std::vector<Found> find_longest(const PrefixOrder& set, std::string_view text) const;
    void split_added(const PrefixOrder& set, const AlignedText& piece, std::vector<Segment>& out) const;
    Result<void> words(AlignedText piece, std::vector<SplitToken>& out) const;

    const Added* added_by_id(uint32_t id) const;
    const Added* added_by_text(std::string_view text) const;
    uint32_t add_text(std::string_view text, uint32_t of);

    TextList added_texts_;
    std::vector<uint32_t> added_of_;  // the added token of each text
    std::vector<Added> added_;
    RowIndex added_by_id_, added_by_text_;
    PrefixOrder raw_, normalized_;  // texts of added tokens, the longest at a place counts
};

// tokenizer.json as a tree, and tokenizer_config.json, or null's value.
Result<void> read_tokenizer(const JsonValue& json, const JsonValue& config, TextTokenizer::Impl& out);

inline Error unknown_tokenizer(std::string what) { return {FOVEA_UNSUPPORTED, "tokenizer", std::move(what)}; }
inline Error broken_tokenizer(std::string what) {
    return {FOVEA_INVALID_ARGUMENT, "tokenizer", std::move(what)};
}

}  // namespace fovea

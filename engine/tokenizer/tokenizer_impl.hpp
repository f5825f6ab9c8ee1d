// What a tokenizer is made of; tokenizer_json.cpp and tokenizer_gguf.cpp fill it in.
#pragma once

#include <unordered_set>

#include "tokenizer/text_steps.hpp"
#include "tokenizer/token_models.hpp"
#include "tokenizer/tokenizer.hpp"

namespace fovea {

// A text that is one token wherever it stands.
struct AddedToken {
    std::string text;
    uint32_t id = 0;
    bool special = false;     // decodes to nothing
    bool normalized = false;  // looked for in the normalised text, not in the text as it was given
    bool strips_left = false, strips_right = false;  // white space beside it is part of it
    bool single_word = false;                        // no letter or digit may stand beside it
};

// How tokens become bytes again.
enum class TokenText {
    plain,       // as they are, spaces for SentencePiece's marks, "<0x0A>" for bytes
    bytes,       // GPT-2's characters for bytes
    word_pieces  // words with spaces between, pieces with the prefix joined to the one before
};

class TextTokenizer::Impl {
  public:
    Result<std::vector<SplitToken>> tokens(std::string_view text, bool special) const;
    std::string decode(std::span<const uint32_t> ids) const;
    std::string_view piece(uint32_t id) const { return table->piece(id); }

    // Numbers from 0 to 268,435,455.
    static constexpr uint32_t kMostIds = 1u << 28;

    std::shared_ptr<TokenTable> table = std::make_shared<TokenTable>();
    std::unique_ptr<TokenModel> model;
    std::vector<TextStep> normalizers, splitters;
    std::vector<uint32_t> begin, end;
    TokenText written = TokenText::plain;
    bool byte_fallback = false, space_before = false, cleans_up = false;
    std::string piece_prefix = "##";

    // Must come after the normalisers are there.
    Result<void> add(AddedToken token);

  private:
    // Texts of added tokens, the longest at a place first.
    struct AddedSet {
        PrefixTree tree;
        bool any = false;
    };
    // A piece that is a token already, or one that is not.
    struct Segment {
        const AddedToken* token = nullptr;
        AlignedText piece;
        ByteRange place;
    };
    void split_added(const AddedSet& set, const AlignedText& piece, std::vector<Segment>& out) const;
    Result<void> words(AlignedText piece, std::vector<SplitToken>& out) const;

    std::vector<AddedToken> added_;
    AddedSet raw_, normalized_;
    std::unordered_set<uint32_t> special_;
};

// tokenizer.json as a tree.
Result<void> read_tokenizer(const JsonValue& json, TextTokenizer::Impl& out);

inline Error unknown_tokenizer(std::string what) { return {FOVEA_UNSUPPORTED, "tokenizer", std::move(what)}; }
inline Error broken_tokenizer(std::string what) {
    return {FOVEA_INVALID_ARGUMENT, "tokenizer", std::move(what)};
}

}  // namespace fovea

// What a tokenizer is made of; tokenizer_json.cpp and tokenizer_gguf.cpp fill it in.
#pragma once

#include <map>
#include <unordered_set>

#include "tokenizer/text_decoders.hpp"
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

class TextTokenizer::Impl {
  public:
    Result<std::vector<SplitToken>> tokens(std::string_view text, bool special) const;
    std::string decode(std::span<const uint32_t> ids) const;
    std::string_view piece(uint32_t id) const { return table->piece(id); }

    // IDs from 0 to 268,435,455.
    static constexpr uint32_t kMostIds = 1u << 28;

    std::shared_ptr<TokenTable> table = std::make_shared<TokenTable>();
    std::unique_ptr<TokenModel> model;
    std::vector<TextStep> normalizers, splitters;
    std::vector<DecodeStep> decoders;
    // What a model's inputs are made of: special tokens, and kNoToken for the text, as often as it is there.
    std::vector<uint32_t> frame = {kNoToken};
    // Of added tokens that overlap the longest counts (llama.cpp), not the one that begins first.
    bool longest_first = false;

    // Must come after the normalisers are there. A token with the same ID, or the same text, is replaced.
    Result<void> add(AddedToken token);
    // Must come after all tokens are added.
    void finish_added();
    // An added token's ID, or that of a text of the vocabulary.
    uint32_t id_of(std::string_view text) const;

  private:
    // Texts of added tokens, the longest at a place first.
    struct AddedSet {
        PrefixTree tree;
        bool any = false;
    };
    struct NamedToken {
        AddedToken token;
        std::string found_as;  // its text, normalised where it is looked for in normalised text
    };
    // A piece that is a token already, or one that is not.
    struct Segment {
        const AddedToken* token = nullptr;
        AlignedText piece;
        ByteRange place;
    };
    struct Found {
        const AddedToken* token;
        size_t begin, end;
    };
    std::vector<Found> find_added(const AddedSet& set, std::string_view text) const;
    std::vector<Found> find_longest(const AddedSet& set, std::string_view text) const;
    void split_added(const AddedSet& set, const AlignedText& piece, std::vector<Segment>& out) const;
    Result<void> words(AlignedText piece, std::vector<SplitToken>& out) const;

    std::map<uint32_t, NamedToken> added_;
    AddedSet raw_, normalized_;
    std::unordered_set<std::string> special_;
};

// tokenizer.json as a tree, and tokenizer_config.json, or null's value.
Result<void> read_tokenizer(const JsonValue& json, const JsonValue& config, TextTokenizer::Impl& out);

inline Error unknown_tokenizer(std::string what) { return {FOVEA_UNSUPPORTED, "tokenizer", std::move(what)}; }
inline Error broken_tokenizer(std::string what) {
    return {FOVEA_INVALID_ARGUMENT, "tokenizer", std::move(what)};
}

}  // namespace fovea

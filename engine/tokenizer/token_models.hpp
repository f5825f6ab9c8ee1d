// How a word becomes tokens: the last step of a tokenizer, behind normalisation and the split into words.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fovea {

inline constexpr uint32_t kNoToken = UINT32_MAX;

// A hash that a file cannot be made to flood: it differs from run to run.
struct SeededHash {
    using is_transparent = void;
    size_t operator()(uint64_t number) const;
    size_t operator()(std::string_view text) const;
};

// Texts and their IDs. IDs may have gaps: nothing is allocated for them.
class TokenTable {
  public:
    // False where the text has another number already.
    bool put(std::string text, uint32_t id) {
        pieces_.insert_or_assign(id, text);
        const auto [at, fresh] = ids_.emplace(std::move(text), id);
        return fresh || at->second == id;
    }
    // The ID of a text that is there is changed.
    void put_last(std::string text, uint32_t id) {
        pieces_.insert_or_assign(id, text);
        ids_.insert_or_assign(std::move(text), id);
    }
    // An ID's text for decoding alone: id_of() does not find it.
    void name(std::string text, uint32_t id) { pieces_.insert_or_assign(id, std::move(text)); }
    uint32_t id_of(std::string_view text) const {
        const auto found = ids_.find(text);
        return found == ids_.end() ? kNoToken : found->second;
    }
    std::string_view piece(uint32_t id) const {
        const auto found = pieces_.find(id);
        return found == pieces_.end() ? std::string_view() : std::string_view(found->second);
    }
    size_t size() const { return ids_.size(); }
    // "<0x0A>"; kNoToken where the table lacks it.
    uint32_t id_of_byte(unsigned char byte) const;

    template <class Visit>  // visit(text, id), in any order
    void each(Visit visit) const {
        for (const auto& [text, id] : ids_) visit(std::string_view(text), id);
    }

  private:
    std::unordered_map<std::string, uint32_t, SeededHash, std::equal_to<>> ids_;
    std::unordered_map<uint32_t, std::string, SeededHash> pieces_;
};

// A tree of texts by their bytes, for all that begin at one place.
class PrefixTree {
  public:
    void put(std::string_view text, uint32_t value);
    // Calls visit(bytes, value) for each text of the tree that `text` begins with, shorter ones first. Texts
    // are those behind what leads to `from`.
    template <class Visit>
    void each_prefix(std::string_view text, Visit visit, uint64_t from = 0) const {
        uint64_t node = from;
        for (size_t i = 0; i < text.size() && node != kNowhere; ++i) {
            node = next(node, text[i]);
            if (const auto value = values_.find(node); value != values_.end()) visit(i + 1, value->second);
        }
    }
    // Where `text` leads to.
    uint64_t node_of(std::string_view text) const {
        uint64_t node = 0;
        for (const char c : text) node = node == kNowhere ? node : next(node, c);
        return node;
    }

  private:
    static constexpr uint64_t kNowhere = UINT64_MAX;
    uint64_t next(uint64_t node, char c) const {
        const auto found = edges_.find(node << 8 | static_cast<unsigned char>(c));
        return found == edges_.end() ? kNowhere : found->second;
    }
    std::unordered_map<uint64_t, uint64_t> edges_;
    std::unordered_map<uint64_t, uint32_t> values_;
};

// A token of a word and its bytes there.
struct WordToken {
    uint32_t id = 0;
    size_t begin = 0, end = 0;
};

class TokenModel {
  public:
    virtual ~TokenModel() = default;
    // Appends the tokens of `word`, which is not empty. False if it has something that the table lacks, and
    // no token says so.
    virtual bool split(std::string_view word, std::vector<WordToken>& out) const = 0;
};

// What models do with what the table lacks.
struct UnknownRule {
    uint32_t id = kNoToken;
    bool vanishes = true;        // without an ID; else the word is rejected
    bool fuse = false;           // neighbours become one
    bool byte_fallback = false;  // its bytes' own tokens, where the table has all of them
};

// Pairs by the order in which they are merged (Sennrich et al., 2016).
struct PairMerge {
    uint32_t rank, id;
};
using PairMerges = std::unordered_map<uint64_t, PairMerge, SeededHash>;  // by first << 32 | second
// What the first characters of a word are made of: `prefix` before all but the first, `suffix` behind the
// last.
struct PairAffixes {
    std::string prefix, suffix;
};
std::unique_ptr<TokenModel> make_pair_model(std::shared_ptr<const TokenTable> table, PairMerges merges,
                                            const UnknownRule& unknown, bool whole_words,
                                            PairAffixes affixes = {});

// Pairs by the score of what they become, as SentencePiece and llama.cpp merge. Scores are by ID.
std::unique_ptr<TokenModel> make_score_model(std::shared_ptr<const TokenTable> table,
                                             std::vector<float> scores, const UnknownRule& unknown);

// The split whose scores have the largest sum (Kudo, 2018); a character that no text covers has 10 less than
// `least`. Rows are (ID, score): of two with one text the last counts.
struct UnigramRows {
    std::vector<std::pair<uint32_t, double>> rows;
    double least = 0;
    bool looks_again = true;  // neighbours that are unknown may be a text of the table together
};
std::unique_ptr<TokenModel> make_unigram_model(std::shared_ptr<const TokenTable> table,
                                               const UnigramRows& rows, const UnknownRule& unknown);

// The longest text at each place, `prefix` before all but the first; a word that cannot be covered, or has
// more than `longest` characters, is unknown as a whole.
std::unique_ptr<TokenModel> make_word_piece_model(std::shared_ptr<const TokenTable> table,
                                                  const std::string& prefix, uint64_t longest,
                                                  uint32_t unknown);
// Only words of the table.
std::unique_ptr<TokenModel> make_word_model(std::shared_ptr<const TokenTable> table, uint32_t unknown);

}  // namespace fovea

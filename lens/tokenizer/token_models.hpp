// Turns words into tokens: the last step of a tokenizer, after normalization and splitting.
#pragma once

#include <fovea/fovea.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

inline constexpr uint32_t kNoToken = UINT32_MAX;

// A hash that a file cannot be made to flood: it differs from run to run.
struct SeededHash {
    size_t operator()(uint64_t number) const;
    size_t operator()(std::string_view text) const;
};

// Texts one after the other, 4 GiB in all: a row takes 4 bytes and the text's own.
class TextList {
  public:
    void reserve(size_t rows, size_t bytes) { ends_.reserve(rows), bytes_.reserve(bytes); }
    uint32_t add(std::string_view text) {
        bytes_ += text;
        ends_.push_back(uint32_t(bytes_.size()));
        return uint32_t(ends_.size() - 1);
    }
    std::string_view operator[](size_t row) const {
        const uint32_t begin = row == 0 ? 0 : ends_[row - 1];
        return {bytes_.data() + begin, ends_[row] - begin};
    }
    size_t size() const { return ends_.size(); }

  private:
    std::string bytes_;
    std::vector<uint32_t> ends_;
};

// Rows of a list by their hashes (open addressing): 4 bytes a slot, of which at most three quarters are
// taken.
class RowIndex {
  public:
    static constexpr uint32_t kNone = UINT32_MAX;

    void reserve(size_t rows) {
        if (count_ == 0) slots_.assign(std::bit_ceil(4 * rows / 3 + 8), kNone);
    }
    size_t size() const { return count_; }
    // The row with this hash for which is(row) is true, or kNone.
    template <class Is>
    uint32_t find(size_t hash, Is is) const {
        return slots_.empty() ? kNone : slots_[slot(hash, is)];
    }
    // Puts a row that is in its list in the place of the one for which is(row) is true, if there is one.
    template <class Is, class HashOf>
    void put(uint32_t row, Is is, HashOf hash_of) {
        if (4 * (count_ + 1) > 3 * slots_.size()) {
            std::vector<uint32_t> old(std::max<size_t>(8, 2 * slots_.size()), kNone);
            std::swap(old, slots_);
            for (const uint32_t one : old)
                if (one != kNone) slots_[slot(hash_of(one), [](uint32_t) { return false; })] = one;
        }
        uint32_t& at = slots_[slot(hash_of(row), is)];
        count_ += at == kNone;
        at = row;
    }

  private:
    template <class Is>
    size_t slot(size_t hash, Is is) const {
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash & mask;; at = (at + 1) & mask)
            if (slots_[at] == kNone || is(slots_[at])) return at;
    }
    std::vector<uint32_t> slots_;
    size_t count_ = 0;
};

// Texts and their IDs. IDs may have gaps: nothing is allocated for them.
class TokenTable {
  public:
    void reserve(size_t tokens, size_t bytes) {
        texts_.reserve(tokens, bytes), ids_.reserve(tokens);
        by_text_.reserve(tokens), by_id_.reserve(tokens);
    }
    // False where the text has another ID already, which stays the one that id_of() finds.
    bool put(std::string_view text, uint32_t id);
    // The ID of a text that is there is changed.
    void put_last(std::string_view text, uint32_t id);
    uint32_t id_of(std::string_view text) const {
        const uint32_t row = row_of(text);
        return row == RowIndex::kNone ? kNoToken : ids_[row];
    }
    std::string_view piece(uint32_t id) const;
    size_t size() const { return by_text_.size(); }
    // "<0x0A>"; kNoToken where the table lacks it.
    uint32_t id_of_byte(unsigned char byte) const;

    // Rows are tokens in the order of their calls; those that id_of() finds.
    std::vector<uint32_t> rows() const;
    const TextList& texts() const { return texts_; }
    uint32_t id_at(uint32_t row) const { return ids_[row]; }

  private:
    uint32_t row_of(std::string_view text) const;
    void index_text(uint32_t row);
    void index_id(uint32_t row);

    TextList texts_;
    std::vector<uint32_t> ids_;
    RowIndex by_text_, by_id_;
};

// Texts of a list in the order of their bytes, for all that begin at one place.
class PrefixOrder {
  public:
    PrefixOrder() = default;
    // `texts` must outlive the result. Empty texts are left out; of equal ones the last row counts.
    PrefixOrder(const TextList& texts, std::vector<uint32_t> rows);

    bool empty() const { return rows_.empty(); }
    const std::vector<uint32_t>& rows() const { return rows_; }
    // The rows whose texts begin with the same `depth` bytes.
    struct Range {
        size_t first = 0, end = 0, depth = 0;
    };
    Range all() const { return {0, rows_.size(), 0}; }
    // Returns the texts that continue with the byte `next`.
    Range narrowed(const Range& range, char next) const;
    Range of(std::string_view prefix) const;
    // Calls visit(bytes, row) for each text that `text` begins with, shorter ones first. Texts are those
    // after what is common to all of `from`.
    template <class Visit>
    void each_prefix(std::string_view text, Visit visit, Range from) const {
        for (size_t i = 0; i < text.size() && from.first < from.end; ++i) {
            from = narrowed(from, text[i]);
            if (from.first < from.end && (*texts_)[rows_[from.first]].size() == from.depth)
                visit(i + 1, rows_[from.first]);
        }
    }
    template <class Visit>
    void each_prefix(std::string_view text, Visit visit) const {
        each_prefix(text, visit, all());
    }

  private:
    const TextList* texts_ = nullptr;
    std::vector<uint32_t> rows_;
    std::array<uint32_t, 257> firsts_{};  // where texts begin that begin with a byte
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

// How models handle text that is not in the table.
struct UnknownRule {
    uint32_t id = kNoToken;
    bool vanishes = true;        // without an ID; else the word is rejected
    bool fuse = false;           // neighbours become one
    bool byte_fallback = false;  // use the tokens of its bytes if the table has all of them
};

// Pairs by the order in which they are merged (Sennrich et al., 2016).
class PairMerges {
  public:
    void reserve(size_t count) { all_.reserve(count), index_.reserve(count); }
    // Ranks are 0, 1, ... in the order of the calls. If a pair is added twice, the last one applies, or the
    // first.
    void put(uint32_t first, uint32_t second, uint32_t id, bool last_counts);
    // False where the pair is not merged.
    bool find(uint32_t first, uint32_t second, uint32_t& rank, uint32_t& id) const;

  private:
    struct Merge {
        uint32_t first, second, id;
    };
    uint32_t row_of(uint32_t first, uint32_t second) const;
    std::vector<Merge> all_;
    RowIndex index_;
};
// Affixes for the first characters of a word: `prefix` before all except the first, `suffix` after the last.
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
// `least`.
struct UnigramRows {
    std::vector<double> scores;  // by ID; NaN for tokens that no text has
    double least = 0;
    bool looks_again = true;  // neighbours that are unknown may be a text of the table together
};
std::unique_ptr<TokenModel> make_unigram_model(std::shared_ptr<const TokenTable> table, UnigramRows rows,
                                               const UnknownRule& unknown);

// The longest text at each place, `prefix` before all but the first; a word that cannot be covered, or has
// more than `longest` characters, is unknown as a whole.
std::unique_ptr<TokenModel> make_word_piece_model(std::shared_ptr<const TokenTable> table,
                                                  const std::string& prefix, uint64_t longest,
                                                  uint32_t unknown);
// Only words of the table.
std::unique_ptr<TokenModel> make_word_model(std::shared_ptr<const TokenTable> table, uint32_t unknown);

}  // namespace fovea

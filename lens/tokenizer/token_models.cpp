#include "tokenizer/token_models.hpp"

#include <fovea/tokenizer/characters.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <queue>
#include <random>

namespace fovea {
namespace {

uint64_t mixed(uint64_t value) {
    static const uint64_t seed = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
    value += seed;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

}  // namespace

size_t SeededHash::operator()(uint64_t number) const { return size_t(mixed(number)); }

size_t SeededHash::operator()(std::string_view text) const {
    uint64_t hash = mixed(text.size());
    for (size_t at = 0; at < text.size(); at += 8) {
        uint64_t word = 0;
        std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
        hash = mixed(hash ^ word);
    }
    return size_t(hash);
}

uint32_t TokenTable::row_of(std::string_view text) const {
    return by_text_.find(SeededHash()(text), [&](uint32_t row) { return texts_[row] == text; });
}

void TokenTable::index_text(uint32_t row) {
    by_text_.put(
        row, [&](uint32_t other) { return texts_[other] == texts_[row]; },
        [&](uint32_t one) { return SeededHash()(texts_[one]); });
}

void TokenTable::index_id(uint32_t row) {
    by_id_.put(
        row, [&](uint32_t other) { return ids_[other] == ids_[row]; },
        [&](uint32_t one) { return SeededHash()(uint64_t{ids_[one]}); });
}

bool TokenTable::put(std::string_view text, uint32_t id) {
    const uint32_t known = row_of(text);
    if (known != RowIndex::kNone && ids_[known] == id) {
        index_id(known);
        return true;
    }
    const uint32_t row = texts_.add(text);
    ids_.push_back(id);
    index_id(row);
    if (known == RowIndex::kNone) index_text(row);
    return known == RowIndex::kNone;
}

void TokenTable::put_last(std::string_view text, uint32_t id) {
    const uint32_t row = texts_.add(text);
    ids_.push_back(id);
    index_id(row);
    index_text(row);
}

std::string_view TokenTable::piece(uint32_t id) const {
    const uint32_t row =
        by_id_.find(SeededHash()(uint64_t{id}), [&](uint32_t one) { return ids_[one] == id; });
    return row == RowIndex::kNone ? std::string_view() : texts_[row];
}

std::vector<uint32_t> TokenTable::rows() const {
    std::vector<uint32_t> found;
    found.reserve(by_text_.size());
    for (uint32_t row = 0; row < ids_.size(); ++row)
        if (row_of(texts_[row]) == row) found.push_back(row);
    return found;
}

uint32_t TokenTable::id_of_byte(unsigned char byte) const {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", unsigned(byte));
    return id_of(name);
}

PrefixOrder::PrefixOrder(const TextList& texts, std::vector<uint32_t> rows)
    : texts_(&texts), rows_(std::move(rows)) {
    std::erase_if(rows_, [&](uint32_t row) { return texts[row].empty(); });
    std::sort(rows_.begin(), rows_.end(), [&](uint32_t a, uint32_t b) {
        const int order = texts[a].compare(texts[b]);
        return order != 0 ? order < 0 : a > b;
    });
    for (const uint32_t row : rows_) ++firsts_[size_t{static_cast<unsigned char>(texts[row][0])} + 1];
    for (size_t c = 0; c < 256; ++c) firsts_[c + 1] += firsts_[c];
}

PrefixOrder::Range PrefixOrder::narrowed(const Range& range, char next) const {
    const int byte = static_cast<unsigned char>(next);
    if (range.depth == 0) return {firsts_[size_t(byte)], firsts_[size_t(byte) + 1], 1};
    // Texts that end here come first.
    const auto byte_of = [&](uint32_t row) {
        const std::string_view text = (*texts_)[row];
        return range.depth < text.size() ? int{static_cast<unsigned char>(text[range.depth])} : -1;
    };
    const auto from = rows_.begin() + ptrdiff_t(range.first), to = rows_.begin() + ptrdiff_t(range.end);
    const auto first = std::partition_point(from, to, [&](uint32_t row) { return byte_of(row) < byte; });
    const auto end = std::partition_point(first, to, [&](uint32_t row) { return byte_of(row) == byte; });
    return {size_t(first - rows_.begin()), size_t(end - rows_.begin()), range.depth + 1};
}

PrefixOrder::Range PrefixOrder::of(std::string_view prefix) const {
    Range range = all();
    for (const char c : prefix) range = narrowed(range, c);
    return range;
}

uint32_t PairMerges::row_of(uint32_t first, uint32_t second) const {
    return index_.find(SeededHash()(uint64_t{first} << 32 | second),
                       [&](uint32_t row) { return all_[row].first == first && all_[row].second == second; });
}

void PairMerges::put(uint32_t first, uint32_t second, uint32_t id, bool last_counts) {
    const auto row = uint32_t(all_.size());
    all_.push_back({first, second, id});
    if (!last_counts && row_of(first, second) != RowIndex::kNone) return;
    index_.put(
        row, [&](uint32_t other) { return all_[other].first == first && all_[other].second == second; },
        [&](uint32_t one) { return SeededHash()(uint64_t{all_[one].first} << 32 | all_[one].second); });
}

bool PairMerges::find(uint32_t first, uint32_t second, uint32_t& rank, uint32_t& id) const {
    rank = row_of(first, second);
    if (rank == RowIndex::kNone) return false;
    id = all_[rank].id;
    return true;
}

namespace {

// Appends the tokens of a text's bytes; false where the table lacks one.
bool append_bytes(const TokenTable& table, std::string_view text, size_t begin, std::vector<WordToken>& out) {
    const size_t before = out.size();
    for (size_t i = 0; i < text.size(); ++i) {
        const uint32_t id = table.id_of_byte(static_cast<unsigned char>(text[i]));
        if (id == kNoToken) {
            out.resize(before);
            return false;
        }
        out.push_back({id, begin + i, begin + i + 1});
    }
    return true;
}

// Appends the tokens for [begin, end) of a word that is not in the table.
bool append_unknown(const TokenTable& table, const UnknownRule& rule, std::string_view word, size_t begin,
                    size_t end, std::vector<WordToken>& out) {
    if (rule.byte_fallback && append_bytes(table, word.substr(begin, end - begin), begin, out)) return true;
    if (rule.id == kNoToken) return rule.vanishes;
    if (rule.fuse && !out.empty() && out.back().id == rule.id && out.back().end == begin)
        out.back().end = end;
    else
        out.push_back({rule.id, begin, end});
    return true;
}

// Symbols of a word, merged pair by pair: always the best pair, the leftmost of equals. A heap keeps long
// words affordable.
template <class Rank>  // smaller is better
class PairMerger {
  public:
    struct Symbol {
        uint32_t id;
        size_t begin, end;
        int32_t before, after;
    };

    void add(uint32_t id, size_t begin, size_t end) {
        const auto at = int32_t(symbols_.size());
        if (at > 0) symbols_.back().after = at;
        symbols_.push_back({id, begin, end, at - 1, -1});
    }
    // `rank_of(left, right, rank, id)` says whether two neighbours can be merged, how well, and to what.
    template <class RankOf>
    void merge(RankOf rank_of) {
        std::priority_queue<Candidate> heap;
        const auto look = [&](int32_t at) {
            if (at < 0 || symbols_[size_t(at)].after < 0) return;
            const Symbol &left = symbols_[size_t(at)], &right = symbols_[size_t(left.after)];
            Candidate c{Rank{}, at, left.end, right.end, 0};
            if (rank_of(left, right, c.rank, c.made)) heap.push(c);
        };
        for (size_t i = 0; i < symbols_.size(); ++i) look(int32_t(i));
        while (!heap.empty()) {
            const Candidate top = heap.top();
            heap.pop();
            Symbol& left = symbols_[size_t(top.at)];
            if (left.end != top.left_end || left.begin == left.end || left.after < 0 ||
                symbols_[size_t(left.after)].end != top.right_end)
                continue;
            Symbol& right = symbols_[size_t(left.after)];
            left.id = top.made;
            left.end = right.end;
            left.after = right.after;
            right.begin = right.end;  // gone
            if (left.after >= 0) symbols_[size_t(left.after)].before = top.at;
            look(left.before);
            look(top.at);
        }
    }
    template <class Visit>
    void each(Visit visit) const {
        for (int32_t at = symbols_.empty() ? -1 : 0; at >= 0; at = symbols_[size_t(at)].after)
            visit(symbols_[size_t(at)]);
    }

  private:
    struct Candidate {
        Rank rank;
        int32_t at;
        size_t left_end, right_end;
        uint32_t made;
        bool operator<(const Candidate& other) const {
            return rank != other.rank ? rank > other.rank : at > other.at;
        }
    };
    std::vector<Symbol> symbols_;
};

class PairModel final : public TokenModel {
  public:
    PairModel(std::shared_ptr<const TokenTable> table, PairMerges merges, const UnknownRule& unknown,
              bool whole_words, PairAffixes affixes)
        : table_(std::move(table)),
          merges_(std::move(merges)),
          unknown_(unknown),
          affixes_(std::move(affixes)),
          whole_(whole_words) {}

    bool split(std::string_view word, std::vector<WordToken>& out) const override {
        if (whole_)
            if (const uint32_t id = table_->id_of(word); id != kNoToken) {
                out.push_back({id, 0, word.size()});
                return true;
            }
        PairMerger<uint32_t> merger;
        std::vector<WordToken> unknown, bytes;
        std::string with_affixes;
        for (size_t at = 0; at < word.size();) {
            const size_t end = at + character_at(word, at).bytes;
            std::string_view text = word.substr(at, end - at);
            if (!affixes_.prefix.empty() || !affixes_.suffix.empty()) {
                with_affixes = at == 0 ? "" : affixes_.prefix;
                with_affixes += text;
                if (end == word.size()) with_affixes += affixes_.suffix;
                text = with_affixes;
            }
            if (const uint32_t id = table_->id_of(text); id != kNoToken) {
                for (const WordToken& t : std::exchange(unknown, {})) merger.add(t.id, t.begin, t.end);
                merger.add(id, at, end);
            } else if (bytes.clear(); unknown_.byte_fallback && append_bytes(*table_, text, at, bytes)) {
                // As in the library: earlier unknown text is added after these bytes.
                for (const WordToken& t : bytes) merger.add(t.id, t.begin, t.end);
            } else if (unknown_.id == kNoToken) {
                if (!unknown_.vanishes) return false;
            } else if (unknown_.fuse && !unknown.empty()) {
                unknown.back().end = end;
            } else {
                for (const WordToken& t : std::exchange(unknown, {})) merger.add(t.id, t.begin, t.end);
                unknown.push_back({unknown_.id, at, end});
            }
            at = end;
        }
        for (const WordToken& t : unknown) merger.add(t.id, t.begin, t.end);
        merger.merge([&](const auto& left, const auto& right, uint32_t& rank, uint32_t& id) {
            return merges_.find(left.id, right.id, rank, id);
        });
        merger.each([&](const auto& s) { out.push_back({s.id, s.begin, s.end}); });
        return true;
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    PairMerges merges_;
    UnknownRule unknown_;
    PairAffixes affixes_;
    bool whole_;
};

class ScoreModel final : public TokenModel {
  public:
    ScoreModel(std::shared_ptr<const TokenTable> table, std::vector<float> scores, const UnknownRule& unknown)
        : table_(std::move(table)), scores_(std::move(scores)), unknown_(unknown) {}

    bool split(std::string_view word, std::vector<WordToken>& out) const override {
        PairMerger<float> merger;
        for (size_t at = 0; at < word.size();) {
            const size_t end = at + character_at(word, at).bytes;
            merger.add(table_->id_of(word.substr(at, end - at)), at, end);
            at = end;
        }
        merger.merge([&](const auto& left, const auto& right, float& rank, uint32_t& id) {
            id = table_->id_of(word.substr(left.begin, right.end - left.begin));
            if (id >= scores_.size()) return false;
            rank = -scores_[id];
            return true;
        });
        bool known = true;
        merger.each([&](const auto& s) {
            if (s.id != kNoToken)
                out.push_back({s.id, s.begin, s.end});
            else
                known = append_unknown(*table_, unknown_, word, s.begin, s.end, out) && known;
        });
        return known;
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    std::vector<float> scores_;
    UnknownRule unknown_;
};

class UnigramModel final : public TokenModel {
  public:
    UnigramModel(std::shared_ptr<const TokenTable> table, UnigramRows rows, const UnknownRule& unknown)
        : table_(std::move(table)),
          scores_(std::move(rows.scores)),
          unknown_(unknown),
          unknown_score_(rows.least - 10.0),
          looks_again_(rows.looks_again) {
        std::vector<uint32_t> known = table_->rows();
        std::erase_if(known, [&](uint32_t row) { return std::isnan(scores_[table_->id_at(row)]); });
        texts_ = PrefixOrder(table_->texts(), std::move(known));
    }

    bool split(std::string_view word, std::vector<WordToken>& out) const override {
        struct Place {
            double score = 0;
            size_t from = 0;
            uint32_t id = kNoToken;
            bool reached = false;
        };
        std::vector<Place> places(word.size() + 1);
        const auto offer = [&](size_t from, size_t to, uint32_t id, double score) {
            Place& place = places[to];
            if (!place.reached || score > place.score) place = {score, from, id, true};
        };
        for (size_t at = 0; at < word.size();) {
            const size_t one = character_at(word, at).bytes;
            bool alone = false;  // a text of this character is there
            texts_.each_prefix(word.substr(at), [&](size_t bytes, uint32_t row) {
                const uint32_t id = table_->id_at(row);
                offer(at, at + bytes, id, places[at].score + scores_[id]);
                alone = alone || bytes == one;
            });
            // As in the library, even if bytes could represent it.
            if (!alone && unknown_.id == kNoToken &&
                (!places[at + one].reached || places[at].score + unknown_score_ > places[at + one].score))
                return false;
            if (!alone) offer(at, at + one, unknown_.id, places[at].score + unknown_score_);
            at += one;
        }
        std::vector<Place> path;  // from the end
        for (size_t end = word.size(); end > 0; end = places[end].from) path.push_back(places[end]);
        for (size_t i = path.size(); i-- > 0;) {
            const size_t begin = path[i].from;
            const uint32_t id = path[i].id;
            // Unknown text is joined with its unknown neighbors: together they become one token, or bytes.
            while (id == unknown_.id && i > 0 && path[i - 1].id == id) --i;
            const size_t end = i > 0 ? path[i - 1].from : word.size();
            uint32_t known = id == unknown_.id ? kNoToken : id;
            if (known == kNoToken && looks_again_) known = table_->id_of(word.substr(begin, end - begin));
            if (known != kNoToken)
                out.push_back({known, begin, end});
            else if (!append_unknown(*table_, unknown_, word, begin, end, out))
                return false;
        }
        return true;
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    std::vector<double> scores_;
    UnknownRule unknown_;
    PrefixOrder texts_;
    double unknown_score_ = 0;
    bool looks_again_;
};

class WordPieceModel final : public TokenModel {
  public:
    WordPieceModel(std::shared_ptr<const TokenTable> table, const std::string& prefix, uint64_t longest,
                   uint32_t unknown)
        : table_(std::move(table)),
          texts_(table_->texts(), table_->rows()),
          after_(texts_.of(prefix)),
          longest_(longest),
          unknown_(unknown) {}

    bool split(std::string_view word, std::vector<WordToken>& out) const override {
        const size_t before = out.size();
        const auto refuse = [&] {
            out.resize(before);
            if (unknown_ != kNoToken) out.push_back({unknown_, 0, word.size()});
            return unknown_ != kNoToken;
        };
        uint64_t characters = 0;
        for (const char c : word) characters += (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
        if (characters > longest_) return refuse();
        for (size_t begin = 0; begin < word.size();) {
            WordToken longest{kNoToken, begin, begin};
            texts_.each_prefix(
                word.substr(begin),
                [&](size_t bytes, uint32_t row) {
                    longest.id = table_->id_at(row), longest.end = begin + bytes;
                },
                begin > 0 ? after_ : texts_.all());
            if (longest.id == kNoToken) return refuse();
            out.push_back(longest);
            begin = longest.end;
        }
        return true;
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    PrefixOrder texts_;
    PrefixOrder::Range after_;  // texts with the prefix
    uint64_t longest_;
    uint32_t unknown_;
};

class WordModel final : public TokenModel {
  public:
    WordModel(std::shared_ptr<const TokenTable> table, uint32_t unknown)
        : table_(std::move(table)), unknown_(unknown) {}

    bool split(std::string_view word, std::vector<WordToken>& out) const override {
        const uint32_t known = table_->id_of(word), id = known != kNoToken ? known : unknown_;
        if (id != kNoToken) out.push_back({id, 0, word.size()});
        return id != kNoToken;
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    uint32_t unknown_;
};

}  // namespace

std::unique_ptr<TokenModel> make_pair_model(std::shared_ptr<const TokenTable> table, PairMerges merges,
                                            const UnknownRule& unknown, bool whole_words,
                                            PairAffixes affixes) {
    return std::make_unique<PairModel>(std::move(table), std::move(merges), unknown, whole_words,
                                       std::move(affixes));
}

std::unique_ptr<TokenModel> make_score_model(std::shared_ptr<const TokenTable> table,
                                             std::vector<float> scores, const UnknownRule& unknown) {
    return std::make_unique<ScoreModel>(std::move(table), std::move(scores), unknown);
}

std::unique_ptr<TokenModel> make_unigram_model(std::shared_ptr<const TokenTable> table, UnigramRows rows,
                                               const UnknownRule& unknown) {
    return std::make_unique<UnigramModel>(std::move(table), std::move(rows), unknown);
}

std::unique_ptr<TokenModel> make_word_piece_model(std::shared_ptr<const TokenTable> table,
                                                  const std::string& prefix, uint64_t longest,
                                                  uint32_t unknown) {
    return std::make_unique<WordPieceModel>(std::move(table), prefix, longest, unknown);
}

std::unique_ptr<TokenModel> make_word_model(std::shared_ptr<const TokenTable> table, uint32_t unknown) {
    return std::make_unique<WordModel>(std::move(table), unknown);
}

}  // namespace fovea

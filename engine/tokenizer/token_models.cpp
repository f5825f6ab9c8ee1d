#include "tokenizer/token_models.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <queue>

#include "tokenizer/characters.hpp"

namespace fovea {

uint32_t TokenTable::id_of_byte(unsigned char byte) const {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", unsigned(byte));
    return id_of(name);
}

void PrefixTree::put(std::string_view text, uint32_t value) {
    uint64_t node = 0;
    for (const char c : text)
        node = edges_.emplace(node << 8 | static_cast<unsigned char>(c), edges_.size() + 1).first->second;
    if (!text.empty()) values_.insert_or_assign(node, value);
}

namespace {

// Appends what stands for [begin, end) of a word that the table lacks.
void append_unknown(const TokenTable& table, const UnknownRule& rule, std::string_view word, size_t begin,
                    size_t end, std::vector<WordToken>& out) {
    if (rule.byte_fallback) {
        const size_t before = out.size();
        for (size_t i = begin; i < end; ++i) {
            const uint32_t id = table.id_of_byte(static_cast<unsigned char>(word[i]));
            if (id == kNoToken) {
                out.resize(before);
                break;
            }
            out.push_back({id, i, i + 1});
        }
        if (out.size() > before) return;
    }
    if (rule.id == kNoToken) return;
    if (rule.fuse && !out.empty() && out.back().id == rule.id && out.back().end == begin)
        out.back().end = end;
    else
        out.push_back({rule.id, begin, end});
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
              bool whole_words)
        : table_(std::move(table)), merges_(std::move(merges)), unknown_(unknown), whole_(whole_words) {}

    void split(std::string_view word, std::vector<WordToken>& out) const override {
        if (whole_)
            if (const uint32_t id = table_->id_of(word); id != kNoToken)
                return out.push_back({id, 0, word.size()});
        PairMerger<uint32_t> merger;
        std::vector<WordToken> unknown;
        for (size_t at = 0; at < word.size();) {
            const size_t end = at + character_at(word, at).bytes;
            if (const uint32_t id = table_->id_of(word.substr(at, end - at)); id != kNoToken) {
                for (const WordToken& t : unknown) merger.add(t.id, t.begin, t.end);
                unknown.clear();
                merger.add(id, at, end);
            } else {
                append_unknown(*table_, unknown_, word, at, end, unknown);
            }
            at = end;
        }
        for (const WordToken& t : unknown) merger.add(t.id, t.begin, t.end);
        merger.merge([&](const auto& left, const auto& right, uint32_t& rank, uint32_t& id) {
            const auto found = merges_.find(uint64_t{left.id} << 32 | right.id);
            if (found == merges_.end()) return false;
            rank = found->second.rank, id = found->second.id;
            return true;
        });
        merger.each([&](const auto& s) { out.push_back({s.id, s.begin, s.end}); });
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    PairMerges merges_;
    UnknownRule unknown_;
    bool whole_;
};

class ScoreModel final : public TokenModel {
  public:
    ScoreModel(std::shared_ptr<const TokenTable> table, std::unordered_map<uint32_t, float> scores,
               const UnknownRule& unknown)
        : table_(std::move(table)), scores_(std::move(scores)), unknown_(unknown) {}

    void split(std::string_view word, std::vector<WordToken>& out) const override {
        PairMerger<float> merger;
        for (size_t at = 0; at < word.size();) {
            const size_t end = at + character_at(word, at).bytes;
            merger.add(table_->id_of(word.substr(at, end - at)), at, end);
            at = end;
        }
        merger.merge([&](const auto& left, const auto& right, float& rank, uint32_t& id) {
            id = table_->id_of(word.substr(left.begin, right.end - left.begin));
            const auto score = scores_.find(id);
            if (id == kNoToken || score == scores_.end()) return false;
            rank = -score->second;
            return true;
        });
        merger.each([&](const auto& s) {
            if (s.id != kNoToken)
                out.push_back({s.id, s.begin, s.end});
            else
                append_unknown(*table_, unknown_, word, s.begin, s.end, out);
        });
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    std::unordered_map<uint32_t, float> scores_;
    UnknownRule unknown_;
};

class UnigramModel final : public TokenModel {
  public:
    UnigramModel(std::shared_ptr<const TokenTable> table, std::unordered_map<uint32_t, double> scores,
                 const UnknownRule& unknown)
        : table_(std::move(table)), scores_(std::move(scores)), unknown_(unknown) {
        double least = std::numeric_limits<double>::infinity();
        for (const auto& [id, score] : scores_) {
            tree_.put(table_->piece(id), id);
            least = std::min(least, score);
        }
        unknown_score_ = least - 10.0;
    }

    void split(std::string_view word, std::vector<WordToken>& out) const override {
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
            tree_.each_prefix(word.substr(at), [&](size_t bytes, uint32_t id) {
                offer(at, at + bytes, id, places[at].score + scores_.at(id));
                alone = alone || bytes == one;
            });
            if (!alone) offer(at, at + one, kNoToken, places[at].score + unknown_score_);
            at += one;
        }
        std::vector<Place> path;  // from the end; `score` is not needed any more
        for (size_t end = word.size(); end > 0; end = places[end].from) path.push_back(places[end]);
        for (size_t i = path.size(), end = 0; i-- > 0;) {
            const size_t begin = path[i].from;
            // What is unknown is looked at together with its neighbours: they become one, or bytes.
            while (path[i].id == kNoToken && i > 0 && path[i - 1].id == kNoToken) --i;
            end = i > 0 ? path[i - 1].from : word.size();
            if (path[i].id != kNoToken)
                out.push_back({path[i].id, begin, end});
            else
                append_unknown(*table_, unknown_, word, begin, end, out);
        }
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    std::unordered_map<uint32_t, double> scores_;
    UnknownRule unknown_;
    PrefixTree tree_;
    double unknown_score_ = 0;
};

class WordPieceModel final : public TokenModel {
  public:
    WordPieceModel(std::shared_ptr<const TokenTable> table, std::string prefix, uint64_t longest,
                   uint32_t unknown)
        : table_(std::move(table)), prefix_(std::move(prefix)), longest_(longest), unknown_(unknown) {}

    void split(std::string_view word, std::vector<WordToken>& out) const override {
        const size_t before = out.size();
        const auto refuse = [&] {
            out.resize(before);
            if (unknown_ != kNoToken) out.push_back({unknown_, 0, word.size()});
        };
        uint64_t characters = 0;
        for (const char c : word) characters += (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
        if (characters > longest_) return refuse();
        std::string behind = prefix_;
        for (size_t begin = 0; begin < word.size();) {
            size_t end = word.size();
            uint32_t id = kNoToken;
            for (; end > begin; --end) {
                if (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xc0u) == 0x80u) continue;
                const std::string_view text = word.substr(begin, end - begin);
                if (begin > 0) behind.replace(prefix_.size(), std::string::npos, text);
                id = table_->id_of(begin > 0 ? std::string_view(behind) : text);
                if (id != kNoToken) break;
            }
            if (id == kNoToken) return refuse();
            out.push_back({id, begin, end});
            begin = end;
        }
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    std::string prefix_;
    uint64_t longest_;
    uint32_t unknown_;
};

class WordModel final : public TokenModel {
  public:
    WordModel(std::shared_ptr<const TokenTable> table, uint32_t unknown)
        : table_(std::move(table)), unknown_(unknown) {}

    void split(std::string_view word, std::vector<WordToken>& out) const override {
        const uint32_t id = table_->id_of(word);
        if (id != kNoToken || unknown_ != kNoToken)
            out.push_back({id != kNoToken ? id : unknown_, 0, word.size()});
    }

  private:
    std::shared_ptr<const TokenTable> table_;
    uint32_t unknown_;
};

}  // namespace

std::unique_ptr<TokenModel> make_pair_model(std::shared_ptr<const TokenTable> table, PairMerges merges,
                                            const UnknownRule& unknown, bool whole_words) {
    return std::make_unique<PairModel>(std::move(table), std::move(merges), unknown, whole_words);
}

std::unique_ptr<TokenModel> make_score_model(std::shared_ptr<const TokenTable> table,
                                             std::unordered_map<uint32_t, float> scores,
                                             const UnknownRule& unknown) {
    return std::make_unique<ScoreModel>(std::move(table), std::move(scores), unknown);
}

std::unique_ptr<TokenModel> make_unigram_model(std::shared_ptr<const TokenTable> table,
                                               std::unordered_map<uint32_t, double> scores,
                                               const UnknownRule& unknown) {
    return std::make_unique<UnigramModel>(std::move(table), std::move(scores), unknown);
}

std::unique_ptr<TokenModel> make_word_piece_model(std::shared_ptr<const TokenTable> table, std::string prefix,
                                                  uint64_t longest, uint32_t unknown) {
    return std::make_unique<WordPieceModel>(std::move(table), std::move(prefix), longest, unknown);
}

std::unique_ptr<TokenModel> make_word_model(std::shared_ptr<const TokenTable> table, uint32_t unknown) {
    return std::make_unique<WordModel>(std::move(table), unknown);
}

}  // namespace fovea

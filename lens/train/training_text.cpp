#include <fovea/train/training_text.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "train/task_sizes.hpp"

namespace fovea {
namespace {

// Tokens are dealt to training and judging in blocks of this many; the last of every twenty is kept back.
constexpr size_t kBlock = 4096, kBlocksOfWhichOne = 20;

Error bad_text(std::string text) { return Error{FOVEA_INVALID_ARGUMENT, "text", std::move(text)}; }

// A word of the text as tokens, and how often it is there.
struct CountedWord {
    std::vector<uint32_t> tokens;
    uint64_t count = 0;
};

// Joins the most frequent pair of neighbours again and again (Sennrich et al., 2016); of two as frequent the
// one whose tokens are older.
class VocabularyLearner {
  public:
    explicit VocabularyLearner(uint32_t most) : most_(most), counts_(size_t(most) * most) {}

    Result<std::vector<std::string>> learn(std::string_view text) {
        std::map<std::vector<std::string>, uint64_t> words;
        for (TextPiece& piece : split_pieces(text)) ++words[std::move(piece.symbols)];
        vocabulary_ = {"<start>", "<unknown>"};
        std::map<std::string, uint32_t> letters;
        for (const auto& [symbols, count] : words)
            for (const std::string& symbol : symbols) letters[symbol] = 0;
        if (letters.size() + vocabulary_.size() > most_)
            return bad_text("text holds " + std::to_string(letters.size()) +
                            " different characters, more than fit into a vocabulary of " +
                            std::to_string(most_));
        for (auto& [symbol, number] : letters) {
            number = static_cast<uint32_t>(vocabulary_.size());
            vocabulary_.push_back(symbol);
        }
        for (const auto& [symbols, count] : words) {
            CountedWord word;
            word.count = count;
            for (const std::string& symbol : symbols) word.tokens.push_back(letters[symbol]);
            if (word.tokens.size() > 1) words_.push_back(std::move(word));
        }
        while (vocabulary_.size() < most_ && join_most_frequent()) continue;
        return std::move(vocabulary_);
    }

  private:
    bool join_most_frequent() {
        std::vector<size_t> seen;
        for (const CountedWord& word : words_)
            for (size_t n = 0; n + 1 < word.tokens.size(); ++n) {
                const size_t pair = size_t(word.tokens[n]) * most_ + word.tokens[n + 1];
                if (counts_[pair] == 0) seen.push_back(pair);
                counts_[pair] += word.count;
            }
        size_t best = 0;
        uint64_t most = 1;  // a pair that occurs only once does not become a token
        for (const size_t pair : seen) {
            if (counts_[pair] > most || (counts_[pair] == most && most > 1 && pair < best)) {
                best = pair;
                most = counts_[pair];
            }
            counts_[pair] = 0;
        }
        if (most == 1) return false;
        const uint32_t first = uint32_t(best / most_), second = uint32_t(best % most_);
        const uint32_t joined = static_cast<uint32_t>(vocabulary_.size());
        std::string text = vocabulary_[first] + vocabulary_[second];
        // Two pairs may spell the same; encode() knows tokens by their text, so the later pair is that token.
        const auto known = std::find(vocabulary_.begin(), vocabulary_.end(), text);
        const uint32_t number = known == vocabulary_.end() ? joined : uint32_t(known - vocabulary_.begin());
        if (number == joined) vocabulary_.push_back(std::move(text));
        for (CountedWord& word : words_) {
            size_t kept = 0;
            for (size_t n = 0; n < word.tokens.size(); ++kept) {
                const bool joins =
                    n + 1 < word.tokens.size() && word.tokens[n] == first && word.tokens[n + 1] == second;
                word.tokens[kept] = joins ? number : word.tokens[n];
                n += joins ? 2 : 1;
            }
            word.tokens.resize(kept);
        }
        return true;
    }

    uint32_t most_;
    std::vector<uint64_t> counts_;  // counts of pairs, [first, second]; zero between two rounds
    std::vector<std::string> vocabulary_;
    std::vector<CountedWord> words_;
};

}  // namespace

Result<std::shared_ptr<const TrainingText>> TrainingText::of_vocabulary(std::vector<std::string> vocabulary) {
    Result<LearnedTokenizer> tokenizer = LearnedTokenizer::open(std::move(vocabulary));
    if (!tokenizer) return tokenizer.error();
    return std::shared_ptr<const TrainingText>(new TrainingText(std::move(*tokenizer)));
}

Result<std::shared_ptr<const TrainingText>> TrainingText::make(std::string_view text, uint32_t tokens) {
    Result<std::vector<std::string>> vocabulary = VocabularyLearner(tokens).learn(text);
    if (!vocabulary) return vocabulary.error();
    Result<LearnedTokenizer> tokenizer = LearnedTokenizer::open(std::move(*vocabulary));
    if (!tokenizer) return tokenizer.error();
    std::shared_ptr<TrainingText> made(new TrainingText(std::move(*tokenizer)));
    std::vector<size_t> lines;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
        lines.push_back(made->tokens_.size());
        for (const TextToken& token : made->tokenizer_.encode(text.substr(at, end - at)))
            made->tokens_.push_back(token.token);
        at = end;
    }
    // A short text has smaller blocks, so that it, too, has some of both kinds.
    const size_t block = std::min(kBlock, made->tokens_.size() / kBlocksOfWhichOne);
    const auto held_out = [&](size_t place) {
        return place / block % kBlocksOfWhichOne == kBlocksOfWhichOne - 1;
    };
    for (const size_t line : lines) {
        const size_t last = line + kTextContext - 1;  // <start> takes one place, the last target another
        if (block == 0 || last >= made->tokens_.size()) break;
        bool any = false, all = true;
        for (size_t place = line; place <= last; ++place) {
            any |= held_out(place);
            all &= held_out(place);
        }
        if (all) made->held_out_lines_.push_back(line);
        if (!any) made->training_lines_.push_back(line);
    }
    if (made->training_lines_.empty() || made->held_out_lines_.empty())
        return bad_text("text has " + std::to_string(made->tokens_.size()) + " tokens in " +
                        std::to_string(lines.size()) + " lines, too few to train with sequences of " +
                        std::to_string(kTextContext) + " and to keep some back");
    return std::shared_ptr<const TrainingText>(std::move(made));
}

}  // namespace fovea

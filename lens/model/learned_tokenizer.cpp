#include <fovea/model/learned_tokenizer.hpp>

#include <fovea/files.hpp>

#include <limits>

#include "files/utf8.hpp"

namespace fovea {
namespace {

constexpr std::string_view kOpenBox = "\u2423", kReturnArrow = "\u21b5", kReplacement = "\ufffd";

bool is_letter(std::string_view symbol) {
    if (symbol == kOpenBox || symbol == kReturnArrow || symbol == kReplacement) return false;
    const unsigned char c = static_cast<unsigned char>(symbol[0]);
    return c >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct Symbol {
    std::string text;
    size_t first_byte, bytes;
};

std::vector<Symbol> symbols_of(std::string_view text) {
    std::vector<Symbol> all;
    for (size_t at = 0; at < text.size();) {
        const size_t count = files::utf8_length(text.substr(at));
        std::string symbol(count ? text.substr(at, count) : kReplacement);
        if (symbol == " ") symbol = kOpenBox;
        if (symbol == "\n") symbol = kReturnArrow;
        all.push_back({std::move(symbol), at, count ? count : 1});
        at += count ? count : 1;
    }
    return all;
}

}  // namespace

std::vector<TextPiece> split_pieces(std::string_view text) {
    const std::vector<Symbol> symbols = symbols_of(text);
    const auto letter_at = [&](size_t n) { return n < symbols.size() && is_letter(symbols[n].text); };
    std::vector<TextPiece> pieces;
    for (size_t at = 0; at < symbols.size();) {
        size_t end = at + 1;
        if (letter_at(at) || (symbols[at].text == kOpenBox && letter_at(end)))
            while (letter_at(end) || (end < symbols.size() && symbols[end].text == "'" && letter_at(end + 1)))
                ++end;
        TextPiece& piece = pieces.emplace_back();
        piece.first_byte = symbols[at].first_byte;
        for (; at < end; ++at) {
            piece.symbols.push_back(symbols[at].text);
            piece.bytes.push_back(symbols[at].bytes);
        }
    }
    return pieces;
}

Result<LearnedTokenizer> LearnedTokenizer::open(std::vector<std::string> vocabulary) {
    const auto bad = [](std::string text) {
        return Error{FOVEA_INVALID_ARGUMENT, "vocabulary", "vocabulary " + std::move(text)};
    };
    if (vocabulary.size() < 2 || vocabulary[kStart] != "<start>" || vocabulary[kUnknown] != "<unknown>")
        return bad("does not begin with <start> <unknown>");
    LearnedTokenizer tokenizer;
    for (size_t n = 0; n < vocabulary.size(); ++n) {
        if (vocabulary[n].empty()) return bad("has no text for token " + std::to_string(n));
        if (!tokenizer.numbers_.emplace(vocabulary[n], static_cast<uint32_t>(n)).second)
            return bad("has '" + printable_name(vocabulary[n]) + "' twice");
    }
    tokenizer.vocabulary_ = std::move(vocabulary);
    return tokenizer;
}

std::vector<TextToken> LearnedTokenizer::encode(std::string_view text) const {
    constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
    const auto number_of = [&](const std::string& symbol) {
        const auto found = numbers_.find(symbol);
        return found == numbers_.end() || found->second <= kUnknown ? kNone : found->second;
    };
    std::vector<TextToken> all;
    for (const TextPiece& piece : split_pieces(text)) {
        std::vector<TextToken> tokens;
        size_t place = piece.first_byte;
        for (size_t n = 0; n < piece.symbols.size(); ++n) {
            const uint32_t number = number_of(piece.symbols[n]);
            tokens.push_back({number == kNone ? kUnknown : number, place, piece.bytes[n]});
            place += piece.bytes[n];
        }
        // Joins the neighbours whose token was learned first, until none join.
        while (true) {
            uint32_t joined = kNone;
            size_t at = 0;
            for (size_t n = 0; n + 1 < tokens.size(); ++n) {
                if (tokens[n].token == kUnknown || tokens[n + 1].token == kUnknown) continue;
                const uint32_t number =
                    number_of(vocabulary_[tokens[n].token] + vocabulary_[tokens[n + 1].token]);
                if (number < joined) {
                    joined = number;
                    at = n;
                }
            }
            if (joined == kNone) break;
            tokens[at].token = joined;
            tokens[at].bytes += tokens[at + 1].bytes;
            tokens.erase(tokens.begin() + ptrdiff_t(at) + 1);
        }
        all.insert(all.end(), tokens.begin(), tokens.end());
    }
    return all;
}

std::string LearnedTokenizer::plain(uint32_t token) const {
    if (token >= vocabulary_.size()) return {};
    std::string text = vocabulary_[token];
    if (token <= kUnknown) return text;
    for (const auto& [shown, meant] : {std::pair{kOpenBox, " "}, {kReturnArrow, "\n"}})
        for (size_t at = 0; (at = text.find(shown, at)) != std::string::npos; ++at)
            text.replace(at, shown.size(), meant);
    return text;
}

std::string LearnedTokenizer::decode(std::span<const uint32_t> tokens) const {
    std::string text;
    for (const uint32_t token : tokens) {
        if (token == kStart) continue;
        text += token == kUnknown ? std::string(kReplacement) : plain(token);
    }
    return text;
}

}  // namespace fovea

#include <fovea/model/tokens.hpp>

#include <algorithm>

#include "files/utf8.hpp"
#include "model/tables.hpp"

namespace fovea {
namespace {

// Ranges of code points: where one begins, where it is over, and so on.
template <size_t N>
bool within(const char32_t (&ranges)[N], char32_t c) {
    return (std::upper_bound(ranges, ranges + N, c) - ranges) % 2 != 0;
}

// Unicode 15's property White_Space, and what has no width and separates: U+200B and U+FEFF.
constexpr char32_t kSpaces[] = {0x9,    0xe,    0x20,   0x21,   0x85,   0x86,   0xa0,   0xa1,
                                0x1680, 0x1681, 0x2000, 0x200c, 0x2028, 0x202a, 0x202f, 0x2030,
                                0x205f, 0x2060, 0x3000, 0x3001, 0xfeff, 0xff00};

// Marks that may follow any character: combining diacritics, variation selectors, emoji modifiers, tags.
// Marks of one script (Hebrew, Arabic, the scripts of India) occur only inside words and need no table.
constexpr char32_t kMarks[] = {0x300,  0x370,  0x483,   0x48a,   0x1ab0,  0x1b00,  0x1dc0,  0x1e00, 0x200c,
                               0x200e, 0x20d0, 0x2100,  0x302a,  0x3030,  0x3099,  0x309b,  0xfe00, 0xfe10,
                               0xfe20, 0xfe30, 0x1f3fb, 0x1f400, 0xe0020, 0xe0080, 0xe0100, 0xe01f0};

// Format characters have no width and belong to what they follow, or to the word that they begin (Unicode
// Standard Annex 29, rule WB4): joiners, direction marks, embeddings and isolates, soft hyphens.
constexpr char32_t kFormats[] = {0xad,   0xae,   0x61c,  0x61d,  0x200c, 0x2010,  0x202a,
                                 0x202f, 0x2060, 0x2070, 0xfff9, 0xfffc, 0x1d173, 0x1d17b};

// Each a word by itself: radicals, kana, bopomofo, ideographs and the signs among them.
constexpr char32_t kIdeographs[] = {0x2e80, 0x2fe0, 0x3005,  0x3008,  0x3021,  0x302a, 0x3031, 0x3036,
                                    0x3038, 0x303d, 0x3041,  0x30a0,  0x30a1,  0x30fb, 0x30fc, 0x3130,
                                    0x31a0, 0x3200, 0x3400,  0x4dc0,  0x4e00,  0xa000, 0xf900, 0xfb00,
                                    0xff66, 0xffa0, 0x1b000, 0x1b170, 0x20000, 0x40000};

// Punctuation and symbols beyond ASCII: of Latin-1, Greek, Armenian, Hebrew, Arabic, Syriac, the scripts of
// India, Thai, Tibetan, Burmese, Ethiopic, Khmer and Mongolian; general punctuation, currencies, arrows,
// mathematics, technical signs, boxes, dingbats; CJK, small and full-width forms; music, tiles, pictographs
// and emoji.
constexpr char32_t kSymbols[] = {
    0x7f,   0x85,   0x86,   0xa0,   0xa1,   0xaa,   0xab,    0xad,    0xae,    0xb2,    0xb4,    0xb5,
    0xb6,   0xb9,   0xbb,   0xbc,   0xbf,   0xc0,   0xd7,    0xd8,    0xf7,    0xf8,    0x37e,   0x37f,
    0x387,  0x388,  0x55a,  0x560,  0x589,  0x58b,  0x5be,   0x5bf,   0x5c0,   0x5c1,   0x5c3,   0x5c4,
    0x5c6,  0x5c7,  0x5f3,  0x5f5,  0x606,  0x610,  0x61b,   0x61c,   0x61d,   0x620,   0x66a,   0x66e,
    0x6d4,  0x6d5,  0x700,  0x70e,  0x964,  0x966,  0x970,   0x971,   0xe3f,   0xe40,   0xe4f,   0xe50,
    0xe5a,  0xe5c,  0xf04,  0xf15,  0xf3a,  0xf3e,  0x104a,  0x1050,  0x10fb,  0x10fc,  0x1360,  0x1369,
    0x166d, 0x166f, 0x169b, 0x169d, 0x16eb, 0x16ee, 0x17d4,  0x17dc,  0x1800,  0x180b,  0x2010,  0x2028,
    0x2030, 0x205f, 0x207a, 0x207f, 0x208a, 0x208f, 0x20a0,  0x20c1,  0x2116,  0x2118,  0x2120,  0x2123,
    0x2190, 0x2c00, 0x2cf9, 0x2d00, 0x2e00, 0x2e5e, 0x3001,  0x3005,  0x3008,  0x3021,  0x3030,  0x3031,
    0x3036, 0x3038, 0x303d, 0x3040, 0x30a0, 0x30a1, 0x30fb,  0x30fc,  0x3200,  0x3400,  0xa4fe,  0xa500,
    0xfd3e, 0xfd40, 0xfe10, 0xfe1a, 0xfe30, 0xfe6c, 0xff01,  0xff10,  0xff1a,  0xff21,  0xff3b,  0xff41,
    0xff5b, 0xff66, 0xffe0, 0xffef, 0xfffc, 0xfffe, 0x1d000, 0x1d173, 0x1d17b, 0x1d200, 0x1f000, 0x1fb00};

constexpr char32_t kPictographs[] = {0x1f000, 0x1fb00}, kFlagLetters[] = {0x1f1e6, 0x1f200};
constexpr char32_t kJoiner = 0x200d, kEmojiStyle = 0xfe0f, kKeycap = 0x20e3, kBroken = 0xfffd;

enum class Kind { space, word, mark, ideograph, symbol };

Kind kind_of(char32_t c) {
    if (within(kSpaces, c)) return Kind::space;
    if (c < 0x80) {
        const bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        return letter ? Kind::word : Kind::symbol;
    }
    if (within(kMarks, c) || within(kFormats, c)) return Kind::mark;
    if (within(kIdeographs, c)) return Kind::ideograph;
    if (within(kSymbols, c)) return Kind::symbol;
    return Kind::word;
}

struct Character {
    char32_t code = 0;
    Kind kind = Kind::space;
    size_t first_byte = 0, bytes = 0;
};

Character character_at(std::string_view text, size_t at) {
    const size_t length = files::utf8_length(text.substr(at));
    if (length == 0) return {kBroken, Kind::symbol, at, 1};
    const auto byte = [&](size_t i) { return char32_t(static_cast<unsigned char>(text[at + i])); };
    char32_t code = byte(0);
    if (length == 2) code = (code & 0x1f) << 6 | (byte(1) & 0x3f);
    if (length == 3) code = (code & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    if (length == 4)
        code = (code & 0x7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
    return {code, kind_of(code), at, length};
}

std::vector<Character> characters_of(std::string_view text) {
    std::vector<Character> all;
    for (size_t at = 0; at < text.size(); at += all.back().bytes) all.push_back(character_at(text, at));
    return all;
}

// Scans the characters of one word; each function returns the end of the unit that begins at `at`.
class Words {
  public:
    explicit Words(const std::vector<Character>& all) : all_(all) {}

    size_t end_of_token(size_t at) const {
        if (const size_t end = end_of_keycap(at)) return end;
        switch (all_[at].kind) {
            case Kind::ideograph:
                return end_of_marks(at + 1);
            case Kind::symbol:
                return end_of_symbol(at);
            default:  // a lone modifier of emoji is a symbol, too
                return in_word(at) ? end_of_word(at) : end_of_symbol(at);
        }
    }

  private:
    char32_t code(size_t at) const { return at < all_.size() ? all_[at].code : 0; }
    Kind kind(size_t at) const { return at < all_.size() ? all_[at].kind : Kind::space; }
    bool in_word(size_t at) const {
        return kind(at) == Kind::word || (kind(at) == Kind::mark && !within(kPictographs, code(at)));
    }

    size_t end_of_marks(size_t at) const {
        while (kind(at) == Kind::mark && code(at) != kJoiner) ++at;
        return at;
    }
    // A digit, # or * in a key's cap: 0 where there is none.
    size_t end_of_keycap(size_t at) const {
        const char32_t c = code(at);
        if (!((c >= '0' && c <= '9') || c == '#' || c == '*')) return 0;
        const size_t cap = code(at + 1) == kEmojiStyle ? at + 2 : at + 1;
        return code(cap) == kKeycap ? cap + 1 : 0;
    }
    // With its marks, with what joiners add to it, and with the second letter of a flag.
    size_t end_of_symbol(size_t at) const {
        const bool flag = within(kFlagLetters, code(at)) && within(kFlagLetters, code(at + 1));
        size_t end = end_of_marks(at + (flag ? 2 : 1));
        while (code(end) == kJoiner) {
            ++end;
            if (kind(end) == Kind::symbol) end = end_of_marks(end + 1);
        }
        return end;
    }
    size_t end_of_word(size_t at) const {
        size_t end = at + 1;
        for (;;) {
            const char32_t c = code(end);
            const bool inner = (c == '\'' || c == '-' || c == 0x2019 || c == 0x2010) && in_word(end + 1);
            if (!inner && (!in_word(end) || end_of_keycap(end))) return end;
            ++end;
        }
    }

    const std::vector<Character>& all_;
};

std::string shown(std::string_view text, const Character& c) {
    return c.code == kBroken ? "\xef\xbf\xbd" : std::string(text.substr(c.first_byte, c.bytes));
}

std::vector<Token> words_of(std::string_view text) {
    const std::vector<Character> all = characters_of(text);
    const Words words(all);
    std::vector<Token> tokens;
    for (size_t at = 0; at < all.size();) {
        if (all[at].kind == Kind::space) {
            ++at;
            continue;
        }
        const size_t end = words.end_of_token(at);
        Token token{
            {}, all[at].first_byte, all[end - 1].first_byte + all[end - 1].bytes - all[at].first_byte};
        bool seen = false;
        for (; at < end; ++at) {
            token.text += shown(text, all[at]);
            seen = seen || !within(kFormats, all[at].code);
        }
        if (seen) tokens.push_back(std::move(token));
    }
    return tokens;
}

// Space and control characters as something that can be seen.
std::string seen_byte(unsigned char byte) {
    constexpr char kHex[] = "0123456789abcdef";
    if (byte == ' ') return "\xe2\x90\xa3";  // an open box
    if (byte > ' ' && byte < 0x7f) return std::string(1, char(byte));
    return {kHex[byte >> 4], kHex[byte & 15]};
}

}  // namespace

std::vector<Token> split_text(std::string_view text, Tokenizer how) {
    if (how == Tokenizer::words) return words_of(text);
    std::vector<Token> tokens;
    for (size_t at = 0; at < text.size(); at += tokens.back().bytes) {
        const Character c =
            how == Tokenizer::characters ? character_at(text, at) : Character{0, Kind::word, at, 1};
        const auto byte = static_cast<unsigned char>(text[at]);
        tokens.push_back({c.code < 0x80 ? seen_byte(byte) : shown(text, c), at, c.bytes});
    }
    return tokens;
}

size_t most_tokens(int level) {
    constexpr size_t kUsual = 128;
    const auto most = model_table("levels").items()[size_t(level - 1)]["shape"].find("tokens");
    return most ? size_t(most->number()) : kUsual;
}

SessionTokens session_tokens(const Session& s, size_t most) {
    SessionTokens out;
    const std::vector<Token> typed = split_text(s.text, s.tokenizer);
    const bool repeats = s.level == kLevelCount && s.length > 0;
    const size_t wanted = typed.empty() ? 0 : repeats ? s.length : typed.size();
    for (size_t i = 0; i < std::min(wanted, most); ++i) out.tokens.push_back(typed[i % typed.size()]);
    if (typed.empty()) out.notes.push_back({"text", "the text has no token"});
    if (wanted > most)
        out.notes.push_back({"text", "the text has " + std::to_string(wanted) + " tokens; level " +
                                         std::to_string(s.level) + " shows the first " +
                                         std::to_string(most)});
    if (repeats && typed.size() > s.length)
        out.notes.push_back({"len", "the text has " + std::to_string(typed.size()) + " tokens; the first " +
                                        std::to_string(s.length) + " are taken"});
    return out;
}

}  // namespace fovea

// Texts of all scripts for tokenizers: the same rules, word for word, as scripts/make_tokenizer_hashes.py,
// whose hashes of a reference library's tokens are tests/model/tokenizers/hashes.json.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace fovea::test {

inline constexpr uint64_t kRandomTexts = 10000, kTextsOfAHash = 100;

// SplitMix64 (Steele, Lea and Flood, 2014).
class TextRandom {
  public:
    explicit TextRandom(uint64_t seed) : state_(seed) {}
    uint64_t below(uint64_t count) {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return (z ^ z >> 31) % count;
    }

  private:
    uint64_t state_;
};

inline void add_character(std::string& text, uint64_t c) {
    const auto more = [&](int shift) { text += char(0x80 | (c >> shift & 0x3f)); };
    if (c < 0x80) {
        text += char(c);
    } else if (c < 0x800) {
        text += char(0xc0 | c >> 6), more(0);
    } else if (c < 0x10000) {
        text += char(0xe0 | c >> 12), more(6), more(0);
    } else {
        text += char(0xf0 | c >> 18), more(12), more(6), more(0);
    }
}

inline std::string random_text(uint64_t seed) {
    static constexpr std::array<std::string_view, 14> kWords = {
        "The",       "quick", "the",  "other",  "there",   "tokens", "we're",
        "Attention", "12345", "3.14", "return", "<|end|>", "<s>",    "[MASK]"};
    static constexpr std::array<uint64_t, 7> kSpaces = {' ', '\t', '\n', '\r', 0xa0, 0x3000, 0x2003};
    // First character and how many from there on.
    static constexpr std::pair<uint64_t, uint64_t> kBlocks[] = {
        {0x20, 95},       {0x00, 32},      {0x7f, 1},        {0xa0, 96},   {0x100, 128}, {0x300, 0x40},
        {0x391, 57},      {0x410, 64},     {0x531, 38},      {0x5d0, 27},  {0x620, 43},  {0x660, 10},
        {0x904, 54},      {0x966, 10},     {0xe01, 58},      {0x10a0, 38}, {0x1100, 90}, {0x1e00, 96},
        {0x2010, 24},     {0x20a0, 16},    {0x2150, 16},     {0x2190, 90}, {0x2460, 60}, {0x3041, 86},
        {0x30a1, 90},     {0x4e00, 20000}, {0xac00, 11172},  {0xfb00, 7},  {0xff01, 94}, {0x1d400, 85},
        {0x1f300, 0x100}, {0x1f600, 80},   {0x20000, 0x400}, {0xe000, 16}};
    TextRandom random(seed);
    std::string text;
    for (uint64_t parts = 1 + random.below(12); parts > 0; --parts) {
        const uint64_t what = random.below(5);
        if (what == 0) {
            text += kWords[random.below(kWords.size())];
        } else if (what == 1) {
            const uint64_t space = kSpaces[random.below(kSpaces.size())];
            for (uint64_t n = 1 + random.below(4); n > 0; --n) add_character(text, space);
        } else {
            const auto [first, count] = kBlocks[random.below(std::size(kBlocks))];
            for (uint64_t n = 1 + random.below(what == 2 ? 1 : 6); n > 0; --n)
                add_character(text, first + random.below(count));
        }
    }
    return text;
}

}  // namespace fovea::test

#include "theme/theme.hpp"

#ifdef FOVEA_HAS_FRIBIDI
#include <fribidi.h>
#endif

#include <vector>

namespace fovea::visualizer {
namespace {

struct Letter {
    char32_t code = 0;
    size_t bytes = 1;
};

// Expects valid UTF-8; an invalid byte is returned unchanged.
Letter letter_at(std::string_view text, size_t at) {
    const auto byte = [&](size_t i) { return char32_t(static_cast<unsigned char>(text[at + i])); };
    const char32_t lead = byte(0);
    const size_t bytes = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (at + bytes > text.size() || bytes == 1) return {lead, 1};
    char32_t code = lead & (0xff >> (bytes + 1));
    for (size_t i = 1; i < bytes; ++i) code = code << 6 | (byte(i) & 0x3f);
    return {code, bytes};
}

// Marks, embeddings and isolates that say a direction and have no picture.
bool is_direction_mark(char32_t c) {
    return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

// Blocks of scripts that run from right to left, their presentation forms too.
bool is_from_the_right(char32_t c) {
    return (c >= 0x590 && c < 0x900) || (c >= 0xfb1d && c < 0xfe00) || (c >= 0xfe70 && c < 0xfeff) ||
           (c >= 0x10800 && c < 0x11000) || (c >= 0x1e800 && c < 0x1f000);
}

}  // namespace

bool reorders_text() {
#ifdef FOVEA_HAS_FRIBIDI
    return true;
#else
    return false;
#endif
}

std::string in_drawing_order(std::string_view text) {
    bool turns = false, marks = false;
    for (size_t at = 0; at < text.size();) {
        const Letter letter = letter_at(text, at);
        turns = turns || is_from_the_right(letter.code);
        marks = marks || is_direction_mark(letter.code);
        at += letter.bytes;
    }
    if (!turns && !marks) return std::string(text);
#ifdef FOVEA_HAS_FRIBIDI
    if (turns) {
        std::vector<FriBidiChar> letters;
        for (size_t at = 0; at < text.size();) {
            const Letter letter = letter_at(text, at);
            letters.push_back(letter.code);
            at += letter.bytes;
        }
        auto count = FriBidiStrIndex(letters.size());
        std::vector<FriBidiCharType> types(letters.size());
        std::vector<FriBidiBracketType> brackets(letters.size());
        std::vector<FriBidiLevel> levels(letters.size());
        std::vector<FriBidiJoiningType> joining(letters.size());
        FriBidiParType direction = FRIBIDI_PAR_ON;
        fribidi_get_bidi_types(letters.data(), count, types.data());
        fribidi_get_bracket_types(letters.data(), count, types.data(), brackets.data());
        if (fribidi_get_par_embedding_levels_ex(types.data(), brackets.data(), count, &direction,
                                                levels.data()) != 0) {
            fribidi_get_joining_types(letters.data(), count, joining.data());
            fribidi_join_arabic(types.data(), count, levels.data(), joining.data());
            fribidi_shape(FRIBIDI_FLAGS_DEFAULT | FRIBIDI_FLAGS_ARABIC, levels.data(), count, joining.data(),
                          letters.data());
            // Returns 0 where it had no memory and changed nothing.
            (void)(fribidi_reorder_line(FRIBIDI_FLAGS_DEFAULT, types.data(), count, 0, direction,
                                        levels.data(), letters.data(), nullptr) != 0);
            std::string out;
            for (const FriBidiChar c : letters) {
                if (is_direction_mark(c) || c == FRIBIDI_CHAR_FILL) continue;
                if (c < 0x80) {
                    out += char(c);
                } else if (c < 0x800) {
                    out += {char(0xc0 | c >> 6), char(0x80 | (c & 0x3f))};
                } else if (c < 0x10000) {
                    out += {char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 0x3f)), char(0x80 | (c & 0x3f))};
                } else {
                    out += {char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 0x3f)), char(0x80 | (c >> 6 & 0x3f)),
                            char(0x80 | (c & 0x3f))};
                }
            }
            return out;
        }
    }
#endif
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const Letter letter = letter_at(text, at);
        if (!is_direction_mark(letter.code)) out += text.substr(at, letter.bytes);
        at += letter.bytes;
    }
    return out;
}

}  // namespace fovea::visualizer

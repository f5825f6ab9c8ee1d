// Unicode properties of characters, from utf8proc. Without that library only ASCII is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// True if this build knows characters beyond ASCII.
bool has_character_tables();

// Classes of characters. Without tables nothing beyond ASCII is in any of them.
bool is_space(uint32_t c);            // the property White_Space
bool is_punctuation(uint32_t c);      // P*
bool is_mark(uint32_t c);             // M*
bool is_nonspacing_mark(uint32_t c);  // Mn
bool is_number(uint32_t c);           // N*
bool is_word(uint32_t c);             // letters, marks, digits, connecting punctuation
bool is_other(uint32_t c);            // Cc, Cf, Cs, Co: control and format characters, private ones
bool is_ascii(std::string_view text);

// One character and how many bytes it takes; of bytes that are not UTF-8 one byte as it is.
struct Character {
    uint32_t value = 0;
    size_t bytes = 0;
};
Character character_at(std::string_view text, size_t at);
void append_utf8(std::string& out, uint32_t c);

// The character in lower case, by itself: what follows or precedes it does not matter.
void append_lower(std::string& out, uint32_t c);

// Normal forms of Unicode (UAX 15).
enum class NormalForm { nfc, nfd, nfkc, nfkd };
std::string normal_form(std::string_view text, NormalForm form);

// Ends of the user-perceived characters (UAX 29), which no composition crosses, in bytes; the last is
// text.size().
std::vector<size_t> grapheme_ends(std::string_view text);

}  // namespace fovea

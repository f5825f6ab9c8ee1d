
#include <algorithm>

#include "files/utf8.hpp"

#include <fovea/tokenizer/characters.hpp>

namespace fovea {
bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Character character_at(std::string_view text, size_t at) {
    const size_t length = std::max<size_t>(1, files::utf8_length(text.substr(at)));
    uint32_t c = static_cast<unsigned char>(text[at]);
    if (length > 1) c &= 0xffu >> (length + 1);
    for (size_t i = 1; i < length; ++i) c = c << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
    return {c, length};
}

void append_utf8(std::string& out, uint32_t c) {
    if (c < 0x80) {
        out += char(c);
        return;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr uint32_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
    out += char(kFirst[more] | c >> (6 * more));
    for (int i = more - 1; i >= 0; --i) out += char(0x80 | (c >> (6 * i) & 0x3f));
}

}  // namespace fovea

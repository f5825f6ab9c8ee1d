#pragma once
// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10ffff.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fovea::files {

/// Returns the length in bytes (1 to 4) of the character at the start of `text`, or 0 if it is not valid.
constexpr size_t utf8_length(std::string_view text) noexcept {
    if (text.empty()) return 0;
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto follows = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0u) == 0x80u; };
    const unsigned char first = byte(0);
    if (first < 0x80u) return 1;
    if (first < 0xc2u) return 0;
    if (first < 0xe0u) return follows(1) ? 2 : 0;
    if (first < 0xf0u) {
        if (!follows(1) || !follows(2)) return 0;
        if (first == 0xe0u && byte(1) < 0xa0u) return 0;
        if (first == 0xedu && byte(1) >= 0xa0u) return 0;
        return 3;
    }
    if (first > 0xf4u || !follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xf0u && byte(1) < 0x90u) return 0;
    if (first == 0xf4u && byte(1) >= 0x90u) return 0;
    return 4;
}

/// Offset of the first byte that is not part of a valid character; text.size() when all are.
constexpr size_t utf8_fault(std::string_view text) noexcept {
    size_t at = 0;
    while (at < text.size()) {
        const size_t length = utf8_length(text.substr(at));
        if (length == 0) return at;
        at += length;
    }
    return at;
}

}  // namespace fovea::files

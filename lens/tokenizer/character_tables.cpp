// Unicode properties of characters, by utf8proc; without it, only those of ASCII.
#include <fovea/tokenizer/characters.hpp>

#ifdef FOVEA_HAS_UTF8PROC
#include <utf8proc.h>

#include <cstdlib>
#endif

namespace fovea {

#ifdef FOVEA_HAS_UTF8PROC

namespace {

utf8proc_category_t category(uint32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }

}  // namespace

bool has_character_tables() { return true; }

bool is_space(uint32_t c) {
    const auto of = category(c);
    return (c >= 9 && c <= 13) || c == 0x85 || (of >= UTF8PROC_CATEGORY_ZS && of <= UTF8PROC_CATEGORY_ZP);
}
bool is_punctuation(uint32_t c) {
    return category(c) >= UTF8PROC_CATEGORY_PC && category(c) <= UTF8PROC_CATEGORY_PO;
}
bool is_mark(uint32_t c) {
    return category(c) >= UTF8PROC_CATEGORY_MN && category(c) <= UTF8PROC_CATEGORY_ME;
}
bool is_nonspacing_mark(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }
bool is_number(uint32_t c) {
    return category(c) >= UTF8PROC_CATEGORY_ND && category(c) <= UTF8PROC_CATEGORY_NO;
}
bool is_word(uint32_t c) {
    const auto of = category(c);
    return (of >= UTF8PROC_CATEGORY_LU && of <= UTF8PROC_CATEGORY_ND) || of == UTF8PROC_CATEGORY_PC;
}
bool is_other(uint32_t c) {
    const auto of = category(c);
    return of >= UTF8PROC_CATEGORY_CC && of <= UTF8PROC_CATEGORY_CO;
}

void append_lower(std::string& out, uint32_t c) {
    if (c == 0x130) {
        out += "i\xcc\x87";  // the one character whose lower case is two: utf8proc has one for one
        return;
    }
    append_utf8(out, uint32_t(utf8proc_tolower(utf8proc_int32_t(c))));
}

std::string normal_form(std::string_view text, NormalForm form) {
    int options = UTF8PROC_STABLE;
    options |= form == NormalForm::nfc || form == NormalForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
    if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
    utf8proc_uint8_t* made = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), utf8proc_ssize_t(text.size()),
                     &made, utf8proc_option_t(options));
    std::string out = size < 0 ? std::string(text) : std::string(reinterpret_cast<char*>(made), size_t(size));
    std::free(made);
    return out;
}

std::vector<size_t> grapheme_ends(std::string_view text) {
    std::vector<size_t> ends;
    utf8proc_int32_t state = 0;
    Character before;
    for (size_t at = 0; at < text.size(); at += before.bytes) {
        const Character c = character_at(text, at);
        if (at > 0 && utf8proc_grapheme_break_stateful(utf8proc_int32_t(before.value),
                                                       utf8proc_int32_t(c.value), &state))
            ends.push_back(at);
        before = c;
    }
    if (!text.empty()) ends.push_back(text.size());
    return ends;
}

#else

namespace {

bool is_ascii_letter(uint32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
bool is_ascii_digit(uint32_t c) { return c >= '0' && c <= '9'; }

}  // namespace

bool has_character_tables() { return false; }
bool is_space(uint32_t c) { return (c >= 9 && c <= 13) || c == ' '; }
bool is_punctuation(uint32_t c) {
    return c > ' ' && c < 0x7f && !is_ascii_letter(c) && !is_ascii_digit(c) && c != '$' && c != '+' &&
           !(c >= '<' && c <= '>') && c != '^' && c != '`' && c != '|' && c != '~';
}
bool is_mark(uint32_t) { return false; }
bool is_nonspacing_mark(uint32_t) { return false; }
bool is_number(uint32_t c) { return is_ascii_digit(c); }
bool is_word(uint32_t c) { return is_ascii_letter(c) || is_ascii_digit(c) || c == '_'; }
bool is_other(uint32_t c) { return c < 0x20 || c == 0x7f; }
void append_lower(std::string& out, uint32_t c) { append_utf8(out, c >= 'A' && c <= 'Z' ? c + 32 : c); }
std::string normal_form(std::string_view text, NormalForm) { return std::string(text); }
std::vector<size_t> grapheme_ends(std::string_view text) {
    std::vector<size_t> ends;
    for (size_t at = 0; at < text.size();) ends.push_back(at += character_at(text, at).bytes);
    return ends;
}

#endif

}  // namespace fovea

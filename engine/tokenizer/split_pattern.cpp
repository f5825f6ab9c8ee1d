#include "tokenizer/split_pattern.hpp"

#ifdef FOVEA_HAS_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

namespace fovea {

#ifdef FOVEA_HAS_PCRE2

bool SplitPattern::available() { return true; }

Result<SplitPattern> SplitPattern::compile(std::string_view pattern) {
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code* const made =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr);
    if (!made)
        return Error{FOVEA_UNSUPPORTED, "pattern",
                     "the pattern cannot be read from its byte " + std::to_string(at) + " on"};
    SplitPattern out;
    out.code_ = std::shared_ptr<const void>(
        made, [](const void* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); });
    return out;
}

bool SplitPattern::split(std::string_view text,
                         const std::function<void(size_t, size_t, bool)>& visit) const {
    const auto* const code = static_cast<const pcre2_code*>(code_.get());
    const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(
        pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
    size_t done = 0, from = 0;
    while (match && from <= text.size()) {
        const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, 0,
                                      match.get(), nullptr);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) return false;
        const PCRE2_SIZE* const places = pcre2_get_ovector_pointer(match.get());
        if (places[1] == places[0]) {  // an empty match splits nothing: look from the next character on
            from = places[1] + 1;
            while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0u) == 0x80u) ++from;
            continue;
        }
        if (places[0] > done) visit(done, places[0], false);
        visit(places[0], places[1], true);
        done = from = places[1];
    }
    if (done < text.size()) visit(done, text.size(), false);
    return match != nullptr;
}

#else

bool SplitPattern::available() { return false; }
Result<SplitPattern> SplitPattern::compile(std::string_view) {
    return Error{FOVEA_UNSUPPORTED, "tokenizer", "this build has no PCRE2, which splits text into words"};
}
bool SplitPattern::split(std::string_view, const std::function<void(size_t, size_t, bool)>&) const {
    return false;
}

#endif

}  // namespace fovea

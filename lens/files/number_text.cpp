#include "files/number_text.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <version>
#if !defined(__cpp_lib_to_chars)
#include <locale>
#include <sstream>
#endif

namespace fovea::files {
namespace {

#if defined(__cpp_lib_to_chars)

std::optional<double> parse_finite(std::string_view text) {
    double value = 0;
    const auto result =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::general);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

template <class Real>
void append_finite(std::string& out, Real value) {
    char digits[64];
    out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

#else

// libc++ went without floating-point from_chars for long; streams with the classic locale round the same.

std::optional<double> parse_finite(std::string_view text) {
    std::istringstream stream{std::string(text)};
    stream.imbue(std::locale::classic());
    double value = 0;
    stream >> std::noskipws >> value;
    if (stream.fail() || stream.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
    return value;
}

template <class Real>
void append_finite(std::string& out, Real value) {
    for (int digits = 1;; ++digits) {
        std::ostringstream stream;
        stream.imbue(std::locale::classic());
        stream.precision(digits);
        stream << value;
        const std::string text = stream.str();
        if (digits == std::numeric_limits<Real>::max_digits10 ||
            static_cast<Real>(*parse_finite(text)) == value) {
            out += text;
            return;
        }
    }
}

#endif

bool is_word(std::string_view text, std::string_view lower) {
    if (text.size() != lower.size()) return false;
    for (size_t i = 0; i < text.size(); ++i)
        if ((text[i] | 0x20) != lower[i]) return false;
    return true;
}

template <class Real>
void append_any(std::string& out, Real value) {
    if (std::isnan(value))
        out += "nan";
    else if (std::isinf(value))
        out += value < 0 ? "-inf" : "inf";
    else
        append_finite(out, value);
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
    const bool negative = text.starts_with('-');
    std::string_view digits = text;
    if (negative || text.starts_with('+')) digits.remove_prefix(1);
    if (is_word(digits, "nan")) return std::numeric_limits<double>::quiet_NaN();
    if (is_word(digits, "inf") || is_word(digits, "infinity"))
        return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    // Only digits and a point may begin a number now: no second sign, no hexadecimal.
    if (digits.empty() || !((digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.')) return std::nullopt;
    if (digits.find_first_of("xXpP") != std::string_view::npos) return std::nullopt;
    const auto value = parse_finite(digits);
    if (!value || std::isinf(*value)) return std::nullopt;
    return negative ? -*value : *value;
}

void append_number(std::string& out, float value) { append_any(out, value); }
void append_number(std::string& out, double value) { append_any(out, value); }

}  // namespace fovea::files

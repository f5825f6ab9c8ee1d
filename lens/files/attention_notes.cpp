
#include <charconv>
#include <cmath>

#include "files/number_text.hpp"
#include "files/refusal.hpp"

#include <fovea/files/attention_notes.hpp>

namespace fovea {
namespace {

using Causal = AttentionNotes::Causal;

Error wrong(std::string_view key, std::string_view value, std::string_view allowed) {
    return files::bad_argument("metadata", files::cat("metadata ", key, " is '", printable_name(value, 40),
                                                      "'; it must be ", allowed));
}

std::optional<float> positive(std::string_view text) {
    const std::optional<double> value = files::parse_number(text);
    if (!value || !(float(*value) > 0) || !std::isfinite(float(*value)) || !std::isfinite(1 / float(*value)))
        return std::nullopt;
    return float(*value);
}

std::optional<std::array<int32_t, 2>> window_of(std::string_view text) {
    std::array<int32_t, 2> sides{};
    const char *at = text.data(), *const end = at + text.size();
    for (size_t i = 0; i < 2; ++i) {
        const auto [next, error] = std::from_chars(at, end, sides[i]);
        if (error != std::errc{} || sides[i] < -1 || (i == 0 ? next == end || *next != ',' : next != end))
            return std::nullopt;
        at = next + 1;
    }
    return sides;
}

}  // namespace

Result<AttentionNotes> attention_notes(const TensorSet& file) {
    AttentionNotes notes;
    const auto read = [&](std::string_view key, std::string_view allowed, auto take) -> Result<void> {
        const std::string* const value = file.find_metadata(key);
        if (!value) return {};
        if (!take(*value)) return wrong(key, *value, allowed);
        notes.text += files::cat(notes.text.empty() ? "" : ", ", key, " ", printable_name(*value, 40));
        return {};
    };
    const auto number = [](std::optional<float>& to) {
        return [&to](const std::string& text) { return (to = positive(text)).has_value(); };
    };
    const Result<void> all[] = {
        read("layout", "bhld or blhd",
             [&](const std::string& text) {
                 notes.rows_first = text == "blhd";
                 return text == "bhld" || text == "blhd";
             }),
        read("scale", "a number above 0", number(notes.scale)),
        read("softcap", "a number above 0", number(notes.softcap)),
        read("causal", "none, top-left or bottom-right",
             [&](const std::string& text) {
                 notes.causal = text == "top-left"       ? Causal::top_left
                                : text == "bottom-right" ? Causal::bottom_right
                                                         : Causal::none;
                 return notes.causal != Causal::none || text == "none";
             }),
        read("window", "two integers from -1 with a comma between",
             [&](const std::string& text) { return (notes.window = window_of(text)).has_value(); })};
    for (const Result<void>& one : all)
        if (!one) return one.error();
    return notes;
}

}  // namespace fovea

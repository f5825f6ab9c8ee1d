#include "model/settings.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace fovea::visualizer {
namespace {

// The n-th choice of a key of session files.
std::string_view choice(std::string_view key, size_t n) {
    for (const SessionKey& known : session_keys())
        if (known.key == key && n < known.choices.size()) return known.choices[n];
    return "";
}

}  // namespace

std::string_view mask_pattern_name(MaskPattern pattern) {
    AttentionRules rules;
    rules.pattern = pattern;
    return mask_key(rules);
}

std::string_view precision_key(Precision precision) { return choice("precision", size_t(precision)); }
std::string_view tokenizer_name(Tokenizer tokenizer) { return choice("tokenizer", size_t(tokenizer)); }

std::string_view precision_name(Precision precision) {
    constexpr std::array<std::string_view, kPrecisionCount> kNames = {"float32", "float16 storage",
                                                                      "float16 products"};
    return kNames.at(size_t(precision));
}

AttentionRules rules_of(const Settings& s) {
    AttentionRules rules = s;
    if (!reads_tensors(s) || s.mapping.divisor <= 0 || s.scale != "auto") return rules;
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", double(s.mapping.divisor));
    rules.scale = text;
    return rules;
}

Settings level_settings(int level) {
    Settings s;
    static_cast<Session&>(s) = level_session(level);
    const Session none;
    s.stage = none.stage, s.head = none.head, s.row = none.row, s.column = none.column;
    return s;
}

Settings level_settings(int level, const Settings& before) {
    Settings s = level_settings(level);
    s.text = before.text;
    s.tokenizer = before.tokenizer;
    s.precision = before.precision;
    return s;
}

std::string level_name(int level) {
    std::string name = level_text(level).term;
    if (name[0] >= 'a' && name[0] <= 'z') name[0] = char(name[0] - 'a' + 'A');
    return name;
}

void switch_dropout(Settings& s) {
    if (s.dropout_p > 0)
        s.dropout_rate = std::exchange(s.dropout_p, 0);
    else
        s.dropout_p = s.dropout_rate;
}

void toggle_key(Settings& s, uint32_t key) {
    const auto at = std::lower_bound(s.hidden_keys.begin(), s.hidden_keys.end(), key);
    if (at != s.hidden_keys.end() && *at == key)
        s.hidden_keys.erase(at);
    else
        s.hidden_keys.insert(at, key);
}

}  // namespace fovea::visualizer

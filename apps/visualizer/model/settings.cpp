#include "model/settings.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace fovea::visualizer {

std::string_view mask_pattern_name(MaskPattern pattern) {
    constexpr std::array<std::string_view, kMaskPatternCount> kNames = {"none",    "padding", "prefix",
                                                                        "strided", "block",   "painted"};
    return kNames.at(size_t(pattern));
}

std::string_view level_name(int level) {
    constexpr std::array<std::string_view, kLevelCount> kNames = {"Attention without weights",
                                                                  "Trainable weights",
                                                                  "Causal mask",
                                                                  "Dropout",
                                                                  "Stacked heads",
                                                                  "Split heads",
                                                                  "GPT block"};
    return kNames.at(size_t(level - 1));
}

Settings level_settings(int level) {
    Settings s;
    s.level = level;
    s.scaled = level >= 2;
    s.causal = level >= 3;
    s.dropout = level == 4;
    if (level == 3 || level == 4) s.weight_seed = 789;
    return s;
}

Settings level_settings(int level, const Settings& before) {
    Settings s = level_settings(level);
    s.text = before.text;
    s.tokenizer = before.tokenizer;
    s.precision = before.precision;
    return s;
}

std::string_view precision_name(Precision precision) {
    constexpr std::array<std::string_view, kPrecisionCount> kNames = {"float32", "float16 storage",
                                                                      "float16 products"};
    return kNames.at(size_t(precision));
}

std::string_view precision_key(Precision precision) {
    constexpr std::array<std::string_view, kPrecisionCount> kKeys = {"f32", "f16", "f16-products"};
    return kKeys.at(size_t(precision));
}

std::string_view tokenizer_name(Tokenizer tokenizer) {
    constexpr std::array<std::string_view, kTokenizerCount> kNames = {"words", "characters", "bytes"};
    return kNames.at(size_t(tokenizer));
}

void toggle_key(Settings& s, uint32_t key) {
    const auto at = std::lower_bound(s.hidden_keys.begin(), s.hidden_keys.end(), key);
    if (at != s.hidden_keys.end() && *at == key)
        s.hidden_keys.erase(at);
    else
        s.hidden_keys.insert(at, key);
}

bool pattern_shows(const Settings& s, uint64_t i, uint64_t j, uint64_t rows, uint64_t keys) {
    switch (s.pattern) {
        case MaskPattern::padding:
            return j + std::max<uint64_t>(keys / 3, 1) < keys;
        case MaskPattern::prefix:
            return j <= i || j < (keys + 2) / 3;
        case MaskPattern::strided:
            return j <= i && (i - j) % 2 == 0;
        case MaskPattern::block:
            return i / 2 == j / 2;
        case MaskPattern::painted: {
            if (s.painted.size() == rows * keys) return s.painted[i * keys + j] != 0;
            const auto side = uint64_t(std::sqrt(double(s.painted.size())));
            if (side == 0 || side * side != s.painted.size() || side > rows || side > keys) return true;
            return s.painted[i * side / rows * side + j * side / keys] != 0;
        }
        default:
            return true;
    }
}

static std::vector<uint8_t> pattern_cells(const Settings& s, uint64_t rows, uint64_t keys) {
    if (s.pattern == MaskPattern::none) return {};
    // Paint belongs to one number of tokens.
    if (s.pattern == MaskPattern::painted)
        return s.painted.size() == rows * keys ? s.painted : std::vector<uint8_t>(rows * keys, 1);
    std::vector<uint8_t> cells(rows * keys);
    for (uint64_t i = 0; i < rows; ++i)
        for (uint64_t j = 0; j < keys; ++j) cells[i * keys + j] = pattern_shows(s, i, j, rows, keys);
    return cells;
}

std::vector<uint8_t> mask_cells(const Settings& s, uint64_t rows, uint64_t keys) {
    std::vector<uint8_t> cells = pattern_cells(s, rows, keys);
    for (const uint32_t key : s.hidden_keys) {
        if (key >= keys) break;
        if (cells.empty()) cells.assign(rows * keys, 1);
        for (uint64_t row = 0; row < rows; ++row) cells[row * keys + key] = 0;
    }
    return cells;
}

}  // namespace fovea::visualizer

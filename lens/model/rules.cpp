#include "files/locale_point.hpp"

#include <fovea/model/rules.hpp>

#include <fovea/model/torch_random.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace fovea {
namespace {

constexpr std::string_view kPatterns[] = {"none", "padding", "prefix", "strided", "block", "painted"};

bool window_shows(const AttentionRules& r, uint64_t i, uint64_t j) {
    const auto distance = int64_t(j) - int64_t(i);
    return (r.window_left < 0 || -distance <= r.window_left) &&
           (r.window_right < 0 || distance <= r.window_right);
}

bool painted_shows(const AttentionRules& r, uint64_t i, uint64_t j, uint64_t rows, uint64_t keys) {
    const PaintedMask& p = r.painted;
    if (p.rows == 0) {  // unknown size: the cells apply to the current size
        const uint64_t cell = i * keys + j;
        return cell >= p.cells.size() || p.cells[cell] != 0;
    }
    if (i < p.rows && j < p.keys) return p.cells[i * p.keys + j] != 0;
    AttentionRules under;
    under.window_left = r.window_left, under.window_right = r.window_right;
    set_mask_key(under, r.under);
    return rules_show(under, i, j, rows, keys);
}

}  // namespace

std::string_view mask_key(const AttentionRules& r) {
    if (r.pattern != MaskPattern::none) return kPatterns[size_t(r.pattern)];
    return r.windowed ? "window" : r.causal ? "causal" : "none";
}

bool set_mask_key(AttentionRules& r, std::string_view key) {
    const auto pattern = std::find(std::begin(kPatterns), std::end(kPatterns), key);
    const bool is_rule = key == "causal" || key == "window";
    if (pattern == std::end(kPatterns) && !is_rule) return false;
    r.pattern = is_rule ? MaskPattern::none : MaskPattern(int(pattern - std::begin(kPatterns)));
    r.causal = is_rule;
    r.windowed = key == "window";
    return true;
}

ScoreScale score_scale(const AttentionRules& r, uint64_t head_width) {
    const double divisor = r.scale == "auto"   ? std::sqrt(double(head_width))
                           : r.scale == "none" ? 1.0
                                               : std::strtod(files::for_strtod(r.scale).c_str(), nullptr);
    return ScoreScale::divided_by(divisor * r.temperature);
}

float alibi_slope(uint32_t head, uint64_t heads) {
    return float(std::exp2(-8.0 * double(head + 1) / double(heads)));
}

bool pattern_shows(const AttentionRules& r, uint64_t i, uint64_t j, uint64_t rows, uint64_t keys) {
    switch (r.pattern) {
        case MaskPattern::padding:
            return j + std::max<uint64_t>(keys / 3, 1) < keys;
        case MaskPattern::prefix:
            return j <= i || j < (keys + 2) / 3;
        case MaskPattern::strided:
            return j <= i && (i - j) % 2 == 0;
        case MaskPattern::block:
            return i / 2 == j / 2;
        case MaskPattern::painted:
            return painted_shows(r, i, j, rows, keys);
        default:
            return true;
    }
}

bool rules_show(const AttentionRules& r, uint64_t i, uint64_t j, uint64_t rows, uint64_t keys) {
    if (r.causal && j > i) return false;
    if (r.windowed && !window_shows(r, i, j)) return false;
    if (std::binary_search(r.hidden_keys.begin(), r.hidden_keys.end(), j)) return false;
    return pattern_shows(r, i, j, rows, keys);
}

bool hides(const AttentionRules& r) {
    return r.causal || r.windowed || r.pattern != MaskPattern::none || !r.hidden_keys.empty();
}

std::vector<uint8_t> mask_cells(const AttentionRules& r, uint64_t rows, uint64_t keys) {
    if (r.pattern == MaskPattern::none && r.hidden_keys.empty()) return {};
    std::vector<uint8_t> cells(rows * keys);
    for (uint64_t i = 0; i < rows; ++i)
        for (uint64_t j = 0; j < keys; ++j) cells[i * keys + j] = pattern_shows(r, i, j, rows, keys);
    for (const uint32_t key : r.hidden_keys)
        for (uint64_t i = 0; i < rows && key < keys; ++i) cells[i * keys + key] = 0;
    return cells;
}

std::vector<uint8_t> visible_cells(const AttentionRules& r, uint64_t rows, uint64_t keys) {
    std::vector<uint8_t> cells(rows * keys);
    for (uint64_t i = 0; i < rows; ++i)
        for (uint64_t j = 0; j < keys; ++j) cells[i * keys + j] = rules_show(r, i, j, rows, keys);
    return cells;
}

Result<std::vector<uint8_t>> keep_mask(const AttentionRules& r, uint64_t heads, uint64_t rows,
                                       uint64_t keys) {
    constexpr uint64_t kMaxCells = uint64_t{1} << 31;
    std::vector<uint8_t> keep;
    if (r.dropout_p <= 0) return keep;
    if (heads * rows * keys > kMaxCells)
        return Error{FOVEA_LIMIT_EXCEEDED, "p",
                     "dropout on " + std::to_string(heads * rows * keys) +
                         " weights is not supported; the limit is " + std::to_string(kMaxCells)};
    keep.resize(heads * rows * keys);
    TorchGenerator generator(r.dropout_seed);
    switch (r.dropout_random) {
        case DropoutRandom::native:
            generator.keep_mask_native(keep, r.dropout_p);
            break;
        case DropoutRandom::mkl:
            generator.keep_mask_mkl(keep, r.dropout_p);
            break;
        case DropoutRandom::counter:
            for (uint64_t cell = 0; cell < keep.size(); ++cell)
                keep[cell] =
                    uint8_t(foveaDropoutKeeps(float(r.dropout_p), r.dropout_seed, 0, cell / (rows * keys),
                                              cell / keys % rows, cell % keys));
    }
    return keep;
}

void apply_rules(const AttentionRules& r, FoveaAttentionDesc& call) {
    call.scale = score_scale(r, call.dim_qk).factor();
    call.softcap = float(r.softcap);
    if (call.align == FOVEA_ALIGN_DEFAULT) call.align = FOVEA_ALIGN_TOP_LEFT;
    if (r.alibi) call.flags |= FOVEA_FLAG_ALIBI;
    if (r.route == MaskRoute::after) return;
    if (r.causal) call.flags |= FOVEA_FLAG_CAUSAL;
    if (r.windowed) {
        call.flags |= FOVEA_FLAG_WINDOW;
        call.window_left = r.window_left, call.window_right = r.window_right;
    }
}

}  // namespace fovea

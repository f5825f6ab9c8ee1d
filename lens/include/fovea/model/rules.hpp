// The rules of one attention call: scale, softcap, masks, bias, dropout. They are part of a model's block and
// of a session. Only this file turns them into a FoveaAttentionDesc and into cells.
#pragma once

#include <fovea/fovea.hpp>
#include <fovea/model/linear.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// In the order of the choices in lens/model/tables/session.json.
enum class MaskPattern {
    none,
    padding,
    prefix,
    strided,
    block,
    painted
};                                       // causal and window are separate flags
enum class MaskRoute { before, after };  // the softmax
enum class DropoutRandom { native, mkl, counter };
enum class Precision { f32, f16, f16_inputs };

// Cells that were painted: 1 is visible, row by row. `rows` and `keys` say for how many tokens; both 0 (files
// before there was the key `side`): for as many as there are, and bits that are missing are visible.
struct PaintedMask {
    std::vector<uint8_t> cells;
    uint32_t rows = 0, keys = 0;
    friend bool operator==(const PaintedMask&, const PaintedMask&) = default;
};

// The rules for scores and weights of one attention call, as a reader sets them.
struct AttentionRules {
    std::string scale =
        "auto";  // scores are divided by the square root of the head's width, "none": by 1, or by a number
    double temperature = 1;  // and by this
    double softcap = 0;      // 0: none
    bool causal = false;
    bool windowed = false;
    int32_t window_left = 2, window_right = 0;  // -1: all keys of that side
    MaskPattern pattern = MaskPattern::none;
    PaintedMask painted;
    std::string under = "none";         // the mask, by its key, outside of what was painted
    std::vector<uint32_t> hidden_keys;  // rising; no query sees them
    MaskRoute route = MaskRoute::before;
    bool alibi = false;
    double dropout_p = 0;  // 0: none
    uint64_t dropout_seed = 123;
    DropoutRandom dropout_random = DropoutRandom::native;
    Precision precision = Precision::f32;

    friend bool operator==(const AttentionRules&, const AttentionRules&) = default;
};

// The mask as one word: the pattern, else "window", "causal" or "none". Setting it sets pattern, causal and
// windowed as the word says; false, and nothing changed, for another word.
std::string_view mask_key(const AttentionRules& rules);
bool set_mask_key(AttentionRules& rules, std::string_view key);

// Returns the divisor of the scores, temperature included.
ScoreScale score_scale(const AttentionRules& rules, uint64_t head_width);
// ALiBi's slope of one of `heads` heads, 2^(-8 (head + 1) / heads): the rule of its paper (Press et al.,
// 2022) for a power of two heads.
float alibi_slope(uint32_t head, uint64_t heads);

// pattern_shows() is true if the pattern lets the query attend to the key, or if there is no pattern.
// rules_show() also applies the causal mask, the window and the masked keys.
bool pattern_shows(const AttentionRules& rules, uint64_t row, uint64_t key, uint64_t rows, uint64_t keys);
bool rules_show(const AttentionRules& rules, uint64_t row, uint64_t key, uint64_t rows, uint64_t keys);
// True if the rules may mask anything.
bool hides(const AttentionRules& rules);
// Pattern and hidden keys as cells, 1 is visible; empty where there are none.
std::vector<uint8_t> mask_cells(const AttentionRules& rules, uint64_t rows, uint64_t keys);
// Every cell of the whole mask, 1 is visible: what a mask editor starts from.
std::vector<uint8_t> visible_cells(const AttentionRules& rules, uint64_t rows, uint64_t keys);

// Returns 1 for kept, 0 for dropped: [heads, rows, keys]; empty without dropout. Rejects more than 2^31
// cells.
Result<std::vector<uint8_t>> keep_mask(const AttentionRules& rules, uint64_t heads, uint64_t rows,
                                       uint64_t keys);

// Sets what needs no matrix: scale, softcap, causal, window and the flag for ALiBi, for the call's dim_qk.
// Masks are left out where the route applies them after the softmax. Cells, slopes, dropout and types are the
// caller's.
void apply_rules(const AttentionRules& rules, FoveaAttentionDesc& call);

}  // namespace fovea

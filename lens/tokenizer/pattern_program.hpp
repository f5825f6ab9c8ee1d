// The program that a pattern is compiled to.
#pragma once

#include "tokenizer/code_set.hpp"
#include "tokenizer/split_pattern.hpp"

#include <array>

namespace fovea {

enum class PatternPlace : uint8_t {
    line_begin,
    line_end,
    text_begin,
    text_end,
    last_line_end,
    search_begin,
    word_edge,
    no_word_edge
};

struct PatternStep {
    enum class Op : uint8_t {
        take,    // one character of `set`
        run,     // `least` to `most` characters of `set`
        fork,    // the next step first where `greedy`, else `to`; the other where that fails
        jump,    // to `to`
        place,   // true at `place`
        look,    // the steps from the next to `to` match ahead; look-behind: end here, `least` to `most`
                 // characters back
        atomic,  // the steps from the next to `to` match; they are not tried otherwise
        mark,    // remembers the place in `slot`
        moved,   // to `to` if the place is another than that of `slot`
        found
    };
    Op op = Op::found;
    bool greedy = true, behind = false, negative = false;
    PatternPlace place = PatternPlace::line_begin;
    uint32_t set = 0, slot = 0, to = 0;
    uint32_t least = 0, most = 0;
};
inline constexpr uint32_t kUnbounded = UINT32_MAX;

struct SplitPattern::Program {
    struct Set {
        CodeSet codes;
        std::array<bool, 128> ascii{};
    };
    std::vector<PatternStep> steps;
    std::vector<Set> sets;
    uint32_t slots = 0;
};

// Rejected as SplitPattern::compile() says.
Result<SplitPattern::Program> read_pattern(std::string_view pattern);

}  // namespace fovea

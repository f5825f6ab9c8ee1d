// A split pattern as a tree.
#pragma once

#include <algorithm>
#include <vector>

#include "tokenizer/pattern_program.hpp"

namespace fovea {

struct PatternNode {
    enum class Kind { set, sequence, choice, repeat, look, atomic, place } kind = Kind::sequence;
    std::vector<PatternNode> parts;
    CodeSet set;
    PatternPlace place = PatternPlace::line_begin;
    bool greedy = true, behind = false, negative = false;
    uint32_t least = 0, most = 0;  // bounds of a repeat

    // True if a match depends on what is around it.
    bool looks_around() const {
        return kind == Kind::look || kind == Kind::place ||
               std::any_of(parts.begin(), parts.end(),
                           [](const PatternNode& part) { return part.looks_around(); });
    }
    // Characters that a match has.
    std::pair<uint64_t, uint64_t> width() const {
        uint64_t low = 0, high = 0;
        if (kind == Kind::set) return {1, 1};
        if (kind == Kind::choice) low = UINT64_MAX;
        for (const PatternNode& part : parts) {
            const auto [least_of, most_of] = part.width();
            if (kind == Kind::choice) {
                low = std::min(low, least_of), high = std::max(high, most_of);
            } else if (kind == Kind::repeat) {
                low = least_of * least;
                high = most_of == 0 ? 0 : most == kUnbounded ? kUnbounded : most_of * most;
            } else if (kind == Kind::sequence || kind == Kind::atomic) {
                low += least_of, high += most_of;
            }
        }
        return {std::min<uint64_t>(low, kUnbounded), std::min<uint64_t>(high, kUnbounded)};
    }
};

// Reads a pattern as Oniguruma does. Errors name what is not supported, or has no end.
Result<PatternNode> read_pattern_tree(std::string_view pattern);

}  // namespace fovea

// How far apart two heads are, and which two a comparison is of.
#pragma once

#include "document/workbench.hpp"

namespace fovea::visualizer {

// How far the heads of two stages are apart; both have the same rows and columns.
struct HeadDifference {
    double largest = 0, mean = 0;  // |A - B| over cells where both are finite
    uint64_t row = 0, column = 0;  // position of the largest
    // How a row of weights differs: 0 is the same, ln 2 nothing in common.
    double jensen_shannon = 0;
};
HeadDifference difference_of(const Stage& a, uint32_t head_a, const Stage& b, uint32_t head_b, uint64_t row);

// True if both heads mask the same cells.
bool same_cells_hidden(const Stage& a, uint32_t head_a, const Stage& b, uint32_t head_b);

// The two parts of a comparison: two heads of the present result, or the kept one and the present one. If
// they cannot be compared, `why_not` is the reason and the other fields are not valid.
struct Comparison {
    const Stage *a = nullptr, *b = nullptr;
    uint32_t head_a = 0, head_b = 0;
    std::string why_not;
};
Comparison comparison_of(const Workbench& bench);

// Describes on each side the settings that differ between A and B: {"no mask", "causal mask"}. Empty if the
// results cannot differ.
std::pair<std::string, std::string> differing_settings(const Settings& a, const Settings& b);

}  // namespace fovea::visualizer

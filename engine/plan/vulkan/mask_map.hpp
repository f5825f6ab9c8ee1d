// The map of mask and bias that flash may make first: blocks that are hidden as a whole are skipped, in clear
// ones the matrices are not read. Results are the same bits with and without it.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

// Decides by the tile of `f` if a map is likely to pay off, and fills f.mask_map except for its offset.
void choose_mask_map(const FoveaPlan_T& plan, FlashPlan& f);

// The size of the map for a slice of so many key/value heads and queries; 0 without a map.
uint64_t mask_map_bytes(const FoveaPlan_T& plan, const FlashPlan& f, uint64_t heads_kv, uint64_t queries);

void explain_mask_map(const MaskMapPlan& map, TextSink& text);

}  // namespace fovea

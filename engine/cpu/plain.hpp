// Every operation in float32 with plain loops: kernel FOVEA_KERNEL_PLAIN, the measure of what a computation
// in the same precision may err, and the reference of the fast kernels' bit-for-bit tests. See reference.hpp.
#pragma once

#include "problem/backward.hpp"
#include "problem/map_tile.hpp"
#include "problem/problem.hpp"
#include "problem/row_parts.hpp"
#include "reference/row_run.hpp"

namespace fovea::plain {

uint64_t attention_scratch_bytes(const Problem& problem);
void attention(const Problem& problem, const reference::RowRun& run);
uint64_t backward_scratch_bytes(const Problem& problem);
void backward(const Problem& problem, const Backward& backward, const reference::RowRun& run);
uint64_t map_tile_scratch_bytes(const Problem& problem, const MapTile& tile);
void map_tile(const Problem& problem, const MapTile& tile, const reference::RowRun& run);
void rope(const FoveaRopeDesc& desc, const reference::RowRun& run);
void linear(const FoveaLinearDesc& desc, const reference::RowRun& run);
void norm(const NormDesc& desc, const reference::RowRun& run);
void pointwise(const PointwiseDesc& desc, const reference::RowRun& run);
void merge(const FoveaMergeDesc& desc, const reference::RowRun& run);

}  // namespace fovea::plain

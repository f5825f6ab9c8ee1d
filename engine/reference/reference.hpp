// Every operation in float64 with plain loops, rounded once on output: the reference of every test, and
// kernel FOVEA_KERNEL_REFERENCE of attention. Stateless; safe from any thread on disjoint rows.
#pragma once

#include "problem/backward.hpp"
#include "problem/map_tile.hpp"
#include "problem/problem.hpp"
#include "problem/row_parts.hpp"
#include "reference/row_run.hpp"

namespace fovea::reference {

// Scratch of one worker in RowRun, a multiple of 64 bytes. What has no such function needs none.
uint64_t attention_scratch_bytes(const Problem& problem);

// Rows are numbered (b, h, i) with i fastest; writes every requested output of the rows of `run`.
void attention(const Problem& problem, const RowRun& run);

// Parts of a backward call, numbered as BackwardParts says. `problem` and `backward` as make_backward leaves
// them.
uint64_t backward_scratch_bytes(const Problem& problem);
void backward(const Problem& problem, const Backward& backward, const RowRun& run);

// Rows of pixels, numbered (head, y). `problem` and `tile` as make_map_tile leaves them.
uint64_t map_tile_scratch_bytes(const Problem& problem, const MapTile& tile);
void map_tile(const Problem& problem, const MapTile& tile, const RowRun& run);

// Descriptions as make_rope, make_linear and make_merge leave them. Rows: (b, h, l), or of X.
void rope(const FoveaRopeDesc& desc, const RowRun& run);
void linear(const FoveaLinearDesc& desc, const RowRun& run);
void norm(const NormDesc& desc, const RowRun& run);
void pointwise(const PointwiseDesc& desc, const RowRun& run);
void merge(const FoveaMergeDesc& desc, const RowRun& run);

}  // namespace fovea::reference

// The loops of attention_loops.hpp, backward_loops.hpp, map_tile_loops.hpp and operation_loops.hpp over a run
// of rows, for one type of arithmetic.
#pragma once

#include "reference/attention_loops.hpp"
#include "reference/backward_loops.hpp"
#include "reference/map_tile_loops.hpp"
#include "reference/operation_loops.hpp"
#include "reference/row_run.hpp"

namespace fovea::reference {

template <class Real>
uint64_t scratch_bytes_of(const Problem& problem) {
    return align_up(AttentionLoops<Real>::scratch_count(problem) * sizeof(Real), 64);
}

template <class Real>
void run_attention(const Problem& problem, const RowRun& run) {
    const AttentionLoops<Real> loops(problem, run.bindings);
    const uint64_t scratch_bytes = scratch_bytes_of<Real>(problem);
    for_each_row(run, [&](uint64_t row, uint32_t worker) {
        loops.compute_row(row, reinterpret_cast<Real*>(run.scratch + worker * scratch_bytes));
    });
}

template <class Real>
uint64_t backward_scratch_bytes_of(const Problem& problem) {
    return align_up(BackwardLoops<Real>::scratch_count(problem) * sizeof(Real), 64);
}

template <class Real>
void run_backward(const Problem& problem, const Backward& backward, const RowRun& run) {
    const BackwardLoops<Real> loops(problem, backward, run.bindings);
    const uint64_t scratch_bytes = backward_scratch_bytes_of<Real>(problem);
    for_each_row(run, [&](uint64_t part, uint32_t worker) {
        loops.compute_part(part, reinterpret_cast<Real*>(run.scratch + worker * scratch_bytes));
    });
}

template <class Real>
void run_map_tile(const Problem& problem, const MapTile& tile, const RowRun& run) {
    const MapTileLoops<Real> loops(problem, tile, run.bindings);
    const uint64_t scratch_bytes = MapTileLoops<Real>::scratch_bytes(problem, tile);
    for_each_row(run, [&](uint64_t row, uint32_t worker) {
        loops.compute_pixel_row(row, run.scratch + worker * scratch_bytes);
    });
}

template <class Real>
void run_rope(const FoveaRopeDesc& desc, const RowRun& run) {
    for_each_row(run, [&](uint64_t row, uint32_t) { rope_row<Real>(desc, run.bindings, row); });
}

template <class Real>
void run_linear(const FoveaLinearDesc& desc, const RowRun& run) {
    for_each_row(run, [&](uint64_t row, uint32_t) { linear_row<Real>(desc, run.bindings, row); });
}

template <class Real>
void run_norm(const NormDesc& desc, const RowRun& run) {
    for_each_row(run, [&](uint64_t row, uint32_t) { norm_row<Real>(desc, run.bindings, row); });
}

template <class Real>
void run_pointwise(const PointwiseDesc& desc, const RowRun& run) {
    for_each_row(run, [&](uint64_t row, uint32_t) { pointwise_row<Real>(desc, run.bindings, row); });
}

template <class Real>
void run_merge(const FoveaMergeDesc& desc, const RowRun& run) {
    for_each_row(run, [&](uint64_t row, uint32_t) { merge_row<Real>(desc, run.bindings, row); });
}

}  // namespace fovea::reference

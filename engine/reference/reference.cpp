#include "reference/reference.hpp"

#include "reference/run_loops.hpp"

namespace fovea::reference {

uint64_t attention_scratch_bytes(const Problem& problem) { return scratch_bytes_of<double>(problem); }

void attention(const Problem& problem, const RowRun& run) { run_attention<double>(problem, run); }

uint64_t backward_scratch_bytes(const Problem& problem) { return backward_scratch_bytes_of<double>(problem); }

void backward(const Problem& problem, const Backward& backward, const RowRun& run) {
    run_backward<double>(problem, backward, run);
}

uint64_t map_tile_scratch_bytes(const Problem& problem, const MapTile& tile) {
    return MapTileLoops<double>::scratch_bytes(problem, tile);
}
void map_tile(const Problem& problem, const MapTile& tile, const RowRun& run) {
    run_map_tile<double>(problem, tile, run);
}

void rope(const FoveaRopeDesc& desc, const RowRun& run) { run_rope<double>(desc, run); }
void linear(const FoveaLinearDesc& desc, const RowRun& run) { run_linear<double>(desc, run); }
void norm(const NormDesc& desc, const RowRun& run) { run_norm<double>(desc, run); }
void pointwise(const PointwiseDesc& desc, const RowRun& run) { run_pointwise<double>(desc, run); }
void merge(const FoveaMergeDesc& desc, const RowRun& run) { run_merge<double>(desc, run); }

}  // namespace fovea::reference

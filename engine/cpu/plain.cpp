#include "cpu/plain.hpp"

#include "reference/run_loops.hpp"

namespace fovea::plain {

uint64_t attention_scratch_bytes(const Problem& problem) {
    return reference::scratch_bytes_of<float>(problem);
}

void attention(const Problem& problem, const reference::RowRun& run) {
    reference::run_attention<float>(problem, run);
}
uint64_t backward_scratch_bytes(const Problem& problem) {
    return reference::backward_scratch_bytes_of<float>(problem);
}

void backward(const Problem& problem, const Backward& backward, const reference::RowRun& run) {
    reference::run_backward<float>(problem, backward, run);
}

uint64_t map_tile_scratch_bytes(const Problem& problem, const MapTile& tile) {
    return reference::MapTileLoops<float>::scratch_bytes(problem, tile);
}

void map_tile(const Problem& problem, const MapTile& tile, const reference::RowRun& run) {
    reference::run_map_tile<float>(problem, tile, run);
}
void rope(const FoveaRopeDesc& desc, const reference::RowRun& run) { reference::run_rope<float>(desc, run); }
void linear(const FoveaLinearDesc& desc, const reference::RowRun& run) {
    reference::run_linear<float>(desc, run);
}
void norm(const NormDesc& desc, const reference::RowRun& run) { reference::run_norm<float>(desc, run); }
void pointwise(const PointwiseDesc& desc, const reference::RowRun& run) {
    reference::run_pointwise<float>(desc, run);
}
void merge(const FoveaMergeDesc& desc, const reference::RowRun& run) {
    reference::run_merge<float>(desc, run);
}

}  // namespace fovea::plain

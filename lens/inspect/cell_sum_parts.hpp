// Builds the sums of a cell, for cells of every part of a layer.
#pragma once

#include <fovea/inspect/cell_sum.hpp>

namespace fovea {

// Adds the products in their order, each rounded to float32, and then the added term.
void add_up(CellSum& sum);
// "row 3 of inputs"
std::string place_text(const char* what, uint64_t index, std::string_view of);
// Explains a row, called `from`, times the layer's weights, called `weight`, for one of its outputs; none if
// the layer's matrix is not available in float32.
std::optional<CellSum> linear_sum(std::span<const float> row, const std::string& from, uint64_t row_index,
                                  const Linear& layer, const std::string& weight, uint64_t output);
// Appends to `how` where a published model's files store what a part of the layer ("query", "output", "up")
// uses for one of its outputs.
void tell_origin(const LayerNumbers& of, std::string_view part, uint64_t output, CellSum& sum);

// Explains cells after attention's output and the norms: residual sums, feed-forward part, logits and
// probabilities. Returns nothing for other stages.
std::optional<CellSum> block_sum(const LayerNumbers& of, StageId stage, uint64_t row, uint64_t column);

}  // namespace fovea

// The cells of other stages that the picked cell is computed from, to be highlighted in their matrices.
#pragma once

#include "document/attention_result.hpp"
#include "document/view_state.hpp"

namespace fovea::visualizer {

struct CellInput {
    const Stage* stage = nullptr;  // a stage of the same result
    uint32_t head = 0;
    CellRect cells;
};

// Returns the head of a stage with fewer heads than the `heads` of the call, which share its heads.
uint32_t shared_head(const Stage& stage, uint64_t head, uint64_t heads);

// In the order in which the cell's sum names them: a row of the first goes with a row or column of the
// second. Empty for what is given, such as inputs, weights of layers and keep masks, and for what a result
// has no stages of.
std::vector<CellInput> cell_inputs(const AttentionResult& of, const Stage& stage, uint32_t head, uint64_t row,
                                   uint64_t column);

// "row 3 of queries", "inputs[1, 0]"; with more than one head in the stage also which.
std::string input_text(const CellInput& input);

}  // namespace fovea::visualizer

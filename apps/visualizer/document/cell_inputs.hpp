// The cells of other stages that the picked cell is computed from, to be highlighted in their matrices. The
// path of a picked token through a layer, from its vector to the output, has the matrices side by side.
#pragma once

#include "document/attention_result.hpp"
#include "document/view_state.hpp"

#include <string>
#include <vector>

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

// A matrix of the way.
struct PathMatrix {
    const Stage* stage = nullptr;
    uint32_t head = 0;            // head of the stage
    size_t column = 0;            // from left to right; matrices of one column are stacked
    std::vector<CellRect> cells;  // cells of the picked token; empty: none
    std::vector<size_t> from;     // the matrices that it is computed from, by their place in the list
};

inline constexpr size_t kMaxPathColumns = 8;

// In the order of the computation. A cell of queries and keys is about two tokens: the one that asks and the
// one that answers. A row of keys or values is about what answers, any other row of a token about what asks.
// A cell of no token, as of a layer's weights, lights nothing.
std::vector<PathMatrix> token_path(const AttentionResult& of, const Stage& picked, uint32_t head,
                                   uint64_t row, uint64_t column);

// "row 1 and 2 of inputs; row 1 of queries; ..."
std::string path_text(const std::vector<PathMatrix>& path);

}  // namespace fovea::visualizer

// Explains a cell of a stage other than a matrix of queries and keys as the sum that gives it: a row of one
// stage times a column of another, a norm, a residual sum. Cells of queries and keys have a Derivation.
#pragma once

#include <fovea/model/session.hpp>
#include <fovea/model/transformer.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// One head of a stage, wherever a program stores its values.
struct StageNumbers {
    std::span<const float> values;  // [rows, columns]; empty if the layer has no such stage or head
    uint64_t heads = 1, rows = 0, columns = 0;
};

// A layer and the values of its stages.
struct LayerNumbers {
    const Model* model =
        nullptr;  // with `block` null: queries, keys and values are given, no model made them
    const Block* block = nullptr;
    std::span<const std::string> tokens;
    std::vector<uint32_t> changed_heads;  // heads whose contexts were changed and do not follow from their
                                          // weights and values
    std::function<StageNumbers(StageId id, uint32_t head)> stage;
    // Where a published model's files hold what a part ("query", "up") has for one of its outputs; or none.
    std::function<std::string(std::string_view part, uint64_t output)> origin;
};

// A cell as a sum of products.
struct CellSum {
    // One product of the sum.
    struct Term {
        std::string name;  // a token, or a column's number
        float a = 0, b = 0, product = 0;
    };
    std::string how;   // "row 1 of inputs times column 0 of w_query"
    std::string a, b;  // the two operands, as headings of columns
    std::vector<Term> terms;
    std::string added_name;  // the term added after the products: "bias"; empty if there is none
    float added = 0;
    float sum = 0;       // in float32, term by term
    std::string ending;  // the last operation on the sum: "the rows' largest score and the sum's logarithm"
    float result = 0;    // the value after the last operation, or the sum if there is none
    std::vector<CellSum> factors;  // further sums that the last operation uses, such as a gate's
};

// Returns nothing for stages that are not sums: inputs and weight matrices.
std::optional<CellSum> cell_sum(const LayerNumbers& of, StageId stage, uint32_t head, uint64_t row,
                                uint64_t column);

// The terms in their order or the largest products first; of more than `most` the largest.
std::vector<size_t> shown_terms(const CellSum& sum, size_t most, bool by_size);

// The same as lines: "queries[1, 0] = 0.4306: ...".
std::string cell_sum_text(const CellSum& sum, std::string_view stage, uint64_t row, uint64_t column);

}  // namespace fovea

// A cell of a stage that is no matrix of queries and keys, as the sum that it is: a row of one stage times a
// column of another, a norm's, a residual sum. Cells of queries and keys have a Derivation.
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

// One head of a stage, wherever a program holds its numbers.
struct StageNumbers {
    std::span<const float> values;  // [rows, columns]; empty: there is no such stage or head
    uint64_t heads = 1, rows = 0, columns = 0;
};

// A layer and the numbers of its stages.
struct LayerNumbers {
    const Model* model =
        nullptr;  // with `block` null: queries, keys and values are given, no model made them
    const Block* block = nullptr;
    std::span<const std::string> tokens;
    std::vector<uint32_t> changed_heads;  // whose contexts are not those of their weights and values
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
    std::string a, b;  // what the factors are, as heads of columns
    std::vector<Term> terms;
    std::string added_name;  // what is added behind the products: "bias"; empty: nothing
    float added = 0;
    float sum = 0;       // in float32, term by term
    std::string ending;  // what becomes of the sum: "the rows' largest score and the sum's logarithm"
    float result = 0;    // of the ending; the sum where there is none
    std::vector<CellSum> factors;  // sums of their own that the ending takes in: a gate's
};

// None for stages that are no sums: inputs and matrices of weights.
std::optional<CellSum> cell_sum(const LayerNumbers& of, StageId stage, uint32_t head, uint64_t row,
                                uint64_t column);

// The terms in their order or the largest products first; of more than `most` the largest.
std::vector<size_t> shown_terms(const CellSum& sum, size_t most, bool by_size);

// The same as lines: "queries[1, 0] = 0.4306: ...".
std::string cell_sum_text(const CellSum& sum, std::string_view stage, uint64_t row, uint64_t column);

}  // namespace fovea

// A cell of a stage that is no matrix of queries and keys, as the sum that it is: a row of one stage times a
// column of another. Cells of queries and keys have a Derivation.
#pragma once

#include "model/attention_result.hpp"

namespace fovea::visualizer {

struct CellSum {
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
std::optional<CellSum> cell_sum(const AttentionResult& of, const Stage& stage, uint32_t head, uint64_t row,
                                uint64_t column);

// The same as lines: "queries[1, 0] = 0.4306: ...".
std::string cell_sum_text(const CellSum& sum, const Stage& stage, uint64_t row, uint64_t column);

}  // namespace fovea::visualizer

// The error rule of tests/support/verdict.hpp for the operations beside attention: row by row
//
//     max |got - exact|  <=  2 * max |plain - exact|  +  floor
//
// `exact` is the float64 reference, `plain` the float32 plain loops, and the floor a few roundings of the sum
// of the magnitudes that meet in an element (the reference on the inputs' absolute values), because a short
// row can be lucky in the plain computation. Elements that belong to no row must be untouched.
#pragma once

#include "operations/operation_runner.hpp"

#include <string>
#include <vector>

namespace fovea::test {

// Y of the three computations by element: exact, plain and magnitudes as float32, got in its own type.
struct OperationResults {
    const Bytes *exact, *plain, *magnitudes, *got;
    FoveaDtype y_type;
    FoveaPrecision precision;
    std::vector<int64_t> rows;  // first elements
    uint32_t columns;
};

// Empty if right, else the first wrong row. `worst_share` grows to the largest part of a tolerance used up.
std::string judge_operation(const OperationResults& results, double& worst_share);

float element_of(const Bytes& bytes, FoveaDtype type, int64_t element);

}  // namespace fovea::test

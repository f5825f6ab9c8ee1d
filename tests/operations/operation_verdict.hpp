// The error rule of tests/support/verdict.hpp for the operations other than attention: row by row
//
//     max |got - exact|  <=  2 * max |plain - exact|  +  floor
//
// `exact` is the float64 reference, `plain` the float32 plain loops, and the floor a few roundings of the sum
// of the magnitudes that meet in an element (the reference on the inputs' absolute values), because a short
// row can be lucky in the plain computation. Elements that belong to no row must be untouched.
//
// If operands may be rounded to float16, u = 2^-11 each, a product is off by at most (2u + u^2) |x w|, but a
// row's sum by far less, as its products err in both directions. So the rounding is carried out: the
// reference on rounded X, on rounded W and on both says what it comes to in this very row. The floor grows by
// twice the largest of them, as a kernel may round some of the operands and leave others, and by no more than
// the bound.
#pragma once

#include "operations/operation_runner.hpp"

#include <string>
#include <vector>

namespace fovea::test {

// Y of the three computations by element: exact, plain and magnitudes as float32, got in its own type.
struct OperationResults {
    const Bytes *exact, *plain, *magnitudes, *got;
    FoveaDtype y_type;
    std::vector<Bytes> rounded;  // exact results with rounded operands; empty: none may be rounded
    std::vector<int64_t> rows;   // first elements
    uint32_t columns;
};

// Empty if right, else the first wrong row. `worst_share` grows to the largest part of a tolerance used up.
std::string judge_operation(const OperationResults& results, double& worst_share);

float element_of(const Bytes& bytes, FoveaDtype type, int64_t element);

}  // namespace fovea::test

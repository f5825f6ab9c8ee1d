// The error rule, in one place. A result is right if, row by row and for every output asked for,
//
//     max |got - exact|  <=  2 * max |plain - exact|  +  floor
//
// where `exact` is the float64 reference, `plain` the float32 plain loops on the same inputs, both maxima are
// over the row, and the floor is a few roundings of the largest number that the row's logits are made of,
// carried to the output (a row of few elements can be lucky in the plain computation), and the error of
// rounded operands if the description allows them. Never a mean: one wrong row fails. NaN and infinity must
// be at the same places as in the reference. A row that sees no key must be bit for bit what fovea.h says,
// and every byte that belongs to no element must be untouched.
#pragma once

#include "support/executor.hpp"

#include <string>
#include <vector>

namespace fovea::test {

// The expected results of a case. `exact` holds o as float32 whatever the description's o_type.
struct Oracle {
    Tensors exact, plain;
    // Per row (b, h, i): the roundings of a logit in units of 2^-24; the additional error of operands rounded
    // to float16 in units of 2^-11; the largest |v| of its head.
    std::vector<float> logit_units, half_units, value_max;
};

// `inputs` must have zeros, not poison, in the unused slots.
Result<Oracle> make_oracle(const Case& c, const Tensors& inputs);

struct Verdict {
    bool ok = true;
    std::string text;        // the first row that is wrong: output, place, expected, got, tolerance
    double worst_share = 0;  // the largest fraction of its tolerance that a row used
};
Verdict judge(const Case& c, const Oracle& oracle, const Outcome& outcome);

}  // namespace fovea::test

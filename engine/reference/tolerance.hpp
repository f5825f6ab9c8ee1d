// The tolerances of results against the float64 reference, for the tests and for foveaCheckDevice. Row by row
//
//     max |got - exact|  <=  2 * max |plain - exact|  +  floor
//
// where `plain` are float32 plain loops on the same inputs. The floor is a few roundings of the largest term
// of the row: a short row can be lucky in the plain computation.
#pragma once

#include "problem/problem.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::reference {

constexpr double kRounding = 0x1p-24;   // half a unit in the last place of float32, relative
constexpr double kSmallest = 0x1p-126;  // below it a device may take float32 values for zero
constexpr double kFlushed = 0x1p-125;   // below it a kernel's exp may be zero
constexpr double kFloorRoundings = 8;   // for operations other than attention

// The relative rounding error of an operand.
constexpr double input_rounding(FoveaPrecision precision) {
    return precision == FOVEA_PRECISION_F16_INPUTS    ? 0x1p-11
           : precision == FOVEA_PRECISION_BF16_INPUTS ? 0x1p-8
                                                      : 0;
}

// The error of rounding a float32 result, at most `largest` in magnitude, to `type`. It is half a unit in the
// last place, also for subnormal results.
constexpr double storing_error(FoveaDtype type, double largest) {
    if (type == FOVEA_F16) return 0x1p-11 * largest + 0x1p-25;
    if (type == FOVEA_BF16) return 0x1p-8 * largest + kSmallest;
    return 0;
}

// The products of a row with the keys that it sees.
struct RowProducts {
    int keys = 0;          // visible keys, counted up to kFewKeys + 1
    double magnitude = 0;  // the largest sum of |q_n k_n|, which no partial sum of a product exceeds
};
constexpr int kFewKeys = 8;

// Roundings of a product of D elements, in units of 2^-24 of the sum A of its terms' magnitudes. Partial sums
// grow to at most A, so that step n rounds by at most 2^-24 n A / D. That is a walk with a deviation of
// 2^-24 A sqrt(sum (n / D)^2 / 3): sqrt(D) / 3 units where each is at its most, and sqrt(D) / 4 on
// average over the places of a number between two powers of two. Over many keys the plain loops show what
// that comes to. Over a few they may be lucky with all: there it is three deviations.
// Then the score is scaled, moved to powers of two, moved back and kept as lse. These are four roundings of
// up to a unit of A, each with a deviation of at most 1 / sqrt(3). Three deviations of their sum are 3.5.
// With half a unit of the products this is the least that is allowed.
inline double units_of_score(const RowProducts& row, uint32_t dim) {
    constexpr double kLeast = 4;
    return row.keys > kFewKeys ? kLeast : std::max(kLeast, 0.75 * std::sqrt(double(dim)));
}

// The parts that a row's logits are made of.
struct RowLogits {
    uint64_t len_kv;
    double sink;   // |sink|; 0: none
    double added;  // the largest magnitude that is added to a score
    double softcap, scale;
    uint32_t dim;
    RowProducts products;
};
// The roundings of a logit of the row, in units of 2^-24. The functions of a device, exp and tanh, may be off
// by units that grow with their argument.
inline double logit_units(const RowLogits& row) {
    return 8 + 2 * std::log(1 + double(row.len_kv)) + 2 * row.sink + 2 * row.added + 4 * row.softcap +
           units_of_score(row.products, row.dim) * row.scale * row.products.magnitude;
}
// The additional error of rounded operands, in units of input_rounding: (1 + r)^2 - 1 of each term, over r.
inline double rounded_units(FoveaPrecision precision, double scale, const RowProducts& row) {
    return (2 + input_rounding(precision)) * scale * row.magnitude;
}

// Floors of a row; `units`: the error of its logits. The weights and the values are operands of o.
inline double output_floor(double units, FoveaPrecision precision, double value_max, FoveaDtype stored,
                           double largest) {
    return (units + 2 * input_rounding(precision) + kSmallest) * value_max + storing_error(stored, largest);
}
inline double lse_floor(double units, double largest) { return units + 4 * kRounding * largest; }
inline double tile_weight_tolerance(double logit_units) { return 16 * kRounding * (logit_units + 1); }

inline double gradient_tolerance(double plain_error, double magnitude, double largest, FoveaDtype stored) {
    return 2 * plain_error + kRounding * (magnitude + 2 * largest) + 4 * kSmallest +
           storing_error(stored, largest);
}

inline double operation_tolerance(double plain_error, double magnitude, double largest, FoveaDtype stored) {
    return 2 * plain_error + kFloorRoundings * kRounding * magnitude + storing_error(stored, largest);
}

}  // namespace fovea::reference

// The end of a row's online softmax: from the running maximum and sum to the divisor and the log-sum-exp.
#pragma once

#include <cmath>
#include <limits>

namespace fovea::cpu {

constexpr double kLn2 = 0.69314718055994530942;

struct RowEnd {
    float factor;  // multiplier of the row's sums of weighted values
    float lse;     // 0 unless asked for
};

// `sum` is the sum of exp(x - max) over the visible logits x. `sink`: null if there is none.
inline RowEnd end_row(double max, float sum, const float* sink, bool with_lse) {
    if (sum == 0) return {0, sink ? *sink : -std::numeric_limits<float>::infinity()};  // no key is visible
    if (!sink) return {1.0f / sum, with_lse ? float(max + std::log(double(sum))) : 0.0f};
    const double top = *sink > max ? double(*sink) : max;
    const double shrink = std::exp(max - top), total = sum * shrink + std::exp(*sink - top);
    return {float(shrink / total), with_lse ? float(top + std::log(total)) : 0.0f};
}

}  // namespace fovea::cpu

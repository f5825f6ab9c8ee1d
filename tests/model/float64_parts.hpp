// Parts of a transformer in float64, in plain loops that share nothing with the library.
#pragma once

#include <fovea/model/transformer.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fovea {

using Matrix = std::vector<std::vector<double>>;

inline Matrix times(const Matrix& x, const Linear& l) {
    if (l.weight.rank() != 2) return x;
    Matrix y(x.size(), std::vector<double>(l.d_out()));
    for (size_t i = 0; i < x.size(); ++i)
        for (uint64_t o = 0; o < l.d_out(); ++o) {
            y[i][o] = l.has_bias() ? double(l.bias.values[o]) : 0.0;
            for (uint64_t c = 0; c < l.d_in(); ++c)
                y[i][o] += x[i][c] *
                           double(l.layout == WeightLayout::out_in ? l.weight.row(o)[c] : l.weight.row(c)[o]);
        }
    return y;
}

inline double act(Activation a, double x) {
    if (a == Activation::gelu) return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    if (a == Activation::gelu_tanh)
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return a == Activation::silu ? x / (1 + std::exp(-x)) : std::max(x, 0.0);
}

inline void softmax(std::vector<double>& row) {
    double top = -INFINITY, sum = 0;
    for (const double v : row) top = std::max(top, v);
    for (double& v : row) sum += v = std::exp(v - top);
    for (double& v : row) v /= sum;
}

}  // namespace fovea

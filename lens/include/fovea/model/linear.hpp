// The parts that projections are made of: linear layers, rotary positions, the scale of scores.
#pragma once

#include <fovea/files/checkpoint.hpp>
#include <fovea/model/f32_tensor.hpp>
#include <fovea/model/torch_random.hpp>

#include <memory>
#include <vector>

namespace fovea {

// scores / divisor or scores * factor, the number rounded to float32 once. The engine always multiplies.
struct ScoreScale {
    double value = 1.0;
    bool divides = false;

    static ScoreScale divided_by(double divisor) { return {divisor, true}; }
    static ScoreScale times(double factor) { return {factor, false}; }
    float factor() const { return static_cast<float>(divides ? 1.0 / value : value); }
    friend bool operator==(const ScoreScale&, const ScoreScale&) = default;
};

enum class WeightLayout { out_in, in_out };  // How the weight of a linear layer is stored.

// y = x W^T + b (nn.Linear, out_in) or y = x W + b (Conv1D and plain parameters, in_out).
struct Linear {
    F32Tensor weight;
    WeightLayout layout = WeightLayout::out_in;
    F32Tensor bias{Shape{0}};  // [d_out], or empty
    // In place of the weight's values, which are then empty: the matrix as its file stores it, out_in. It is
    // multiplied as it is.
    std::shared_ptr<const StoredWeight> stored;

    uint64_t d_in() const { return weight.shape[layout == WeightLayout::out_in ? 1 : 0]; }
    uint64_t d_out() const { return weight.shape[layout == WeightLayout::out_in ? 0 : 1]; }
    bool has_bias() const { return !bias.values.empty(); }
};

// Weights as nn.Linear(d_in, d_out, bias) starts with.
Linear make_linear(TorchGenerator& generator, uint64_t d_in, uint64_t d_out, bool bias);

// Rotary embedding. Of the first R columns of a row, pair n is (n, n + R/2), or (2n, 2n + 1) when
// interleaved; row i is rotated by the angles of position first_position + i, pair n by the position times
// theta^(-2n/R) / divisors[n]. Columns from R on stay as they are.
struct Rope {
    double theta = 10000.0;
    bool interleaved = false;
    uint64_t first_position = 0;
    uint64_t width = 0;            // R, even; 0: all columns
    std::vector<double> divisors;  // [R / 2], as longer contexts are reached by; empty: 1
    double magnitude = 1;          // scale of the rotated columns (YaRN, Peng et al., 2023)

    uint64_t rotated(uint64_t columns) const { return width == 0 ? columns : width; }
};
// Tables of cos and sin of rows of `dim` columns, magnitude included: [len, R / 2] each. Angles are taken in
// float64, their cosines and sines rounded once.
struct RopeTables {
    F32Tensor cos, sin;
};
RopeTables rope_tables(const Rope& rope, uint64_t len, uint64_t dim);

}  // namespace fovea

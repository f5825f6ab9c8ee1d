#include <fovea/model/strict.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fovea::strict {

float exp(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }
float tanh(float x) { return static_cast<float>(std::tanh(static_cast<double>(x))); }

float dot(std::span<const float> a, std::span<const float> b) {
    float total = 0.0f;
    for (size_t i = 0; i < a.size(); ++i) {
        const float product = a[i] * b[i];
        total += product;
    }
    return total;
}

float sum(std::span<const float> values) {
    std::array<float, 4> partial{};
    const size_t grouped = values.size() - values.size() % partial.size();
    for (size_t i = 0; i < values.size(); ++i) {
        partial[i < grouped ? i % partial.size() : 0] += values[i];
    }
    return ((partial[0] + partial[1]) + partial[2]) + partial[3];
}

void softmax(std::span<const float> scores, std::span<float> weights) {
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    const float largest = scores.empty() ? kHidden : *std::max_element(scores.begin(), scores.end());
    if (largest == kHidden) {
        std::fill(weights.begin(), weights.end(), 0.0f);
        return;
    }
    for (size_t j = 0; j < scores.size(); ++j) weights[j] = exp(scores[j] - largest);
    const float reciprocal = 1.0f / sum(weights);
    for (float& weight : weights) weight *= reciprocal;
}

F32Tensor product_transposed(const F32Tensor& a, const F32Tensor& b) {
    const uint64_t rows = a.shape[a.rank() - 2];
    const uint64_t columns = b.shape[b.rank() - 2];
    Shape shape = a.shape;
    shape.back() = columns;
    F32Tensor result(std::move(shape));
    for (uint64_t row = 0; row < a.rows(); ++row) {
        const uint64_t first_of_b = b.rows() == columns ? 0 : row / rows * columns;
        for (uint64_t j = 0; j < columns; ++j) result.row(row)[j] = dot(a.row(row), b.row(first_of_b + j));
    }
    return result;
}

F32Tensor product(const F32Tensor& a, const F32Tensor& b) { return product_transposed(a, transposed(b)); }

F32Tensor linear(const F32Tensor& x, const Linear& layer) {
    F32Tensor y =
        layer.layout == WeightLayout::out_in ? product_transposed(x, layer.weight) : product(x, layer.weight);
    for (uint64_t row = 0; layer.has_bias() && row < y.rows(); ++row)
        for (uint64_t j = 0; j < y.columns(); ++j) y.row(row)[j] += layer.bias.values[j];
    return y;
}

F32Tensor rotated(F32Tensor x, const Rope& rope) {
    const uint64_t tokens = x.shape[x.rank() - 2], pairs = rope.rotated(x.columns()) / 2;
    const RopeTables tables = rope_tables(rope, tokens, x.columns());
    for (uint64_t row = 0; row < x.rows(); ++row) {
        const auto cos = tables.cos.row(row % tokens), sin = tables.sin.row(row % tokens);
        for (uint64_t n = 0; n < pairs; ++n) {
            float& a = x.row(row)[rope.interleaved ? 2 * n : n];
            float& b = x.row(row)[rope.interleaved ? 2 * n + 1 : n + pairs];
            const float from_a = a;
            a = cos[n] * from_a - sin[n] * b;
            b = sin[n] * from_a + cos[n] * b;
        }
    }
    return x;
}

}  // namespace fovea::strict

namespace fovea {

Linear make_linear(TorchGenerator& generator, uint64_t d_in, uint64_t d_out, bool bias) {
    Linear layer;
    layer.weight = F32Tensor({d_out, d_in});
    generator.linear_weight(layer.weight.values, d_in);
    if (bias) {
        layer.bias = F32Tensor(Shape{d_out});
        generator.linear_bias(layer.bias.values, d_in);
    }
    return layer;
}

RopeTables rope_tables(const Rope& rope, uint64_t len, uint64_t dim) {
    const uint64_t width = rope.rotated(dim);
    RopeTables tables{F32Tensor({len, width / 2}), F32Tensor({len, width / 2})};
    for (uint64_t n = 0; n < width / 2; ++n) {
        double frequency = std::pow(rope.theta, -2.0 * double(n) / double(width));
        if (!rope.divisors.empty()) frequency /= rope.divisors[n];
        for (uint64_t i = 0; i < len; ++i) {
            const double angle = double(rope.first_position + i) * frequency;
            tables.cos.row(i)[n] = float(std::cos(angle) * rope.magnitude);
            tables.sin.row(i)[n] = float(std::sin(angle) * rope.magnitude);
        }
    }
    return tables;
}

}  // namespace fovea

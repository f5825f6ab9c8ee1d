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

}  // namespace fovea::strict

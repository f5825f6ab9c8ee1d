#include "train/step_parts.hpp"

#include <cmath>

namespace fovea {
namespace {

// Computes base^exponent only by multiplications, whose bits are the same everywhere.
double power(double base, uint32_t exponent) {
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

}  // namespace

bool adam_step(const TaskRecipe& recipe, std::vector<float>& gradient, TrainState& state) {
    double squares[4] = {};
    for (size_t n = 0; n < gradient.size(); ++n) squares[n % 4] += double(gradient[n]) * double(gradient[n]);
    const double length = std::sqrt((squares[0] + squares[1]) + (squares[2] + squares[3]));
    if (!std::isfinite(length)) return false;
    const float shorten = length > recipe.longest_gradient ? float(recipe.longest_gradient / length) : 1.0f;

    const uint32_t t = ++state.step;
    const double rate = recipe.rate(t);
    const float keep_mean = float(recipe.beta1), keep_square = float(recipe.beta2);
    const float take_mean = float(1 - recipe.beta1), take_square = float(1 - recipe.beta2);
    // Both corrections of the moments' start at zero in one factor, as the paper's section 2 has it.
    const float factor = float(rate * std::sqrt(1 - power(recipe.beta2, t)) / (1 - power(recipe.beta1, t)));
    const float epsilon = float(recipe.epsilon);
    float* weights = state.weights.data();
    float* mean = state.mean.data();
    float* square = state.square.data();
    const float* g = gradient.data();
    for (size_t n = 0; n < gradient.size(); ++n) {
        const float slope = g[n] * shorten;
        mean[n] = keep_mean * mean[n] + take_mean * slope;
        square[n] = keep_square * square[n] + take_square * (slope * slope);
        weights[n] -= factor * mean[n] / (std::sqrt(square[n]) + epsilon);
    }
    return true;
}

}  // namespace fovea

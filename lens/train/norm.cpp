#include "train/norm.hpp"

#include <algorithm>
#include <cmath>

#include "train/sums.hpp"

namespace fovea {
namespace {
constexpr float kEpsilon = 1e-5f;
}

NormLayer::NormLayer(uint64_t rows, uint32_t width)
    : rows_(rows), width_(width), normal_(size_t(rows) * width), inverse_(size_t(rows)) {}

void NormLayer::forward(const float* x, const float* weight, const float* bias, float* y) {
    const float per_element = 1.0f / float(width_);
    for (uint64_t row = 0; row < rows_; ++row) {
        const float* in = x + row * width_;
        float* normal = &normal_[row * width_];
        const float mean = sum_of(width_, [&](uint32_t n) { return in[n]; }) * per_element;
        const float variance =
            sum_of(width_, [&](uint32_t n) { return (in[n] - mean) * (in[n] - mean); }) * per_element;
        const float inverse = 1.0f / std::sqrt(variance + kEpsilon);
        inverse_[row] = inverse;
        for (uint32_t n = 0; n < width_; ++n) normal[n] = (in[n] - mean) * inverse;
        for (uint32_t n = 0; n < width_; ++n) y[row * width_ + n] = normal[n] * weight[n] + bias[n];
    }
}

void NormLayer::backward(const float* dy, const float* weight, float* dx, float* dweight, float* dbias) {
    const float per_element = 1.0f / float(width_);
    std::fill_n(dweight, width_, 0.0f);
    std::fill_n(dbias, width_, 0.0f);
    for (uint64_t row = 0; row < rows_; ++row) {
        const float* up = dy + row * width_;
        const float* normal = &normal_[row * width_];
        float* out = dx + row * width_;
        for (uint32_t n = 0; n < width_; ++n) dweight[n] += up[n] * normal[n];
        for (uint32_t n = 0; n < width_; ++n) dbias[n] += up[n];
        // Shifting or scaling a whole row does not change the norm, so both parts are removed.
        const float shift = sum_of(width_, [&](uint32_t n) { return up[n] * weight[n]; }) * per_element;
        const float stretch =
            sum_of(width_, [&](uint32_t n) { return up[n] * weight[n] * normal[n]; }) * per_element;
        for (uint32_t n = 0; n < width_; ++n)
            out[n] += inverse_[row] * (up[n] * weight[n] - shift - normal[n] * stretch);
    }
}

}  // namespace fovea

#include "train/layers.hpp"

#include <algorithm>
#include <cmath>

#include "train/arithmetic.hpp"

namespace fovea {
namespace {

constexpr float kEpsilon = 1e-5f;  // LayerNorm's

FoveaHostBuffer buffer_of(const float* values, uint64_t count) {
    return {const_cast<float*>(values), count * sizeof(float)};  // inputs are only read
}

// [rows, columns] -> [columns, rows], tile by tile: a column of a large matrix has each of its elements in
// another cache line.
void transpose(const float* from, uint64_t rows, uint64_t columns, float* to) {
    constexpr uint64_t kTile = 16;  // a line of the cache
    for (uint64_t row = 0; row < rows; row += kTile)
        for (uint64_t column = 0; column < columns; column += kTile)
            for (uint64_t n = column; n < std::min(column + kTile, columns); ++n)
                for (uint64_t r = row; r < std::min(row + kTile, rows); ++r)
                    to[n * rows + r] = from[r * columns + n];
}

}  // namespace

Result<LinearLayer> LinearLayer::open(Runner& device, uint32_t n_in, uint32_t n_out, uint64_t rows,
                                      bool has_bias) {
    LinearLayer layer;
    layer.device_ = &device;
    layer.rows_ = rows;
    layer.n_in_ = n_in;
    layer.n_out_ = n_out;
    FoveaLinearDesc desc = foveaLinearDesc();
    desc.n_in = n_in;
    desc.n_out = n_out;
    desc.rows = rows;
    desc.has_bias = has_bias ? 1 : 0;
    Result<Plan> forward = plan_linear(device.properties(), desc);
    if (!forward) return forward.error();
    layer.forward_ = std::move(*forward);

    // W [n_out, n_in] already has the layout of a layer from n_out to n_in.
    desc.has_bias = 0;
    desc.n_in = n_out;
    desc.n_out = n_in;
    desc.weight_is_in_out = 1;
    Result<Plan> input_gradient = plan_linear(device.properties(), desc);
    if (!input_gradient) return input_gradient.error();
    layer.input_gradient_ = std::move(*input_gradient);

    // dy^T [n_out, rows] times x [rows, n_in].
    desc.n_in = static_cast<uint32_t>(rows);
    desc.n_out = n_in;
    desc.rows = n_out;
    Result<Plan> weight_gradient = plan_linear(device.properties(), desc);
    if (!weight_gradient) return weight_gradient.error();
    layer.weight_gradient_ = std::move(*weight_gradient);
    layer.dy_transposed_.resize(size_t(rows) * n_out);
    return layer;
}

Result<void> LinearLayer::run(const Plan& plan, const float* x, uint64_t x_count, const float* weight,
                              uint64_t weight_count, const float* bias, float* y, uint64_t y_count) {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_X] = buffer_of(x, x_count);
    bindings[FOVEA_BIND_WEIGHT] = buffer_of(weight, weight_count);
    if (bias) bindings[FOVEA_BIND_BIAS] = buffer_of(bias, n_out_);
    bindings[FOVEA_BIND_Y] = buffer_of(y, y_count);
    return device_->run(plan, bindings);
}

Result<void> LinearLayer::forward(const float* x, const float* weight, const float* bias, float* y) {
    return run(forward_, x, rows_ * n_in_, weight, uint64_t{n_in_} * n_out_, bias, y, rows_ * n_out_);
}

Result<void> LinearLayer::input_gradient(const float* dy, const float* weight, float* dx) {
    return run(input_gradient_, dy, rows_ * n_out_, weight, uint64_t{n_in_} * n_out_, nullptr, dx,
               rows_ * n_in_);
}

Result<void> LinearLayer::weight_gradient(const float* x, const float* dy, float* dweight, float* dbias) {
    transpose(dy, rows_, n_out_, dy_transposed_.data());
    if (dbias) {
        std::fill_n(dbias, n_out_, 0.0f);
        for (uint64_t row = 0; row < rows_; ++row)
            for (uint32_t n = 0; n < n_out_; ++n) dbias[n] += dy[row * n_out_ + n];
    }
    return run(weight_gradient_, dy_transposed_.data(), rows_ * n_out_, x, rows_ * n_in_, nullptr, dweight,
               uint64_t{n_in_} * n_out_);
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

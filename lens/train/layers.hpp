// Layers that learn: each computes its output, and from the output's gradient those of its input and weights.
#pragma once

#include <fovea/model/runner.hpp>

#include <cstdint>
#include <vector>

namespace fovea {

// y = x W^T + b, three plans: the gradients of x and W are matrix products as well.
class LinearLayer {
  public:
    // For `rows` rows; W is [n_out, n_in].
    static Result<LinearLayer> open(Runner& device, uint32_t n_in, uint32_t n_out, uint64_t rows,
                                    bool has_bias);

    // bias may be null where there is none.
    Result<void> forward(const float* x, const float* weight, const float* bias, float* y);
    // dx = dy W.
    Result<void> input_gradient(const float* dy, const float* weight, float* dx);
    // dW = dy^T x; db the sum of dy's rows, from the first to the last. dbias may be null where there is
    // none.
    Result<void> weight_gradient(const float* x, const float* dy, float* dweight, float* dbias);

  private:
    LinearLayer() = default;
    Result<void> run(const Plan& plan, const float* x, uint64_t x_count, const float* weight,
                     uint64_t weight_count, const float* bias, float* y, uint64_t y_count);

    Runner* device_ = nullptr;
    uint64_t rows_ = 0;
    uint32_t n_in_ = 0, n_out_ = 0;
    Plan forward_, input_gradient_, weight_gradient_;
    std::vector<float> dy_transposed_;  // [n_out, rows]
};

// LayerNorm of rows (Ba et al., 2016): y = (x - mean) / sqrt(variance + epsilon) * weight + bias.
class NormLayer {
  public:
    NormLayer(uint64_t rows, uint32_t width);
    void forward(const float* x, const float* weight, const float* bias, float* y);
    // Gradients of the last forward pass. dx is added to; dweight and dbias are written, summed over the rows
    // from the first to the last.
    void backward(const float* dy, const float* weight, float* dx, float* dweight, float* dbias);

  private:
    uint64_t rows_;
    uint32_t width_;
    std::vector<float> normal_;   // [rows, width]: before weight and bias
    std::vector<float> inverse_;  // [rows]: 1 / sqrt(variance + epsilon)
};

}  // namespace fovea

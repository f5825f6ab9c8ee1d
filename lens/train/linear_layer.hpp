// y = x W^T + b and its gradients, three plans: the gradients of x and W are matrix products as well.
#pragma once

#include <fovea/model/runner.hpp>

#include <vector>

namespace fovea {

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

}  // namespace fovea

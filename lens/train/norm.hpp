// LayerNorm of rows (Ba et al., 2016): y = (x - mean) / sqrt(variance + epsilon) * weight + bias.
#pragma once

#include <cstdint>
#include <vector>

namespace fovea {

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

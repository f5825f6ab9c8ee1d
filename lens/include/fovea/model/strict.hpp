// Arithmetic in float32 from first to last, in the plain order, each operation rounded by itself: the
// arithmetic in which the tutorials' printed tables come out digit for digit. Slow and exact in its meaning;
// for real sizes there are the backends of the engine. Allocates only results; thread-safe; preconditions on
// shapes are the caller's.
#pragma once

#include <fovea/model/linear.hpp>

namespace fovea::strict {

// The float32 nearest to e^x.
float exp(float x);
float tanh(float x);

// Left to right from +0.
float dot(std::span<const float> a, std::span<const float> b);

// The sum in PyTorch's order for fewer than 8 values: four partial sums over whole groups of four, the rest
// added to the first, then the partial sums in order. (PyTorch's order for more values depends on the CPU.)
float sum(std::span<const float> values);

// exp(x - max) times the reciprocal of their sum. A row of nothing but -inf gives zeros.
void softmax(std::span<const float> scores, std::span<float> weights);

// [n, k] x [k, m] -> [n, m]; the matrices of a batch one by one, the second operand shared if it has no
// batch.
F32Tensor product(const F32Tensor& a, const F32Tensor& b);
// [n, k] x [m, k]^T -> [n, m].
F32Tensor product_transposed(const F32Tensor& a, const F32Tensor& b);

// x [.., d_in] -> [.., d_out].
F32Tensor linear(const F32Tensor& x, const Linear& layer);
// x [.., tokens, width], the width even, each row turned by its position's angles.
F32Tensor rotated(F32Tensor x, const Rope& rope);

}  // namespace fovea::strict

// Bounds the effect of inputs rounded to float16 on the outputs of an Attention node.
#pragma once

#include "onnx/node_case.hpp"

#include <array>

namespace fovea::onnx {

// The most that an element of y, present_key, present_value and the scores may be off by, where each operand
// of q * k and of weights * v is rounded to float16 once; to what rounding y itself adds. `node` is an
// Attention that run_node() took.
//
//   u      = 2^-11, half a unit of float16; a product of two rounded operands is off by at most
//   p      = (1 + u)^2 - 1 of itself
//   e      = |scale| * p * max |q_i| * max |k_j|: of a score, as sum |q_n k_n| <= |q_i| |k_j|. Softcaps and
//   masks
//            make it no larger
//   1-norm of a row's weights: off by at most 2 tanh(e / 2) <= e, so
//   y      = ((1 + e) (1 + p) - 1) * max |v|
std::array<double, 4> product_error(const Node& node, const Tensors& inputs);

}  // namespace fovea::onnx

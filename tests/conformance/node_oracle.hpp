// The two operators in float64, straight from the operator's text and from nothing of the engine: what the
// generated cases expect.
#pragma once

#include "onnx/node_case.hpp"

namespace fovea::test {

onnx::Tensors expect_attention(const onnx::Model& model, const onnx::Tensors& inputs);
onnx::Tensors expect_rotary(const onnx::Model& model, const onnx::Tensors& inputs);

// A tensor of any type from numbers, rounded once.
onnx::Tensor make_tensor(onnx::ElementType type, std::vector<int64_t> dims,
                         const std::vector<double>& numbers);

}  // namespace fovea::test

// Node tests made here: a handful for each part of the operators' meaning.
#pragma once

#include "onnx/node_case.hpp"

#include <vector>

namespace fovea::test {

// Always the same ones.
std::vector<onnx::NodeCase> generated_cases();

}  // namespace fovea::test

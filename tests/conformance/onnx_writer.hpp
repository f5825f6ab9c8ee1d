// Writes the files of a node test, as the ONNX project's own tools do: enough of the format to test the
// reader with files that were made here.
#pragma once

#include "onnx/node_case.hpp"

#include <filesystem>

namespace fovea::test {

std::vector<std::byte> encode(const onnx::Tensor& tensor);
std::vector<std::byte> encode(const onnx::Model& model);

// folder/model.onnx and folder/test_data_set_0/*.pb. False if something could not be written.
bool write_case(const std::filesystem::path& folder, const onnx::NodeCase& node_case);

}  // namespace fovea::test

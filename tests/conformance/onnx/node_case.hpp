// One folder of a node test: the model and its data sets.
#pragma once

#include "onnx/model_file.hpp"

#include <filesystem>
#include <optional>

namespace fovea::onnx {

// The most bytes of a file of a case.
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

// Tensors by place in the node's list of inputs or outputs; nothing where the name is empty.
using Tensors = std::vector<std::optional<Tensor>>;

struct DataSet {
    std::string name;
    Tensors inputs, outputs;
};

struct NodeCase {
    std::string name;  // name of the folder
    Model model;
    std::vector<DataSet> sets;  // at least one
};

// Reads model.onnx and every test_data_set_N of `folder`.
Result<NodeCase> load_case(const std::filesystem::path& folder);

// The folders with a model.onnx in `folder`, or `folder` itself if it has one, sorted by name.
Result<std::vector<std::filesystem::path>> find_cases(const std::filesystem::path& folder);

}  // namespace fovea::onnx

#include "fuzz_target.hpp"

#include "onnx/model_file.hpp"

using namespace fovea;

// The bytes are read both as a model and as a tensor.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto bytes = fuzz::as_bytes(data, size);
    const auto tensor = fuzz::at_cost(size, [&] { return onnx::parse_tensor(bytes); });
    if (tensor) {
        fuzz::require(tensor->dims.size() <= onnx::kMaxRank, "a tensor has a rank within the limit");
        fuzz::require(tensor->data.size() == tensor->elements() * onnx::size_of(tensor->type),
                      "a tensor holds exactly its elements");
    } else {
        fuzz::check_error(tensor.error());
    }
    const auto model = fuzz::at_cost(size, [&] { return onnx::parse_model(bytes); });
    if (model)
        fuzz::require(model->opset > 0 && model->node.inputs.size() <= 64, "a model has a node and an opset");
    else
        fuzz::check_error(model.error());
    return 0;
}

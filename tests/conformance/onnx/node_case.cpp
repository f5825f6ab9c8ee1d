#include "onnx/node_case.hpp"

#include <algorithm>
#include <fstream>

namespace fovea::onnx {
namespace {

namespace fs = std::filesystem;

Error io_error(const fs::path& path, const std::string& what) {
    return Error{FOVEA_IO_ERROR, path.string(), what};
}

Result<std::vector<std::byte>> read_file(const fs::path& path) {
    std::error_code error;
    const uint64_t size = fs::file_size(path, error);
    if (error) return io_error(path, "cannot be read: " + error.message());
    if (size > kMaxFileBytes) return io_error(path, std::to_string(size) + " bytes; the limit is 256 MiB");
    std::vector<std::byte> bytes(static_cast<size_t>(size));
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(size));
    if (!file || uint64_t(file.gcount()) != size) return io_error(path, "cannot be read whole");
    return bytes;
}

Error in_file(const fs::path& path, Error error) {
    error.text = error.field + ": " + error.text;
    error.field = path.filename().string();
    return error;
}

// input_K.pb is the K-th present one.
Result<Tensors> load_tensors(const fs::path& set, const std::vector<std::string>& names, const char* kind) {
    Tensors tensors(names.size());
    size_t present = 0;
    for (size_t n = 0; n < names.size(); ++n) {
        if (names[n].empty()) continue;
        const fs::path path = set / (kind + std::string("_") + std::to_string(present++) + ".pb");
        Result<std::vector<std::byte>> bytes = read_file(path);
        if (!bytes) return bytes.error();
        Result<Tensor> tensor = parse_tensor(*bytes);
        if (!tensor) return in_file(path, tensor.error());
        tensors[n] = std::move(*tensor);
    }
    return tensors;
}

Result<std::vector<fs::path>> folders_in(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return io_error(folder, "is no folder that can be read");
    fs::directory_iterator entries(folder, error);
    if (error) return io_error(folder, "cannot be listed: " + error.message());
    std::vector<fs::path> found;
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
        if (error) return io_error(folder, "cannot be listed: " + error.message());
        if (entries->is_directory(error)) found.push_back(entries->path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

Result<NodeCase> load_case(const fs::path& folder) {
    NodeCase result;
    result.name = folder.filename().string();
    const fs::path model_path = folder / "model.onnx";
    Result<std::vector<std::byte>> bytes = read_file(model_path);
    if (!bytes) return bytes.error();
    Result<Model> model = parse_model(*bytes);
    if (!model) return in_file(model_path, model.error());
    result.model = std::move(*model);
    Result<std::vector<fs::path>> folders = folders_in(folder);
    if (!folders) return folders.error();
    for (const fs::path& set : *folders) {
        if (set.filename().string().rfind("test_data_set_", 0) != 0) continue;
        Result<Tensors> inputs = load_tensors(set, result.model.node.inputs, "input");
        if (!inputs) return inputs.error();
        Result<Tensors> outputs = load_tensors(set, result.model.node.outputs, "output");
        if (!outputs) return outputs.error();
        result.sets.push_back({set.filename().string(), std::move(*inputs), std::move(*outputs)});
    }
    if (result.sets.empty()) return io_error(folder, "has no test_data_set_0");
    return result;
}

Result<std::vector<fs::path>> find_cases(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / "model.onnx", error)) return std::vector<fs::path>{folder};
    Result<std::vector<fs::path>> folders = folders_in(folder);
    if (!folders) return folders.error();
    std::erase_if(*folders, [&](const fs::path& f) { return !fs::exists(f / "model.onnx", error); });
    if (folders->empty()) return io_error(folder, "holds no folder with a model.onnx");
    return folders;
}

}  // namespace fovea::onnx

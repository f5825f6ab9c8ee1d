#include "conformance/onnx_writer.hpp"

#include <bit>
#include <fstream>
#include <string_view>

namespace fovea::test {
namespace {

class WireWriter {
  public:
    void varint(uint32_t field, uint64_t value) {
        number(uint64_t{field} << 3);
        number(value);
    }
    void fixed32(uint32_t field, uint32_t value) {
        number(uint64_t{field} << 3 | 5);
        for (int shift = 0; shift < 32; shift += 8) bytes_.push_back(std::byte(value >> shift));
    }
    void bytes(uint32_t field, const std::vector<std::byte>& contents) {
        number(uint64_t{field} << 3 | 2);
        number(contents.size());
        bytes_.insert(bytes_.end(), contents.begin(), contents.end());
    }
    void text(uint32_t field, std::string_view text) {
        const auto* first = reinterpret_cast<const std::byte*>(text.data());
        bytes(field, {first, first + text.size()});
    }
    std::vector<std::byte> take() { return std::move(bytes_); }

  private:
    void number(uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_.push_back(std::byte(value | 0x80));
        bytes_.push_back(std::byte(value));
    }
    std::vector<std::byte> bytes_;
};

std::vector<std::byte> encode_attribute(const onnx::Attribute& attribute) {
    WireWriter w;
    w.text(1, attribute.name);
    if (attribute.kind == onnx::Attribute::Kind::real) {
        w.fixed32(2, std::bit_cast<uint32_t>(attribute.real));
        w.varint(20, 1);
    } else {
        w.varint(3, uint64_t(attribute.integer));
        w.varint(20, 2);
    }
    return w.take();
}

std::vector<std::byte> encode_node(const onnx::Node& node) {
    WireWriter w;
    for (const std::string& name : node.inputs) w.text(1, name);
    for (const std::string& name : node.outputs) w.text(2, name);
    w.text(4, node.op_type);
    for (const onnx::Attribute& attribute : node.attributes) w.bytes(5, encode_attribute(attribute));
    if (!node.domain.empty()) w.text(7, node.domain);
    return w.take();
}

bool write_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    return bool(file);
}

bool write_tensors(const std::filesystem::path& set, const onnx::Tensors& tensors, const char* kind) {
    size_t present = 0;
    for (const std::optional<onnx::Tensor>& tensor : tensors) {
        if (!tensor) continue;
        if (!write_file(set / (kind + std::string("_") + std::to_string(present++) + ".pb"), encode(*tensor)))
            return false;
    }
    return true;
}

}  // namespace

std::vector<std::byte> encode(const onnx::Tensor& tensor) {
    WireWriter w;
    for (const int64_t dim : tensor.dims) w.varint(1, uint64_t(dim));
    w.varint(2, uint64_t(tensor.type));
    if (!tensor.name.empty()) w.text(8, tensor.name);
    w.bytes(9, tensor.data);
    return w.take();
}

std::vector<std::byte> encode(const onnx::Model& model) {
    WireWriter graph;
    graph.bytes(1, encode_node(model.node));
    graph.text(2, "generated");
    WireWriter opset;
    opset.text(1, "");
    opset.varint(2, uint64_t(model.opset));
    WireWriter w;
    w.varint(1, 11);  // ir_version
    w.text(2, "fovea tests");
    w.bytes(7, graph.take());
    w.bytes(8, opset.take());
    return w.take();
}

bool write_case(const std::filesystem::path& folder, const onnx::NodeCase& node_case) {
    std::error_code error;
    for (const onnx::DataSet& set : node_case.sets) {
        const std::filesystem::path path = folder / set.name;
        std::filesystem::create_directories(path, error);
        if (error || !write_tensors(path, set.inputs, "input") || !write_tensors(path, set.outputs, "output"))
            return false;
    }
    return write_file(folder / "model.onnx", encode(node_case.model));
}

}  // namespace fovea::test

// The parts of a node test case: a model of one node, and tensors. Only the parts of ONNX's messages that
// such files use are read; everything else is skipped, and anything that would change the meaning is
// rejected.
#pragma once

#include <fovea/fovea.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fovea::onnx {

// TensorProto.DataType.
enum class ElementType : int32_t {
    float32 = 1,
    uint8 = 2,
    int8 = 3,
    int16 = 5,
    int32 = 6,
    int64 = 7,
    boolean = 9,
    float16 = 10,
    float64 = 11,
    bfloat16 = 16
};
// "float32"; "type 42" for one that is not read.
std::string type_name(ElementType type);
// Bytes of one element; 0 for a type that is not read.
uint32_t size_of(ElementType type);

struct Tensor {
    std::string name;
    ElementType type = ElementType::float32;
    std::vector<int64_t> dims;    // at most kMaxRank, none negative
    std::vector<std::byte> data;  // little-endian, row-major: exactly elements() * size_of(type) bytes

    uint64_t elements() const;
    std::string shape_text() const;  // "float32 2x3x4"
};
constexpr size_t kMaxRank = 8;

struct Attribute {
    enum class Kind { real, integer, other } kind = Kind::other;
    std::string name;
    float real = 0;
    int64_t integer = 0;
};

struct Node {
    std::string op_type, domain;
    std::vector<std::string> inputs, outputs;  // an absent optional one has an empty name
    std::vector<Attribute> attributes;
};

struct Model {
    int64_t opset = 0;  // opset of the standard domain
    Node node;
};

// Errors say what is malformed and where.
Result<Tensor> parse_tensor(std::span<const std::byte> file);
Result<Model> parse_model(std::span<const std::byte> file);

}  // namespace fovea::onnx

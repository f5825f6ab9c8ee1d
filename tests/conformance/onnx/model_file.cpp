#include "onnx/model_file.hpp"

#include "onnx/wire_reader.hpp"

#include <bit>
#include <optional>

namespace fovea::onnx {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxNames = 64;  // inputs, outputs or attributes of a node

Error invalid(std::string field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

// Runs `use(field)` for every field of a message. `use` returns an error to stop.
template <class Use>
Result<void> for_each_field(std::span<const std::byte> message, const Use& use) {
    WireReader reader(message);
    WireField field;
    while (true) {
        const Result<bool> more = reader.next(field);
        if (!more) return more.error();
        if (!*more) return {};
        if (Result<void> used = use(field); !used) return used;
    }
}

Result<void> expect_type(const WireField& field, WireType type, const char* name) {
    if (field.type != type) return invalid(name, "the field has the wrong wire type");
    return {};
}

// Names come from a file and end up on a terminal: short, and no control characters.
Result<void> read_name(const WireField& field, std::string& name, const char* what) {
    if (Result<void> fits = expect_type(field, WireType::bytes, what); !fits) return fits;
    if (field.bytes.size() > kMaxNameBytes)
        return invalid(what, "a name is longer than " + std::to_string(kMaxNameBytes) + " bytes");
    for (const std::byte b : field.bytes)
        if (b < std::byte{0x20} || b == std::byte{0x7f})
            return invalid(what, "a name has control characters");
    name = field.text();
    return {};
}

Result<void> add_dim(const WireField& field, Tensor& tensor) {
    const auto add = [&](uint64_t value) -> Result<void> {
        if (value > uint64_t{1} << 40) return invalid("dims", "a dimension is negative or past 2^40");
        if (tensor.dims.size() == kMaxRank)
            return invalid("dims", "more than " + std::to_string(kMaxRank) + " dimensions");
        tensor.dims.push_back(int64_t(value));
        return {};
    };
    if (field.type == WireType::varint) return add(field.value);
    if (field.type != WireType::bytes) return invalid("dims", "the field has the wrong wire type");
    // Packed: varints one after another. The reader knows fields, so each gets a separate tag.
    std::span<const std::byte> rest = field.bytes;
    while (!rest.empty()) {
        uint64_t value = 0;
        size_t used = 0;
        do {
            if (used == rest.size() || used == 9)
                return invalid("dims", "a packed dimension is cut off or too long");
            value |= (uint64_t(rest[used]) & 0x7f) << (7 * used);
        } while ((rest[used++] & std::byte{0x80}) != std::byte{0});
        rest = rest.subspan(used);
        if (Result<void> added = add(value); !added) return added;
    }
    return {};
}

Result<void> tensor_field(const WireField& field, Tensor& tensor, bool& has_data) {
    switch (field.number) {
        case 1:
            return add_dim(field, tensor);
        case 2:
            tensor.type = ElementType(int32_t(field.value));
            return expect_type(field, WireType::varint, "data_type");
        case 8:
            return read_name(field, tensor.name, "name");
        case 9:
            if (has_data) return invalid("raw_data", "given twice");
            has_data = true;
            tensor.data.assign(field.bytes.begin(), field.bytes.end());
            return expect_type(field, WireType::bytes, "raw_data");
        case 4:
        case 5:
        case 6:
        case 7:
        case 10:
        case 11:
            return invalid("data", "the numbers stand in a typed field; only raw_data is read");
        case 3:
        case 13:
        case 14:
            return invalid("data", "segments and external data are not read");
        default:
            return {};
    }
}

Result<void> attribute_field(const WireField& field, Attribute& attribute, uint64_t& type) {
    switch (field.number) {
        case 1:
            return read_name(field, attribute.name, "attribute.name");
        case 2:
            attribute.real = std::bit_cast<float>(uint32_t(field.value));
            return expect_type(field, WireType::fixed32, "attribute.f");
        case 3:
            attribute.integer = int64_t(field.value);
            return expect_type(field, WireType::varint, "attribute.i");
        case 20:
            type = field.value;
            return expect_type(field, WireType::varint, "attribute.type");
        default:
            return {};
    }
}

Result<Attribute> parse_attribute(std::span<const std::byte> message) {
    Attribute attribute;
    uint64_t type = 0;
    const Result<void> read =
        for_each_field(message, [&](const WireField& f) { return attribute_field(f, attribute, type); });
    if (!read) return read.error();
    attribute.kind = type == 1   ? Attribute::Kind::real
                     : type == 2 ? Attribute::Kind::integer
                                 : Attribute::Kind::other;
    return attribute;
}

Result<void> add_name(const WireField& field, std::vector<std::string>& names, const char* what) {
    if (names.size() == kMaxNames) return invalid(what, "more than " + std::to_string(kMaxNames));
    return read_name(field, names.emplace_back(), what);
}

Result<void> node_field(const WireField& field, Node& node) {
    switch (field.number) {
        case 1:
            return add_name(field, node.inputs, "node.input");
        case 2:
            return add_name(field, node.outputs, "node.output");
        case 4:
            return read_name(field, node.op_type, "node.op_type");
        case 5: {
            if (node.attributes.size() == kMaxNames)
                return invalid("node.attribute", "more than " + std::to_string(kMaxNames));
            Result<Attribute> attribute = parse_attribute(field.bytes);
            if (!attribute) return attribute.error();
            node.attributes.push_back(std::move(*attribute));
            return expect_type(field, WireType::bytes, "node.attribute");
        }
        case 7:
            return read_name(field, node.domain, "node.domain");
        default:
            return {};
    }
}

Result<void> graph_field(const WireField& field, std::optional<Node>& node) {
    if (field.number == 5 || field.number == 15)
        return invalid("graph", "initializers are not read; a test case has none");
    if (field.number != 1) return {};
    if (node) return invalid("graph", "more than one node; a test case has one");
    node.emplace();
    return for_each_field(field.bytes, [&](const WireField& f) { return node_field(f, *node); });
}

Result<void> opset_field(const WireField& message, int64_t& opset) {
    std::string domain;
    int64_t version = 0;
    const Result<void> read = for_each_field(message.bytes, [&](const WireField& f) -> Result<void> {
        if (f.number == 1) domain = f.text();
        if (f.number == 2) version = int64_t(f.value);
        return {};
    });
    if (!read) return read;
    if (domain.empty() || domain == "ai.onnx") opset = version;
    return {};
}

}  // namespace

std::string type_name(ElementType type) {
    switch (type) {
        case ElementType::float32:
            return "float32";
        case ElementType::uint8:
            return "uint8";
        case ElementType::int8:
            return "int8";
        case ElementType::int16:
            return "int16";
        case ElementType::int32:
            return "int32";
        case ElementType::int64:
            return "int64";
        case ElementType::boolean:
            return "bool";
        case ElementType::float16:
            return "float16";
        case ElementType::float64:
            return "float64";
        case ElementType::bfloat16:
            return "bfloat16";
    }
    return "type " + std::to_string(int32_t(type));
}

uint32_t size_of(ElementType type) {
    switch (type) {
        case ElementType::uint8:
        case ElementType::int8:
        case ElementType::boolean:
            return 1;
        case ElementType::int16:
        case ElementType::float16:
        case ElementType::bfloat16:
            return 2;
        case ElementType::float32:
        case ElementType::int32:
            return 4;
        case ElementType::int64:
        case ElementType::float64:
            return 8;
    }
    return 0;
}

uint64_t Tensor::elements() const {
    uint64_t count = 1;
    for (const int64_t dim : dims) count *= uint64_t(dim);
    return count;
}

std::string Tensor::shape_text() const {
    std::string text = type_name(type) + " ";
    for (size_t n = 0; n < dims.size(); ++n) text += (n ? "x" : "") + std::to_string(dims[n]);
    return dims.empty() ? text + "scalar" : text;
}

Result<Tensor> parse_tensor(std::span<const std::byte> file) {
    Tensor tensor;
    bool has_data = false;
    const Result<void> read =
        for_each_field(file, [&](const WireField& f) { return tensor_field(f, tensor, has_data); });
    if (!read) return read.error();
    const uint32_t size = size_of(tensor.type);
    if (size == 0)
        return Error{FOVEA_UNSUPPORTED, "data_type", "element " + type_name(tensor.type) + " is not read"};
    uint64_t bytes = size;
    for (const int64_t dim : tensor.dims) {
        if (dim != 0 && bytes > UINT64_MAX / uint64_t(dim))
            return Error{FOVEA_SIZE_OVERFLOW, "dims", "the size of the tensor does not fit 64 bits"};
        bytes *= uint64_t(dim);
    }
    if (tensor.data.size() != bytes)
        return invalid("raw_data", std::to_string(tensor.data.size()) + " bytes; " + tensor.shape_text() +
                                       " needs " + std::to_string(bytes));
    return tensor;
}

Result<Model> parse_model(std::span<const std::byte> file) {
    Model model;
    std::optional<Node> node;
    bool has_graph = false;
    const Result<void> read = for_each_field(file, [&](const WireField& f) -> Result<void> {
        if (f.number == 8) return opset_field(f, model.opset);
        if (f.number != 7) return {};
        if (has_graph) return invalid("graph", "given twice");
        has_graph = true;
        return for_each_field(f.bytes, [&](const WireField& g) { return graph_field(g, node); });
    });
    if (!read) return read.error();
    if (!node) return invalid("graph", "the model has no node");
    if (model.opset < 1 || model.opset > 1000) return invalid("opset_import", "the model names no opset");
    model.node = std::move(*node);
    return model;
}

}  // namespace fovea::onnx

// Untrusted ONNX node cases through the runner. The reader of their files has a target already: here the
// bytes are JSON, {"op": ..., "opset": N, "attributes": {NAME: NUMBER}, "inputs": [[TYPE, SIDES...] or null],
// "outputs": N}, so that a change of one number is a case whose bytes fit its shapes. Integer attributes are
// written without a point.
#include "fuzz_target.hpp"

#include <fovea/files/json.hpp>

#include <cmath>
#include <optional>

#include "json_mutator.hpp"
#include "onnx/node_runner.hpp"
#include "onnx/tensor_values.hpp"
#include "support/random.hpp"

using namespace fovea;

namespace {

constexpr uint64_t kMaxElements = 1 << 12, kMaxBytes = 1 << 20;
constexpr const char* kNames[] = {"a", "b", "c", "d"};

// The reader rejects names with control characters.
std::string name_of(std::string_view text) {
    std::string name(text.substr(0, 256));
    std::erase_if(name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    return name;
}

double whole(const JsonValue& json, double most) {
    return std::floor(std::min(std::max(json.number(), 0.0), most));
}

// A tensor that parse_tensor() may give: at most 8 sides of up to 2^40, and exactly the bytes of a known
// type.
std::optional<onnx::Tensor> tensor_of(const JsonValue& json) {
    onnx::Tensor tensor;
    tensor.type = onnx::ElementType(int32_t(whole(json.items()[0], 20)));
    double count = 1;
    for (size_t n = 1; n < json.items().size(); ++n) {
        tensor.dims.push_back(int64_t(whole(json.items()[n], 0x1p40)));
        count *= double(tensor.dims.back());
        // The reader rejects a product beyond 64 bits, though the next side be 0.
        if (count > 0x1p60) return std::nullopt;
    }
    if (count > double(kMaxElements) || tensor.dims.size() > onnx::kMaxRank || !onnx::size_of(tensor.type))
        return std::nullopt;
    tensor.data.resize(size_t(tensor.elements()) * onnx::size_of(tensor.type));
    const bool real = tensor.type == onnx::ElementType::float32;
    for (uint64_t n = 0; n < tensor.elements(); ++n) {
        const uint64_t bits = test::hash(tensor.elements(), n);
        const float value = test::bell(bits);
        if (real)
            std::memcpy(tensor.data.data() + n * 4, &value, 4);
        else  // small integers, and halves of any kind
            tensor.data[n * onnx::size_of(tensor.type)] = std::byte(bits % 7);
    }
    return tensor;
}

onnx::Attribute attribute_of(const std::string& name, const JsonValue& value) {
    using Kind = onnx::Attribute::Kind;
    const bool real = value.scalar_text().find('.') != std::string_view::npos;
    const double number = value.number();
    return {real ? Kind::real : Kind::integer, name_of(name), value.number_f32(),
            std::fabs(number) < 0x1p62 ? int64_t(number) : INT64_MIN};
}

Engine& engine() {
    static Engine opened = [] {
        EngineOptions options;
        options.backend = BackendChoice::cpu;
        options.cpu_threads = 1;
        Result<Engine> made = Engine::open(options);
        fuzz::require(made.has_value(), "there is a CPU");
        return std::move(*made);
    }();
    return opened;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const Result<JsonValue> json = parse_json({reinterpret_cast<const char*>(data), size});
    if (!json) return 0;
    onnx::Model model;
    model.opset = int64_t(whole((*json)["opset"], 1000));
    model.node.op_type = name_of((*json)["op"].text());
    for (const auto& [name, value] : (*json)["attributes"].members())
        model.node.attributes.push_back(attribute_of(name, value));
    model.node.outputs.assign(kNames, kNames + size_t(whole((*json)["outputs"], 4)));
    onnx::Tensors inputs;
    size_t bytes = size;
    for (const JsonValue& item : (*json)["inputs"].items()) {
        inputs.emplace_back();
        model.node.inputs.emplace_back();  // an absent one has no name
        if (item.items().empty()) continue;
        if (!(inputs.back() = tensor_of(item))) return 0;
        model.node.inputs.back() = "x";
        bytes += inputs.back()->data.size();
    }
    engine();  // the engine's own memory does not depend on an input
    // Float32 of bytes, their copies, and each output as float32 and in its own type.
    const Result<onnx::Tensors> outputs = fuzz::at_cost(
        bytes, [&] { return onnx::run_node(engine(), model, inputs, {.most_bytes = kMaxBytes}); },
        8 * bytes + 8 * kMaxBytes);
    if (!outputs) {
        fuzz::check_error(outputs.error());
        return 0;
    }
    for (const auto& output : *outputs)
        fuzz::require(!output || output->data.size() == output->elements() * onnx::size_of(output->type),
                      "an output holds exactly its elements");
    return 0;
}

#include "onnx/node_runner.hpp"

#include "onnx/product_rounding.hpp"
#include "onnx/tensor_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace fovea::onnx {
namespace {

bool agrees(double got, double want, double allowance, double rounding) {
    if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
    if (std::isinf(got) || std::isinf(want)) return got == want;
    return std::fabs(got - want) <= 1e-7 + allowance + (1e-3 + rounding) * std::fabs(want);
}

std::string place_name(size_t place) { return "output " + std::to_string(place); }

}  // namespace

Result<Tensors> run_node(Engine& engine, const Model& model, const Tensors& inputs,
                         const AttentionChoice& choice) {
    const Node& node = model.node;
    if (node.domain.empty() || node.domain == "ai.onnx") {
        if (node.op_type == "Attention") return run_attention(engine, model, inputs, choice);
        if (node.op_type == "RotaryEmbedding") return run_rotary_embedding(engine, model, inputs);
    }
    return Error{FOVEA_UNSUPPORTED, "node",
                 "operator " + (node.domain.empty() ? "" : node.domain + ".") + node.op_type +
                     " is not one the engine has"};
}

std::string difference(const Tensor& got, const Tensor& want, double allowance) {
    if (got.type != want.type || got.dims != want.dims)
        return got.shape_text() + " instead of " + want.shape_text();
    // An error, however small, may turn a rounding to bfloat16 over.
    const double rounding = allowance > 0 && want.type == ElementType::bfloat16 ? 0x1p-7 : 0;
    for (uint64_t n = 0; n < want.elements(); ++n) {
        const double g = value_at(got, n), w = value_at(want, n);
        if (agrees(g, w, allowance, rounding)) continue;
        char text[120];
        snprintf(text, sizeof text, "element %llu is %.9g instead of %.9g",
                 static_cast<unsigned long long>(n), g, w);
        return text;
    }
    return {};
}

CaseResult run_case(Engine& engine, const NodeCase& node_case, const AttentionChoice& choice) {
    CaseResult result;
    // Rotary embedding multiplies in float32 whatever attention may do.
    const Node& node = node_case.model.node;
    const bool rounds = node.op_type == "Attention" && choice.precision == FOVEA_PRECISION_F16_INPUTS;
    for (const DataSet& set : node_case.sets) {
        const Result<Tensors> outputs = run_node(engine, node_case.model, set.inputs, choice);
        if (!outputs) {
            const Error& error = outputs.error();
            result.kind =
                error.code == FOVEA_UNSUPPORTED ? CaseResult::Kind::skipped : CaseResult::Kind::failed;
            result.text = error.field + ": " + error.text;
            return result;
        }
        const std::array<double, 4> allowances =
            rounds ? product_error(node, set.inputs) : std::array<double, 4>{};
        for (size_t n = 0; n < set.outputs.size(); ++n) {
            if (!set.outputs[n]) continue;
            const double allowance = n < allowances.size() ? allowances[n] : 0;
            const bool given = n < outputs->size() && (*outputs)[n];
            result.text = given ? difference(*(*outputs)[n], *set.outputs[n], allowance) : "is missing";
            if (result.text.empty()) continue;
            result.text = set.name + ", " + place_name(n) + ": " + result.text;
            return result;
        }
    }
    result.kind = CaseResult::Kind::passed;
    return result;
}

Result<AttributeReader> AttributeReader::make(const Node& node,
                                              std::initializer_list<std::string_view> known) {
    for (const Attribute& a : node.attributes)
        if (std::find(known.begin(), known.end(), a.name) == known.end())
            return Error{FOVEA_UNSUPPORTED, a.name.empty() ? "attribute" : a.name,
                         "no such attribute is known"};
    AttributeReader reader;
    reader.attributes_ = node.attributes;
    return reader;
}

const Attribute* AttributeReader::find(std::string_view name) const {
    for (const Attribute& a : attributes_)
        if (a.name == name) return &a;
    return nullptr;
}

Result<int64_t> AttributeReader::integer(std::string_view name, int64_t fallback, int64_t low,
                                         int64_t high) const {
    const Attribute* a = find(name);
    if (!a) return fallback;
    if (a->kind != Attribute::Kind::integer)
        return Error{FOVEA_INVALID_ARGUMENT, std::string(name), "the attribute is not an integer"};
    if (a->integer < low || a->integer > high)
        return Error{
            FOVEA_INVALID_ARGUMENT, std::string(name),
            std::to_string(a->integer) + " is not in " + std::to_string(low) + " .. " + std::to_string(high)};
    return a->integer;
}

Result<float> AttributeReader::real(std::string_view name, float fallback) const {
    const Attribute* a = find(name);
    if (!a) return fallback;
    if (a->kind != Attribute::Kind::real || !std::isfinite(a->real))
        return Error{FOVEA_INVALID_ARGUMENT, std::string(name), "the attribute is not a finite float"};
    return a->real;
}

}  // namespace fovea::onnx

// One ONNX node as calls of the engine.
#pragma once

#include "onnx/node_case.hpp"

#include <fovea/runtime.hpp>

namespace fovea::onnx {

// How Attention nodes are to be computed.
struct AttentionChoice {
    FoveaKernel kernel = FOVEA_KERNEL_AUTO;
    FoveaPrecision precision = FOVEA_PRECISION_F32;
    uint64_t most_bytes = kMaxFileBytes;  // each tensor that is made: a file has no larger ones
};

// Outputs by place, those that the node names. FOVEA_UNSUPPORTED where the node, a type or an option is not
// one that the engine or its device has: the reason for a skip. Anything else is a failure.
Result<Tensors> run_node(Engine& engine, const Model& model, const Tensors& inputs,
                         const AttentionChoice& choice = {});

Result<Tensors> run_attention(Engine& engine, const Model& model, const Tensors& inputs,
                              const AttentionChoice& choice);
Result<Tensors> run_rotary_embedding(Engine& engine, const Model& model, const Tensors& inputs);

// The upstream rule: shapes and types equal, |got - want| <= 1e-7 + 1e-3 * |want|. An allowance, see
// product_error(), comes to that, and in bfloat16 one unit of the element's own. Empty if right, else what is
// wrong.
std::string difference(const Tensor& got, const Tensor& want, double allowance = 0);

struct CaseResult {
    enum class Kind { passed, failed, skipped } kind = Kind::failed;
    std::string text;  // the reason, unless passed
};
// Every data set of the case; the first that does not pass decides.
CaseResult run_case(Engine& engine, const NodeCase& node_case, const AttentionChoice& choice = {});

// Attributes of a node by name. Reads only names that `known` has.
class AttributeReader {
  public:
    static Result<AttributeReader> make(const Node& node, std::initializer_list<std::string_view> known);
    bool has(std::string_view name) const { return find(name) != nullptr; }
    Result<int64_t> integer(std::string_view name, int64_t fallback, int64_t low, int64_t high) const;
    Result<float> real(std::string_view name, float fallback) const;

  private:
    const Attribute* find(std::string_view name) const;
    std::vector<Attribute> attributes_;
};

}  // namespace fovea::onnx

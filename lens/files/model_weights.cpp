// Attention weights of GPT-2 and Llama checkpoints by their usual names.
#include <algorithm>
#include <array>
#include <cmath>

#include <fovea/files.hpp>

#include "files/json_text.hpp"
#include "files/model_config.hpp"
#include "files/number_text.hpp"
#include "files/refusal.hpp"

namespace fovea {
namespace files {
namespace {

/// Heads and widths beyond this are a wrong file; below it, products of two fit easily.
constexpr uint64_t kMaxModelDim = 1u << 24;

/// The tensors of one layer: "PREFIX" + "N" + "." + name, with the first of two prefixes that the file has.
class LayerNames {
  public:
    LayerNames(const TensorSet& checkpoint, std::string_view root, std::string_view layers,
               std::string_view block, uint64_t layer)
        : checkpoint_(checkpoint), layer_(layer), block_(block) {
        for (const std::string& prefix : {cat(root, layers), std::string(layers)}) {
            prefix_ = prefix;
            const bool present = std::any_of(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                             [&](const Tensor& t) { return layer_of(t.name).has_value(); });
            if (present) return;
        }
    }

    std::string full(std::string_view name) const { return cat(prefix_, layer_, ".", block_, name); }
    const Tensor* find(std::string_view name) const { return checkpoint_.find(full(name)); }

    Error missing(std::string_view name) const {
        uint64_t layers = 0;
        for (const Tensor& tensor : checkpoint_.tensors)
            if (const auto layer = layer_of(tensor.name)) layers = std::max(layers, *layer + 1);
        const std::string has = layers == 0
                                    ? cat("the file has no tensor '", prefix_, "N.", block_, "*' at all")
                                    : cat("the file has layers 0 to ", layers - 1);
        return bad_argument("layer", cat("tensor '", full(name), "' is missing; ", has));
    }

  private:
    /// N of "PREFIX" + "N" + ".BLOCK...".
    std::optional<uint64_t> layer_of(std::string_view name) const {
        if (!name.starts_with(prefix_)) return std::nullopt;
        name.remove_prefix(prefix_.size());
        const size_t dot = name.find('.');
        if (dot == 0 || dot == std::string_view::npos || dot > 9 || !name.substr(dot + 1).starts_with(block_))
            return std::nullopt;
        return json_unsigned(name.substr(0, dot));
    }

    const TensorSet& checkpoint_;
    uint64_t layer_;
    std::string_view block_;
    std::string prefix_;
};

Error wrong_shape(const Tensor& tensor, std::string_view expected) {
    return bad_argument("shape", cat("tensor '", printable_name(tensor.name), "' has shape ",
                                     format_shape(tensor.shape), "; it must have ", expected));
}

/// Fills `out` with the tensor as float32; `shape` is what it must have.
std::optional<Error> read_weight(const LayerNames& names, std::string_view name, std::vector<uint64_t> shape,
                                 WeightTensor& out) {
    const Tensor* tensor = names.find(name);
    if (tensor == nullptr) return names.missing(name);
    if (tensor->shape != shape) return wrong_shape(*tensor, format_shape(shape));
    const bool real = tensor->type == FOVEA_F16 || tensor->type == FOVEA_BF16 || tensor->type == FOVEA_F32 ||
                      tensor->type == FOVEA_F64;
    if (!real)
        return unsupported("dtype", cat("tensor '", printable_name(tensor->name), "' is ",
                                        dtype_name(tensor->type), "; it must be f16, bf16, f32 or f64"));
    auto values = to_f32(*tensor);
    if (!values) return values.error();
    out = {tensor->name, std::move(shape), std::move(values.value())};
    return std::nullopt;
}

std::optional<Error> read_optional(const LayerNames& names, std::string_view name,
                                   std::vector<uint64_t> shape, WeightTensor& out) {
    if (names.find(name) == nullptr) return std::nullopt;
    return read_weight(names, name, std::move(shape), out);
}

/// `given`, or the metadata's whole number under `key`, or 0 when there is neither.
Result<uint64_t> config_number(const TensorSet& checkpoint, std::string_view key, uint64_t given) {
    if (given == 0) {
        const std::string* text = checkpoint.find_metadata(key);
        if (text == nullptr) return uint64_t{0};
        const auto number = text->empty() || text->size() > 9 ? std::nullopt : json_unsigned(*text);
        if (!number || *number == 0)
            return bad_argument(std::string(key), cat("metadata ", key, " is '", printable_name(*text),
                                                      "'; it must be an integer of at least 1"));
        given = *number;
    }
    if (given > kMaxModelDim)
        return bad_argument(std::string(key), cat(key, " is ", given, ", the limit is ", kMaxModelDim));
    return given;
}

Error not_given(std::string_view key) {
    return bad_argument(
        std::string(key),
        cat(key, " is missing, and the weights do not tell it; give it, or put it into config.json"));
}

std::optional<Error> check_rank2(const Tensor& tensor) {
    if (tensor.shape.size() != 2 || tensor.shape[0] == 0 || tensor.shape[1] == 0 ||
        tensor.shape[0] > kMaxModelDim || tensor.shape[1] > kMaxModelDim)
        return wrong_shape(tensor, cat("a matrix with sides from 1 to ", kMaxModelDim));
    return std::nullopt;
}

std::optional<Error> check_divides(std::string_view key, uint64_t parts, std::string_view of,
                                   uint64_t whole) {
    if (whole % parts == 0) return std::nullopt;
    return bad_argument(std::string(key), cat(key, " is ", parts, "; it must divide ", of, ", ", whole));
}

/// Heads and widths from the shapes of q_proj and k_proj and from what caller and metadata say; they must
/// agree.
std::optional<Error> llama_sizes(const TensorSet& checkpoint, const LayerNames& names,
                                 const LlamaConfig& config, LlamaAttention& out) {
    const Tensor* q = names.find("q_proj.weight");
    if (q == nullptr) return names.missing("q_proj.weight");
    const Tensor* k = names.find("k_proj.weight");
    if (k == nullptr) return names.missing("k_proj.weight");
    if (auto error = check_rank2(*q)) return error;
    if (auto error = check_rank2(*k)) return error;
    const auto heads = config_number(checkpoint, "num_attention_heads", config.heads);
    if (!heads) return heads.error();
    if (*heads == 0) return not_given("num_attention_heads");
    const auto kv_heads = config_number(checkpoint, "num_key_value_heads", config.kv_heads);
    if (!kv_heads) return kv_heads.error();
    const auto head_dim = config_number(checkpoint, "head_dim", config.head_dim);
    if (!head_dim) return head_dim.error();
    out.embed_dim = q->shape[1];
    out.heads = *heads;
    if (auto error =
            check_divides("num_attention_heads", out.heads, "the rows of q_proj.weight", q->shape[0]))
        return error;
    out.head_dim = q->shape[0] / out.heads;
    if (*head_dim != 0 && *head_dim != out.head_dim)
        return bad_argument("head_dim",
                            cat("head_dim is ", *head_dim, "; it must be ", out.head_dim,
                                ", as q_proj.weight has ", q->shape[0], " rows for ", out.heads, " heads"));
    if (auto error = check_divides("head_dim", out.head_dim, "the rows of k_proj.weight", k->shape[0]))
        return error;
    out.kv_heads = k->shape[0] / out.head_dim;
    if (*kv_heads != 0 && *kv_heads != out.kv_heads)
        return bad_argument("num_key_value_heads", cat("num_key_value_heads is ", *kv_heads, "; it must be ",
                                                       out.kv_heads, ", as k_proj.weight has ", k->shape[0],
                                                       " rows and head_dim is ", out.head_dim));
    return check_divides("num_key_value_heads", out.kv_heads, "num_attention_heads", out.heads);
}

std::optional<Error> llama_theta(const TensorSet& checkpoint, const LlamaConfig& config,
                                 LlamaAttention& out) {
    out.rope_theta = config.rope_theta;
    if (out.rope_theta == 0) {
        if (const std::string* type = checkpoint.find_metadata("rope_scaling"))
            return unsupported(
                "rope_scaling",
                cat("rope_scaling is '", printable_name(*type),
                    "', a scaled rotary embedding, which is not supported here; give rope_theta "
                    "to load the weights without it"));
        const std::string* text = checkpoint.find_metadata("rope_theta");
        if (text == nullptr) return not_given("rope_theta");
        out.rope_theta = parse_number(*text).value_or(0.0);
    }
    if (out.rope_theta > 0 && std::isfinite(out.rope_theta)) return std::nullopt;
    return bad_argument("rope_theta", "rope_theta must be a finite number above 0");
}

}  // namespace
}  // namespace files

using files::LayerNames;

Result<Gpt2Attention> load_gpt2_attention(const TensorSet& checkpoint, uint64_t layer,
                                          const Gpt2Config& config) {
    const LayerNames names(checkpoint, "transformer.", "h.", "attn.", layer);
    const Tensor* fused = names.find("c_attn.weight");
    if (fused == nullptr) return names.missing("c_attn.weight");
    if (auto error = files::check_rank2(*fused)) return *std::move(error);
    const auto heads = files::config_number(checkpoint, "n_head", config.heads);
    if (!heads) return heads.error();
    if (*heads == 0) return files::not_given("n_head");
    Gpt2Attention out;
    out.embed_dim = fused->shape[0];
    out.heads = *heads;
    if (auto error = files::check_divides("n_head", out.heads, "the width of the model", out.embed_dim))
        return *std::move(error);
    out.head_dim = out.embed_dim / out.heads;
    const uint64_t wide = out.embed_dim;
    if (auto error = files::read_weight(names, "c_attn.weight", {wide, 3 * wide}, out.c_attn_weight))
        return *std::move(error);
    if (auto error = files::read_weight(names, "c_attn.bias", {3 * wide}, out.c_attn_bias))
        return *std::move(error);
    if (auto error = files::read_weight(names, "c_proj.weight", {wide, wide}, out.c_proj_weight))
        return *std::move(error);
    if (auto error = files::read_weight(names, "c_proj.bias", {wide}, out.c_proj_bias))
        return *std::move(error);
    return out;
}

Result<LlamaAttention> load_llama_attention(const TensorSet& checkpoint, uint64_t layer,
                                            const LlamaConfig& config) {
    const LayerNames names(checkpoint, "model.", "layers.", "self_attn.", layer);
    LlamaAttention out;
    if (auto error = files::llama_sizes(checkpoint, names, config, out)) return *std::move(error);
    if (auto error = files::llama_theta(checkpoint, config, out)) return *std::move(error);
    // Newer families normalise q and k before the rotation; without that step every number would be wrong.
    for (const std::string_view extra : {"q_norm.weight", "k_norm.weight"})
        if (names.find(extra) != nullptr)
            return files::unsupported("layer",
                                      files::cat("tensor '", printable_name(names.full(extra)),
                                                 "': this is not a Llama block, it normalises q and k"));
    const uint64_t wide = out.embed_dim, q_rows = out.heads * out.head_dim,
                   kv_rows = out.kv_heads * out.head_dim;
    struct Part {
        std::string_view name;
        uint64_t rows, columns;
        WeightTensor* weight;
        WeightTensor* bias;
    };
    const std::array<Part, 4> parts = {{{"q_proj.", q_rows, wide, &out.q_proj, &out.q_bias},
                                        {"k_proj.", kv_rows, wide, &out.k_proj, &out.k_bias},
                                        {"v_proj.", kv_rows, wide, &out.v_proj, &out.v_bias},
                                        {"o_proj.", wide, q_rows, &out.o_proj, &out.o_bias}}};
    for (const Part& part : parts) {
        const std::string weight = files::cat(part.name, "weight"), bias = files::cat(part.name, "bias");
        if (auto error = files::read_weight(names, weight, {part.rows, part.columns}, *part.weight))
            return *std::move(error);
        if (auto error = files::read_optional(names, bias, {part.rows}, *part.bias)) return *std::move(error);
    }
    return out;
}

Result<Gpt2Attention> load_gpt2_attention(const std::filesystem::path& safetensors, uint64_t layer,
                                          const Gpt2Config& config) {
    auto checkpoint = load_safetensors(safetensors);
    if (!checkpoint) return checkpoint.error();
    if (auto error = files::add_model_config_beside(safetensors, checkpoint.value()))
        return *std::move(error);
    auto weights = load_gpt2_attention(checkpoint.value(), layer, config);
    if (!weights) return files::in_file(safetensors, weights.error());
    return weights;
}

Result<LlamaAttention> load_llama_attention(const std::filesystem::path& safetensors, uint64_t layer,
                                            const LlamaConfig& config) {
    auto checkpoint = load_safetensors(safetensors);
    if (!checkpoint) return checkpoint.error();
    if (auto error = files::add_model_config_beside(safetensors, checkpoint.value()))
        return *std::move(error);
    auto weights = load_llama_attention(checkpoint.value(), layer, config);
    if (!weights) return files::in_file(safetensors, weights.error());
    return weights;
}

}  // namespace fovea

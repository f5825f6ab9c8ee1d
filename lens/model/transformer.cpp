#include "model/transformer_parts.hpp"

#include <cmath>

#include <fovea/model/strict.hpp>

namespace fovea {
namespace {

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

float activated(Activation activation, float x) {
    constexpr double kSqrt2OverPi = 0.7978845608028654;
    const auto d = double(x);
    switch (activation) {
        case Activation::gelu:
            return float(d * normal_cdf(d));
        case Activation::gelu_tanh:
            return float(0.5 * d * (1.0 + std::tanh(kSqrt2OverPi * (d + 0.044715 * d * d * d))));
        case Activation::silu:
            return float(d / (1.0 + std::exp(-d)));
        default:
            return x > 0.0f ? x : 0.0f;
    }
}

Linear linear_of(WeightTensor& weight, WeightTensor& bias, WeightLayout layout) {
    Linear layer;
    layer.weight = F32Tensor(std::move(weight.shape), std::move(weight.values));
    layer.layout = layout;
    if (bias) layer.bias = F32Tensor(std::move(bias.shape), std::move(bias.values));
    return layer;
}

// Returns columns [first, first + count) of a layer's result as a separate layer.
Linear columns_of(const Linear& joint, uint64_t first, uint64_t count) {
    Linear layer;
    layer.layout = joint.layout;
    const auto from = joint.weight.values.begin() + int64_t(first * joint.d_in());
    layer.weight = joint.layout == WeightLayout::in_out
                       ? slice_columns(joint.weight, first, count)
                       : F32Tensor({count, joint.d_in()}, {from, from + int64_t(count * joint.d_in())});
    if (joint.has_bias())
        layer.bias = F32Tensor(Shape{count}, {joint.bias.values.begin() + int64_t(first),
                                              joint.bias.values.begin() + int64_t(first + count)});
    return layer;
}

// Checks one block after the other against the width that comes to it.
class Checker {
  public:
    explicit Checker(std::string place) : place_(std::move(place)) {}

    Result<void> block(const Block& b, uint64_t& width, const ModelInput* given) const {
        if (!b.residual && b.order != BlockOrder::pre)
            return wrong(place_ + "order", place_ + "order must be pre in a block without residual sums");
        // A norm after the sum has the sum's width, which is the block's own.
        if (Result<void> r = norm("attention_norm", b.attention_norm, width); !r) return r;
        uint64_t context = 0;
        const bool has_qkv = given && !given->q.values.empty();
        const bool crosses = given && !given->memory.values.empty();
        if (Result<void> r =
                has_qkv ? given_heads(b.attention, *given, context)
                        : heads(b.attention, width, crosses ? given->memory.columns() : width, context);
            !r)
            return r;
        uint64_t out = context;
        if (Result<void> r = layer("output", b.attention.output, out); !r) return r;
        if (b.residual && out != width)
            return refuse("output", out, width, ", the columns that it is added to");
        if (Result<void> r = norm("attention_output_norm", b.attention_output_norm, out); !r) return r;
        if (Result<void> r = norm("feed_forward_norm", b.feed_forward_norm, out); !r) return r;
        width = out;
        return feed_forward(b, width);
    }

    Result<void> norm(const char* name, const Norm& n, uint64_t width) const {
        if (n.kind == NormKind::none) return {};
        for (const F32Tensor* t : {&n.weight, &n.bias})
            if (!t->values.empty() && t->values.size() != width)
                return refuse(name, t->values.size(), width, ", as its input");
        if (!(n.epsilon >= 0)) return wrong(place_ + name, place_ + name + ".epsilon must not be negative");
        return {};
    }

    // An absent layer changes no width.
    Result<void> layer(const char* name, const Linear& l, uint64_t& width) const {
        if (!is_present(l)) return {};
        if (l.d_in() != width) return refuse(name, l.d_in(), width, ", as its input");
        width = l.d_out();
        if (l.has_bias() && l.bias.values.size() != width)
            return refuse(name, l.bias.values.size(), width, ", as its result");
        return {};
    }

  private:
    Error refuse(const std::string& name, uint64_t has, uint64_t needed, const char* of) const {
        return wrong(place_ + name, place_ + name + " has " + std::to_string(has) +
                                        " columns; it must have " + std::to_string(needed) + of);
    }

    Result<void> counts(const AttentionPart& a, uint64_t width) const {
        if (a.heads == 0 || a.kv_heads == 0 || a.heads % a.kv_heads != 0)
            return wrong(place_ + "kv_heads", place_ + "kv_heads is " + std::to_string(a.kv_heads) +
                                                  "; it must divide heads, " + std::to_string(a.heads));
        for (const auto& [name, n] : {std::pair{"query_norm", &a.query_norm}, {"key_norm", &a.key_norm}})
            if (Result<void> r = norm(name, *n, width); !r) return r;
        if (!a.rope) return {};
        const uint64_t rotated = a.rope->rotated(width);
        if (rotated % 2 != 0 || rotated > width)
            return wrong(place_ + "rope", place_ + "heads are " + std::to_string(width) +
                                              " wide; rotary positions need an even width" +
                                              (rotated == width ? "" : " of at most that"));
        if (!a.rope->divisors.empty() && a.rope->divisors.size() != rotated / 2)
            return refuse("rope.divisors", a.rope->divisors.size(), rotated / 2, ", half of a rotated row");
        return {};
    }

    Result<void> heads(const AttentionPart& a, uint64_t width, uint64_t memory, uint64_t& context) const {
        const bool none = !is_present(a.query) && !is_present(a.key) && !is_present(a.value);
        if (none && a.heads != 1)
            return wrong(place_ + "heads", place_ + "heads is " + std::to_string(a.heads) +
                                               "; it must be 1 without projections");
        uint64_t q = width, k = memory, v = memory;
        if (!none && (!is_present(a.query) || !is_present(a.key) || !is_present(a.value)))
            return wrong(place_ + "query",
                         place_ + "query, key and value must be given together or not at all");
        for (const auto& [name, projection, columns] :
             {std::tuple{"query", &a.query, &q}, {"key", &a.key, &k}, {"value", &a.value, &v}})
            if (Result<void> r = layer(name, *projection, *columns); !r) return r;
        if (a.heads == 0 || q % a.heads != 0)
            return refuse("query", q, a.heads, " or a multiple of it, the number of heads");
        if (Result<void> r = counts(a, q / a.heads); !r) return r;
        if (k != q / a.heads * a.kv_heads)
            return refuse("key", k, q / a.heads * a.kv_heads, ", kv_heads times the width of a query");
        if (v % a.kv_heads != 0) return refuse("value", v, a.kv_heads, " or a multiple of it, kv_heads");
        context = v / a.kv_heads * a.heads;
        return {};
    }

    Result<void> given_heads(const AttentionPart& a, const ModelInput& in, uint64_t& context) const {
        const Shape &q = in.q.shape, &k = in.k.shape, &v = in.v.shape;
        if (q.size() != 3 || k.size() != 3) return wrong("q", "q and k must be [heads, tokens, width]");
        for (const uint64_t side : {q[0], q[1], q[2], k[0], k[1]})
            if (side == 0) return wrong("q", "q and k must have at least 1 head, token and column");
        if (q[2] != k[2])
            return wrong("k", "queries are " + std::to_string(q[2]) + " wide, keys " + std::to_string(k[2]) +
                                  "; they must be equal");
        if (q[0] != a.heads || k[0] != a.kv_heads || q[0] % k[0] != 0)
            return wrong("k", std::to_string(q[0]) + " query heads are not a multiple of " +
                                  std::to_string(k[0]) + " key heads");
        if (!in.v.values.empty() && (v.size() != 3 || v[0] != k[0] || v[1] != k[1]))
            return wrong("v", "v must have the " + std::to_string(k[0]) + " heads and " +
                                  std::to_string(k[1]) + " tokens of k");
        context = in.v.values.empty() ? 0 : v[2] * q[0];
        return counts(a, q[2]);
    }

    Result<void> feed_forward(const Block& b, uint64_t& width) const {
        const FeedForward& f = b.feed_forward;
        if (!is_present(f.up)) return {};
        uint64_t middle = width, gate = width, out = 0;
        if (Result<void> r = layer("up", f.up, middle); !r) return r;
        if (Result<void> r = layer("gate", f.gate, gate); !r) return r;
        if (is_present(f.gate) && gate != middle)
            return refuse("gate", gate, middle, ", as the result of up");
        if (!is_present(f.down))
            return wrong(place_ + "down", place_ + "down is missing; a feed-forward part needs up and down");
        out = middle;
        if (Result<void> r = layer("down", f.down, out); !r) return r;
        if (b.residual && out != width)
            return refuse("down", out, width, ", the columns that it is added to");
        width = out;
        return norm("feed_forward_output_norm", b.feed_forward_output_norm, out);
    }

    std::string place_;
};

}  // namespace

F32Tensor normalised(const Norm& norm, F32Tensor x) {
    if (norm.kind == NormKind::none) return x;
    const auto width = double(x.columns());
    for (uint64_t i = 0; i < x.rows(); ++i) {
        const auto row = x.row(i);
        double mean = 0, squares = 0;
        if (norm.kind == NormKind::layer) {
            for (const float value : row) mean += double(value);
            mean /= width;
        }
        for (const float value : row) squares += (double(value) - mean) * (double(value) - mean);
        const double factor = 1.0 / std::sqrt(squares / width + norm.epsilon);
        for (size_t c = 0; c < row.size(); ++c) {
            auto value = float((double(row[c]) - mean) * factor);
            if (!norm.weight.values.empty()) value *= norm.weight.values[c];
            if (!norm.bias.values.empty()) value += norm.bias.values[c];
            row[c] = value;
        }
    }
    return x;
}

void activate(Activation activation, std::span<float> values, const F32Tensor* other) {
    for (float& value : values) value = activated(activation, value);
    for (size_t i = 0; other && i < values.size(); ++i) values[i] *= other->values[i];
}

void softmax_rows(F32Tensor& rows) {
    for (uint64_t i = 0; i < rows.rows(); ++i) {
        const auto row = rows.row(i);
        strict::softmax(std::vector<float>(row.begin(), row.end()), row);
    }
}

const char* norm_name(NormKind kind) { return kind == NormKind::rms ? "RMSNorm" : "LayerNorm"; }

const char* activation_name(Activation activation) {
    constexpr const char* kNames[] = {"gelu", "gelu", "silu", "relu"};
    return kNames[size_t(activation)];
}

Result<void> check_model(const Model& model, const ModelInput& input) {
    if (model.blocks.empty()) return wrong("blocks", "blocks is empty; a model must have at least one");
    const bool given = !input.q.values.empty();
    if (!given && (input.x.rank() != 2 || input.x.values.empty()))
        return wrong("x", "the input must be [tokens, width], both at least 1");
    if (!input.memory.values.empty() && input.memory.rank() != 2)
        return wrong("memory", "the memory must be [tokens, width]");
    uint64_t width = given ? 0 : input.x.columns();
    for (size_t n = 0; n < model.blocks.size(); ++n) {
        const Checker checker(model.blocks.size() > 1 ? "block " + std::to_string(n) + ": " : "");
        if (Result<void> r = checker.block(model.blocks[n], width, n == 0 ? &input : nullptr); !r) return r;
    }
    const Checker checker("");
    if (Result<void> r = checker.norm("final_norm", model.final_norm, width); !r) return r;
    if (Result<void> r = checker.layer("prediction", model.prediction.dense, width); !r) return r;
    if (Result<void> r = checker.norm("prediction.norm", model.prediction.norm, width); !r) return r;
    return checker.layer("unembedding", model.unembedding, width);
}

void cap_logits(double softcap, std::span<float> logits) {
    if (softcap == 0) return;
    for (float& logit : logits) logit = float(softcap * std::tanh(double(logit) / softcap));
}

Result<F32Tensor> embedded(const Embedding& embedding, std::span<const uint32_t> ids, F32Tensor x,
                           uint64_t first) {
    if (embedding.scale != 1)
        for (float& value : x.values) value *= float(embedding.scale);
    const F32Tensor& places = embedding.positions;
    uint64_t next = first;
    for (uint64_t i = 0; i < x.rows() && !places.values.empty(); ++i) {
        const bool is_pad = embedding.pad_token && ids[i] == *embedding.pad_token;
        const uint64_t place = is_pad ? 0 : next++;
        if (!is_pad && place >= places.rows())
            return wrong("ids", "position " + std::to_string(place) + " is past the " +
                                    std::to_string(places.rows()) + " that the model has learned");
        const auto row = is_pad ? embedding.pad_position.row(0) : places.row(place);
        for (size_t c = 0; c < x.columns(); ++c) x.row(i)[c] += row[c];
    }
    return normalised(embedding.norm, std::move(x));
}

Result<F32Tensor> embed(const Model& model, std::span<const uint32_t> ids, uint64_t first) {
    const F32Tensor& table = model.embedding.table;
    F32Tensor x({ids.size(), table.columns()});
    for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= table.rows())
            return wrong("ids", "token " + std::to_string(i) + " has the ID " + std::to_string(ids[i]) +
                                    "; the table has " + std::to_string(table.rows()));
        std::copy(table.row(ids[i]).begin(), table.row(ids[i]).end(), x.row(i).begin());
    }
    return embedded(model.embedding, ids, std::move(x), first);
}

AttentionPart joint_projection(const Linear& joint) {
    const uint64_t width = joint.d_out() / 3;
    AttentionPart part;
    part.query = columns_of(joint, 0, width);
    part.key = columns_of(joint, width, width);
    part.value = columns_of(joint, 2 * width, width);
    return part;
}

Block gpt2_block(Gpt2Attention weights) {
    Block block;
    AttentionPart& part = block.attention;
    part = joint_projection(linear_of(weights.c_attn_weight, weights.c_attn_bias, WeightLayout::in_out));
    part.output = linear_of(weights.c_proj_weight, weights.c_proj_bias, WeightLayout::in_out);
    part.heads = part.kv_heads = uint32_t(weights.heads);
    part.rules.causal = true;
    return block;
}

Block llama_block(LlamaAttention weights, uint64_t first_position) {
    Block block;
    AttentionPart& part = block.attention;
    part.query = linear_of(weights.q_proj, weights.q_bias, WeightLayout::out_in);
    part.key = linear_of(weights.k_proj, weights.k_bias, WeightLayout::out_in);
    part.value = linear_of(weights.v_proj, weights.v_bias, WeightLayout::out_in);
    part.output = linear_of(weights.o_proj, weights.o_bias, WeightLayout::out_in);
    part.heads = uint32_t(weights.heads), part.kv_heads = uint32_t(weights.kv_heads);
    part.rope = Rope{.theta = weights.rope_theta, .first_position = first_position};
    part.rules.causal = true;
    return block;
}

}  // namespace fovea

#include <fovea/model/model_layers.hpp>

#include <cmath>

namespace fovea {
namespace {

Linear linear_of(WeightTensor& weight, WeightTensor& bias, WeightLayout layout) {
    Linear layer;
    layer.weight = F32Tensor(std::move(weight.shape), std::move(weight.values));
    layer.layout = layout;
    if (bias) layer.bias = F32Tensor(std::move(bias.shape), std::move(bias.values));
    return layer;
}

AttentionOptions causal_options(uint64_t head_dim) {
    AttentionOptions options;
    options.scale = ScoreScale::divided_by(std::sqrt(static_cast<double>(head_dim)));
    options.scale_rule = "sqrt(head_dim)";
    options.causal = true;
    return options;
}

}  // namespace

GptAttention gpt2_layer(Gpt2Attention weights, uint64_t context_length) {
    GptAttention layer;
    layer.c_attn = linear_of(weights.c_attn_weight, weights.c_attn_bias, WeightLayout::in_out);
    layer.c_proj = linear_of(weights.c_proj_weight, weights.c_proj_bias, WeightLayout::in_out);
    layer.head_count = weights.heads;
    layer.options = causal_options(weights.head_dim);
    layer.options.context_length = context_length;
    return layer;
}

GroupedQueryAttention llama_layer(LlamaAttention weights, uint64_t first_position) {
    GroupedQueryAttention layer;
    layer.query = linear_of(weights.q_proj, weights.q_bias, WeightLayout::out_in);
    layer.key = linear_of(weights.k_proj, weights.k_bias, WeightLayout::out_in);
    layer.value = linear_of(weights.v_proj, weights.v_bias, WeightLayout::out_in);
    layer.output = linear_of(weights.o_proj, weights.o_bias, WeightLayout::out_in);
    layer.head_count = weights.heads;
    layer.kv_head_count = weights.kv_heads;
    layer.rope.theta = weights.rope_theta;
    layer.rope.first_position = first_position;
    layer.options = causal_options(weights.head_dim);
    return layer;
}

}  // namespace fovea

// The names of each family's weights. Included only by families.cpp.
#pragma once

#include "model/checkpoint/families.hpp"

namespace fovea {

constexpr WeightNames kGpt2 = {.roots = {"", "transformer."},
                               .table = "wte",
                               .positions = "wpe",
                               .attention_norm = "h.{}.ln_1",
                               .joint = "h.{}.attn.c_attn",
                               .attention_output = "h.{}.attn.c_proj",
                               .feed_forward_norm = "h.{}.ln_2",
                               .up = "h.{}.mlp.c_fc",
                               .down = "h.{}.mlp.c_proj",
                               .final_norm = "ln_f",
                               .unembedding = "lm_head",
                               .ignored = {".attn.bias", ".attn.masked_bias"}};

constexpr WeightNames kLlama = {.roots = {"model.", "", "language_model.model.", "model.language_model."},
                                .table = "embed_tokens",
                                .attention_norm = "layers.{}.input_layernorm",
                                .query = "layers.{}.self_attn.q_proj",
                                .key = "layers.{}.self_attn.k_proj",
                                .value = "layers.{}.self_attn.v_proj",
                                .attention_output = "layers.{}.self_attn.o_proj",
                                .feed_forward_norm = "layers.{}.post_attention_layernorm",
                                .up = "layers.{}.mlp.up_proj",
                                .gate = "layers.{}.mlp.gate_proj",
                                .down = "layers.{}.mlp.down_proj",
                                .final_norm = "norm",
                                .unembedding = "lm_head",
                                .ignored = {".rotary_emb.inv_freq"}};

// Llama's names with norms of queries and keys.
constexpr WeightNames with_head_norms(WeightNames names) {
    names.query_norm = "layers.{}.self_attn.q_norm";
    names.key_norm = "layers.{}.self_attn.k_norm";
    return names;
}
// With norms on both sides of each part, too.
constexpr WeightNames with_output_norms(WeightNames names) {
    names.attention_output_norm = "layers.{}.post_attention_layernorm";
    names.feed_forward_norm = "layers.{}.pre_feedforward_layernorm";
    names.feed_forward_output_norm = "layers.{}.post_feedforward_layernorm";
    return names;
}
constexpr WeightNames with_gate_up(WeightNames names) {
    names.up = names.gate = {};
    names.gate_up = "layers.{}.mlp.gate_up_proj";
    return names;
}
constexpr WeightNames with_joint_layers(WeightNames names) {
    names.query = names.key = names.value = {};
    names.joint = "layers.{}.self_attn.qkv_proj";
    return with_gate_up(names);
}
// GLM-4's norms on both sides of each part.
constexpr WeightNames with_glm_norms(WeightNames names) {
    names.attention_output_norm = "layers.{}.post_self_attn_layernorm";
    names.feed_forward_output_norm = "layers.{}.post_mlp_layernorm";
    return names;
}
constexpr WeightNames kQwen3 = with_head_norms(kLlama);
constexpr WeightNames kGemma2 = with_output_norms(kLlama);
constexpr WeightNames kGemma3 = with_head_norms(kGemma2);
constexpr WeightNames kPhi3 = with_joint_layers(kLlama);
constexpr WeightNames kGlm4 = with_glm_norms(with_gate_up(kLlama));

constexpr WeightNames kNeoX = {
    .roots = {"gpt_neox.", ""},
    .table = "embed_in",
    .attention_norm = "layers.{}.input_layernorm",
    .joint = "layers.{}.attention.query_key_value",
    .attention_output = "layers.{}.attention.dense",
    .feed_forward_norm = "layers.{}.post_attention_layernorm",
    .up = "layers.{}.mlp.dense_h_to_4h",
    .down = "layers.{}.mlp.dense_4h_to_h",
    .final_norm = "final_layer_norm",
    .unembedding = "embed_out",
    .ignored = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"}};

constexpr WeightNames kBert = {.roots = {"", "bert.", "roberta."},
                               .table = "embeddings.word_embeddings",
                               .positions = "embeddings.position_embeddings",
                               .types = "embeddings.token_type_embeddings",
                               .table_norm = "embeddings.LayerNorm",
                               .attention_norm = "encoder.layer.{}.attention.output.LayerNorm",
                               .query = "encoder.layer.{}.attention.self.query",
                               .key = "encoder.layer.{}.attention.self.key",
                               .value = "encoder.layer.{}.attention.self.value",
                               .attention_output = "encoder.layer.{}.attention.output.dense",
                               .feed_forward_norm = "encoder.layer.{}.output.LayerNorm",
                               .up = "encoder.layer.{}.intermediate.dense",
                               .down = "encoder.layer.{}.output.dense",
                               .unembedding = "cls.predictions.decoder",
                               .head_dense = "cls.predictions.transform.dense",
                               .head_norm = "cls.predictions.transform.LayerNorm",
                               .head_bias = "cls.predictions.bias",
                               .ignored = {"embeddings.position_ids", "embeddings.token_type_ids"}};
constexpr WeightNames with_roberta_head(WeightNames names) {
    names.unembedding = "lm_head.decoder";
    names.head_dense = "lm_head.dense";
    names.head_norm = "lm_head.layer_norm";
    names.head_bias = "lm_head.bias";
    return names;
}
constexpr WeightNames kModernBert = {.roots = {"model.", ""},
                                     .table = "embeddings.tok_embeddings",
                                     .table_norm = "embeddings.norm",
                                     .attention_norm = "layers.{}.attn_norm",
                                     .joint = "layers.{}.attn.Wqkv",
                                     .attention_output = "layers.{}.attn.Wo",
                                     .feed_forward_norm = "layers.{}.mlp_norm",
                                     .gate_up = "layers.{}.mlp.Wi",
                                     .down = "layers.{}.mlp.Wo",
                                     .final_norm = "final_norm",
                                     .unembedding = "decoder",
                                     .head_dense = "head.dense",
                                     .head_norm = "head.norm"};

constexpr WeightNames kVit = {
    .roots = {"vit.", ""},
    .attention_norm = "encoder.layer.{}.layernorm_before",
    .query = "encoder.layer.{}.attention.attention.query",
    .key = "encoder.layer.{}.attention.attention.key",
    .value = "encoder.layer.{}.attention.attention.value",
    .attention_output = "encoder.layer.{}.attention.output.dense",
    .feed_forward_norm = "encoder.layer.{}.layernorm_after",
    .up = "encoder.layer.{}.intermediate.dense",
    .down = "encoder.layer.{}.output.dense",
    .final_norm = "layernorm",
    .patches = "embeddings.patch_embeddings.projection",
    .picture_row = "embeddings.cls_token",
    .patch_positions = "embeddings.position_embeddings",
    .unembedding = "classifier",
    .ignored = {"pooler.dense.weight", "pooler.dense.bias", "embeddings.mask_token"}};

// Models that learned a task: of attention only.
constexpr WeightNames kLearned = {.roots = {""},
                                  .table = "embedding",
                                  .positions = "positions",
                                  .attention_norm = "layers.{}.norm",
                                  .query = "layers.{}.query",
                                  .key = "layers.{}.key",
                                  .value = "layers.{}.value",
                                  .attention_output = "layers.{}.output",
                                  .final_norm = "final_norm",
                                  .unembedding = "unembedding"};

constexpr WeightNames kGguf = {.roots = {""},
                               .table = "token_embd",
                               .positions = "position_embd",
                               .types = "token_types",
                               .table_norm = "token_embd_norm",
                               .attention_norm = "blk.{}.attn_norm",
                               .query = "blk.{}.attn_q",
                               .key = "blk.{}.attn_k",
                               .value = "blk.{}.attn_v",
                               .joint = "blk.{}.attn_qkv",
                               .attention_output = "blk.{}.attn_output",
                               .query_norm = "blk.{}.attn_q_norm",
                               .key_norm = "blk.{}.attn_k_norm",
                               .attention_output_norm = "blk.{}.post_attention_norm",
                               .feed_forward_norm = "blk.{}.ffn_norm",
                               .up = "blk.{}.ffn_up",
                               .gate = "blk.{}.ffn_gate",
                               .gate_up = "blk.{}.ffn_up",
                               .down = "blk.{}.ffn_down",
                               .feed_forward_output_norm = "blk.{}.post_ffw_norm",
                               .final_norm = "output_norm",
                               .unembedding = "output",
                               .ignored = {"rope_freqs.weight", "rope_factors_long.weight",
                                           "rope_factors_short.weight", ".attn_rot_embd.weight"}};

// Returns the names for encoders with norms after the sums, which have their own names.
constexpr WeightNames with_norms_behind(WeightNames names) {
    names.attention_norm = "blk.{}.attn_output_norm";
    names.feed_forward_norm = "blk.{}.layer_output_norm";
    names.final_norm = {};
    return names;
}
constexpr WeightNames kGgufBert = with_norms_behind(kGguf);

constexpr WeightNames kRoberta = {with_roberta_head(kBert)};

}  // namespace fovea

#include <limits>

#include "inspect/lessons/recipes.hpp"

namespace fovea::recipes {
namespace {

// Adds query_2, key_2, value_2 (the tutorials count tokens from 1), rows of the layer's projections.
void add_projected_token(LessonBuilder& builder, const LayerStages& layer) {
    const uint64_t token = builder.config().query;
    const std::string number = std::to_string(token + 1);
    const char* names[3][3] = {
        {"query_", "W_query", "queries"}, {"key_", "W_key", "keys"}, {"value_", "W_value", "values"}};
    for (const auto& [prefix, weight, stage] : names)
        builder.add(prefix + number, prefix + number + " = inputs[" + std::to_string(token) + "] " + weight,
                    row_of(layer.at(stage), token));
}

}  // namespace

Result<void> embedding(LessonBuilder&) { return {}; }

Result<void> project_one(LessonBuilder& builder) {
    const Result<LayerStages> layer = builder.layer(builder.input(), builder.self_attention(false));
    if (layer) add_projected_token(builder, *layer);
    return layer ? Result<void>() : layer.error();
}

Result<void> one_query(LessonBuilder& builder) {
    const Result<LayerStages> layer = builder.layer(builder.input(), builder.self_attention(false));
    if (!layer) return layer.error();
    add_projected_token(builder, *layer);
    builder.add(*layer, {"keys", "values"});
    Result<LessonBuilder::OneQuery> made = builder.attend(builder.at("query_2"), builder.at("keys"),
                                                          builder.at("values"), builder.config().scale);
    if (!made) return made.error();
    builder.add("score_22", "score_22 = query_2 . keys[1]",
                scalar(made->scores.values[builder.config().query]));
    builder.add("scores_2", "scores_2[i] = query_2 . keys[i]", std::move(made->scores));
    builder.add("scaled_scores_2", "scaled_scores_2 = scores_2 / " + builder.config().scale_rule,
                std::move(made->scaled));
    builder.add("weights_2", "weights_2 = softmax(scaled_scores_2)", std::move(made->weights));
    builder.add("context_2", "context_2 = sum of weights_2[i] values[i]", std::move(made->context));
    return {};
}

Result<void> self_attention(LessonBuilder& builder) {
    Result<LayerStages> layer = builder.layer(builder.input(), builder.self_attention(false));
    if (!layer) return layer.error();
    builder.add(std::move(*layer), [&](const std::string& name) {
        return name == "context" && !builder.config().result.empty() ? builder.config().result : name;
    });
    return {};
}

Result<void> causal_mask(LessonBuilder& builder) {
    const F32Tensor x = builder.input();
    const Result<LayerStages> layer = builder.layer(x, builder.self_attention(true));
    if (!layer) return layer.error();
    const F32Tensor tril = lower_triangle(x.shape[0]);
    F32Tensor additive = tril;
    for (float& value : additive.values) {
        value = value != 0.0f ? 0.0f : -std::numeric_limits<float>::infinity();
    }
    builder.add("scaled_scores", "scaled_scores = scores / " + builder.config().scale_rule,
                layer->at("scaled_scores"));
    builder.add("mask_tril", "mask_tril = 1 where the key is not after the query", tril);
    builder.add("mask_additive", "mask_additive = 0 where mask_tril is 1, else -inf", std::move(additive));
    builder.add("masked_scores", "masked_scores = scaled_scores + mask_additive", layer->at("masked_scores"));
    return {};
}

Result<void> causal_weights(LessonBuilder& builder) {
    const F32Tensor x = builder.input();
    const Result<LayerStages> unmasked = builder.layer(x, builder.self_attention(false));
    if (!unmasked) return unmasked.error();
    builder.add(*unmasked, {"queries", "keys", "values", "scores", "scaled_scores", "weights"});

    Result<LayerStages> after = builder.renormalised(x, builder.self_attention(false));
    if (!after) return after.error();
    builder.add(std::move(*after));

    const Result<LayerStages> before = builder.layer(x, builder.self_attention(true));
    if (!before) return before.error();
    builder.add("mask_triu", "mask_triu = 1 where the key comes after the query",
                strictly_upper_triangle(x.shape[0]));
    builder.add(*before, [](const std::string& name) {
        return name == "weights"                                               ? "causal_weights"
               : name.find("masked") != std::string::npos || name == "context" ? name
                                                                               : "";
    });
    return {};
}

Result<void> causal_attention(LessonBuilder& builder) {
    const Result<LayerStages> layer = builder.layer(builder.input(), builder.self_attention(true));
    if (!layer) return layer.error();
    if (builder.dropout_draw() == nullptr) {
        builder.add(*layer);
        return {};
    }
    // In training the contexts come after the dropout.
    builder.add(*layer, [](const std::string& name) { return name == "context" ? "" : name; });
    builder.add("keys_transposed", "keys_transposed = keys^T, per batch entry",
                transposed(layer->at("keys")));
    add_dropout_variants(builder, *layer, true);
    return {};
}

Result<void> stacked_heads(LessonBuilder& builder) {
    const F32Tensor x = builder.input();
    std::vector<F32Tensor> contexts;
    for (uint64_t h = 0; h < builder.config().heads; ++h) {
        const std::string prefix = "head" + std::to_string(h) + ".";
        Result<LayerStages> layer = builder.layer(x, builder.self_attention(true, prefix));
        if (!layer) return layer.error();
        contexts.push_back(layer->at("context"));
        for (LayerStage& stage : *layer)
            stage.name = prefix + stage.name, stage.formula = prefix + stage.formula;
        builder.add(std::move(*layer));
    }
    builder.add("output", "output = the heads' contexts side by side", concat_columns(contexts));
    return {};
}

Result<void> split_heads(LessonBuilder& builder) {
    AttentionPart part = builder.self_attention(true);
    part.output = builder.linear("out_proj_weight", "out_proj_bias");
    part.heads = part.kv_heads = uint32_t(builder.config().heads);
    Result<LayerStages> layer = builder.layer(builder.input(), part);
    if (!layer) return layer.error();
    builder.add(std::move(*layer));
    const F32Tensor heads = builder.at("context_heads");
    const uint64_t batch = heads.shape[0], head_count = heads.shape[1], tokens = heads.shape[2];
    builder.add("mask", "mask = True where the key comes after the query", strictly_upper_triangle(tokens));
    builder.add("context_by_token", "context_by_token = context_heads, tokens before heads",
                reshaped(merge_heads(heads), {batch, tokens, head_count, heads.shape[3]}));
    return {};
}

Result<void> gpt_attention(LessonBuilder& builder) {
    const Linear joint = builder.linear("c_attn_weight", "c_attn_bias");
    AttentionPart part = joint_projection(joint);
    part.output = builder.linear("c_proj_weight", "c_proj_bias");
    part.heads = part.kv_heads = uint32_t(builder.config().heads);
    part.rules.causal = true;
    Result<LayerStages> layer = builder.layer(builder.input(), part);
    if (!layer) return layer.error();
    const F32Tensor parts[] = {layer->at("queries"), layer->at("keys"), layer->at("values")};
    builder.add("qkv",
                std::string("qkv = ") + (builder.has("X") ? "X" : "inputs") + " c_attn_weight" +
                    (joint.layout == WeightLayout::out_in ? "^T" : "") + (joint.has_bias() ? " + bias" : ""),
                concat_columns(parts));
    builder.say("out_proj_weight", "c_proj_weight");
    builder.add(std::move(*layer), [](const std::string& name) {
        return name == "queries" || name == "keys" || name == "values" ? "" : name;
    });
    return {};
}

}  // namespace fovea::recipes

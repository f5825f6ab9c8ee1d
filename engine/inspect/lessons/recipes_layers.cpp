#include <limits>

#include "inspect/lessons/recipes.hpp"

namespace fovea::recipes {
namespace {

// The row of the query token after one projection, [d_out].
Result<F32Tensor> project_query_token(LessonBuilder& builder, const char* weight) {
    const F32Tensor token = as_row(row_of(builder.at("inputs"), builder.config().query));
    Result<F32Tensor> projected = builder.executor().linear(token, builder.linear(weight));
    if (!projected) return projected;
    return as_vector(std::move(*projected));
}

// Adds query_2, key_2, value_2 (the tutorials count tokens from 1).
Result<void> add_projected_token(LessonBuilder& builder) {
    const uint64_t token = builder.config().query;
    const std::string number = std::to_string(token + 1);
    const char* names[3][2] = {{"query_", "W_query"}, {"key_", "W_key"}, {"value_", "W_value"}};
    for (const auto& [prefix, weight] : names) {
        Result<F32Tensor> projected = project_query_token(builder, weight);
        if (!projected) return projected.error();
        builder.add(prefix + number, prefix + number + " = inputs[" + std::to_string(token) + "] " + weight,
                    std::move(*projected));
    }
    return {};
}

}  // namespace

Result<void> embedding(LessonBuilder&) { return {}; }

Result<void> project_one(LessonBuilder& builder) { return add_projected_token(builder); }

Result<void> one_query(LessonBuilder& builder) {
    if (Result<void> ok = add_projected_token(builder); !ok) return ok;
    LayerTrace projections = LayerTrace::only({"keys", "values"});
    if (const auto ok =
            builder.self_attention(false).forward(builder.executor(), builder.input(), projections);
        !ok) {
        return ok.error();
    }
    builder.add(projections);
    const F32Tensor query = as_row(builder.at("query_2")), keys = builder.at("keys"),
                    values = builder.at("values");
    Result<AttentionResult> raw = builder.attention(query, keys, values, {}, FOVEA_OUTPUT_SCORES);
    if (!raw) return raw.error();
    Result<AttentionResult> scaled =
        builder.attention(query, keys, values, builder.config().scale,
                          FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_O);
    if (!scaled) return scaled.error();
    builder.add("score_22", "score_22 = query_2 . keys[1]",
                scalar(raw->scores.values[builder.config().query]));
    builder.add("scores_2", "scores_2[i] = query_2 . keys[i]", as_vector(std::move(raw->scores)));
    builder.add("scaled_scores_2", "scaled_scores_2 = scores_2 / " + builder.config().scale_rule,
                as_vector(std::move(scaled->scores)));
    builder.add("weights_2", "weights_2 = softmax(scaled_scores_2)", as_vector(std::move(scaled->weights)));
    builder.add("context_2", "context_2 = sum of weights_2[i] values[i]", as_vector(std::move(scaled->o)));
    return {};
}

Result<void> self_attention(LessonBuilder& builder) {
    LayerTrace trace = LayerTrace::everything();
    const F32Tensor x = builder.input();
    if (const auto ok = builder.self_attention(false).forward(builder.executor(), x, trace); !ok)
        return ok.error();
    builder.add(trace, [&](const std::string& name) {
        return name == "context" && !builder.config().result.empty() ? builder.config().result : name;
    });
    return {};
}

Result<void> causal_mask(LessonBuilder& builder) {
    LayerTrace trace = LayerTrace::only({"scaled_scores", "masked_scores"});
    const F32Tensor x = builder.input();
    if (const auto ok = builder.self_attention(true).forward(builder.executor(), x, trace); !ok)
        return ok.error();
    const F32Tensor tril = lower_triangle(x.shape[0]);
    F32Tensor additive = tril;
    for (float& value : additive.values) {
        value = value != 0.0f ? 0.0f : -std::numeric_limits<float>::infinity();
    }
    builder.add("scaled_scores", "scaled_scores = scores / " + builder.config().scale_rule,
                *trace.find("scaled_scores"));
    builder.add("mask_tril", "mask_tril = 1 where the key is not after the query", tril);
    builder.add("mask_additive", "mask_additive = 0 where mask_tril is 1, else -inf", std::move(additive));
    builder.add("masked_scores", "masked_scores = scaled_scores + mask_additive",
                *trace.find("masked_scores"));
    return {};
}

Result<void> causal_weights(LessonBuilder& builder) {
    const F32Tensor x = builder.input();
    LayerTrace unmasked =
        LayerTrace::only({"queries", "keys", "values", "scores", "scaled_scores", "weights"});
    if (const auto ok = builder.self_attention(false).forward(builder.executor(), x, unmasked); !ok)
        return ok.error();
    builder.add(unmasked);

    LayerTrace after = LayerTrace::only({"mask_tril", "masked_simple", "row_sums", "masked_simple_norm"});
    if (const auto ok = builder.self_attention(false).forward_renormalised(builder.executor(), x, after);
        !ok) {
        return ok.error();
    }
    builder.add(after);

    LayerTrace before = LayerTrace::only({"masked_scores", "scaled_masked_scores", "weights", "context"});
    if (const auto ok = builder.self_attention(true).forward(builder.executor(), x, before); !ok)
        return ok.error();
    builder.add("mask_triu", "mask_triu = 1 where the key comes after the query",
                strictly_upper_triangle(x.shape[0]));
    builder.add(before, [](const std::string& name) { return name == "weights" ? "causal_weights" : name; });
    return {};
}

Result<void> causal_attention(LessonBuilder& builder) {
    const F32Tensor x = builder.input();
    const SelfAttention layer = builder.self_attention(true);
    const bool drops = builder.dropout_draw() != nullptr;
    LayerTrace trace = LayerTrace::everything();
    if (const auto ok = layer.forward(builder.executor(), x, trace); !ok) return ok.error();
    const F32Tensor keys = *trace.find("keys");
    if (!drops) {
        builder.add(trace);
        return {};
    }
    // In training the contexts come after the dropout.
    builder.add(trace, [](const std::string& name) { return name == "context" ? "" : name; });
    builder.add("keys_transposed", "keys_transposed = keys^T, per batch entry", transposed(keys));
    return add_dropout_variants(builder, layer, true);
}

Result<void> stacked_heads(LessonBuilder& builder) {
    StackedHeads layer;
    for (uint64_t h = 0; h < builder.config().heads; ++h) {
        layer.heads.push_back(builder.self_attention(true, "head" + std::to_string(h) + "."));
    }
    LayerTrace trace = LayerTrace::everything();
    const F32Tensor x = builder.input();
    if (const auto ok = layer.forward(builder.executor(), x, trace); !ok) return ok.error();
    builder.add(trace);
    return {};
}

Result<void> split_heads(LessonBuilder& builder) {
    const MultiHeadAttention layer{
        builder.linear("W_query"), builder.linear("W_key"),
        builder.linear("W_value"), builder.linear("out_proj_weight", "out_proj_bias"),
        builder.config().heads,    builder.options(true)};
    LayerTrace trace = LayerTrace::everything();
    const F32Tensor x = builder.input();
    if (const auto ok = layer.forward(builder.executor(), x, trace); !ok) return ok.error();
    builder.add(trace);
    const F32Tensor heads = builder.at("context_heads");
    const uint64_t batch = heads.shape[0], head_count = heads.shape[1], tokens = heads.shape[2];
    builder.add("mask", "mask = True where the key comes after the query", strictly_upper_triangle(tokens));
    builder.add("context_by_token", "context_by_token = context_heads, tokens before heads",
                reshaped(merge_heads(heads), {batch, tokens, head_count, heads.shape[3]}));
    return {};
}

Result<void> gpt_attention(LessonBuilder& builder) {
    const GptAttention layer{builder.linear("c_attn_weight", "c_attn_bias"),
                             builder.linear("c_proj_weight", "c_proj_bias"), builder.config().heads,
                             builder.options(true)};
    LayerTrace trace = LayerTrace::everything();
    const F32Tensor x = builder.input();
    if (const auto ok = layer.forward(builder.executor(), x, trace); !ok) return ok.error();
    builder.add(trace);
    return {};
}

}  // namespace fovea::recipes

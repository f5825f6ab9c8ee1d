#include <fovea/model/strict.hpp>

#include <algorithm>

#include "inspect/lessons/recipes.hpp"

namespace fovea::recipes {
namespace {

// Adds the query token and its scores against all tokens; returns all of its attention.
Result<LessonBuilder::OneQuery> add_query_and_scores(LessonBuilder& builder) {
    const F32Tensor inputs = builder.at("inputs");
    const uint64_t query = builder.config().query;
    builder.add("query", "query = inputs[" + std::to_string(query) + "]", row_of(inputs, query));
    Result<LessonBuilder::OneQuery> result = builder.attend(builder.at("query"), inputs, inputs);
    if (!result) return result.error();
    builder.add("scores", "scores[i] = inputs[i] . query", result->scores);
    return result;
}

Result<LessonBuilder::OneQuery> attention_of_query(LessonBuilder& builder) {
    const F32Tensor& inputs = builder.at("inputs");
    return builder.attend(row_of(inputs, builder.config().query), inputs, inputs);
}

F32Tensor divided_by_sum(F32Tensor values) {
    const float sum = strict::sum(values.values);
    for (float& value : values.values) value /= sum;
    return values;
}

F32Tensor exponentials(F32Tensor values) {
    for (float& value : values.values) value = strict::exp(value);
    return values;
}

}  // namespace

Result<void> softmax_curve(LessonBuilder& builder) {
    const uint64_t points = builder.config().points;
    // Scores [x, 0] are a product with keys 1 and 0; the first weight is the value of key 1.
    F32Tensor x({points, 1});
    const F32Tensor keys({2, 1}, {1.0f, 0.0f});
    for (uint64_t i = 0; i < points; ++i) {
        x.values[i] =
            static_cast<float>(-5.0 + 10.0 * static_cast<double>(i) / static_cast<double>(points - 1));
    }
    Result<LessonBuilder::OneQuery> result = builder.attend(x, keys, keys);
    if (!result) return result.error();
    builder.add("x", "x = " + std::to_string(points) + " points from -5 to 5", as_vector(x));
    builder.add("y", "y = softmax([x, 0])[0] = 1 / (1 + exp(-x))",
                as_vector(slice_columns(result->weights, 0, 1)));
    return {};
}

Result<void> scores_of_one(LessonBuilder& builder) {
    if (const auto made = add_query_and_scores(builder); !made) return made.error();
    if (builder.config().shows_zeros) {
        builder.add("query_0", "query_0 = query[0]", scalar(builder.at("query").values[0]));
        builder.add("zeros", "zeros = the context before anything is added", F32Tensor(Shape{3}));
    }
    return {};
}

Result<void> normalisation(LessonBuilder& builder) {
    const Result<LessonBuilder::OneQuery> result = attention_of_query(builder);
    if (!result) return result.error();
    const F32Tensor& scores = result->scores;
    builder.add("scores", "scores[i] = inputs[i] . query", scores);
    const auto add = [&](const char* weights_name, const char* formula, const char* sum_name,
                         F32Tensor weights) {
        const float sum = strict::sum(weights.values);
        builder.add(weights_name, formula, std::move(weights));
        builder.add(sum_name, std::string(sum_name) + " = sum(" + weights_name + ")", scalar(sum));
    };
    add("weights_by_sum", "weights_by_sum = scores / sum(scores)", "sum_by_sum", divided_by_sum(scores));
    add("weights_naive", "weights_naive = exp(scores) / sum(exp(scores))", "sum_naive",
        divided_by_sum(exponentials(scores)));
    add("weights", "weights = softmax(scores), the largest score subtracted first", "sum", result->weights);
    return {};
}

Result<void> context_of_one(LessonBuilder& builder) {
    const bool by_sum = builder.config().normalise == "sum";
    Result<LessonBuilder::OneQuery> result = attention_of_query(builder);
    if (!result) return result.error();
    const F32Tensor weights = by_sum ? divided_by_sum(result->scores) : result->weights;
    if (by_sum)
        result->context =
            as_vector(strict::product(reshaped(weights, {1, weights.values.size()}), builder.at("inputs")));
    builder.add("scores", "scores[i] = inputs[i] . query", std::move(result->scores));
    builder.add("weights", by_sum ? "weights = scores / sum(scores)" : "weights = softmax(scores)", weights);
    builder.add("context", "context = sum of weights[i] inputs[i]", std::move(result->context));
    return {};
}

Result<void> simple_attention(LessonBuilder& builder) {
    Result<LessonBuilder::OneQuery> result = add_query_and_scores(builder);
    if (!result) return result.error();
    const float sum = strict::sum(result->weights.values);
    builder.add("weights", "weights = softmax(scores)", std::move(result->weights));
    builder.add("sum", "sum = sum(weights)", scalar(sum));
    builder.add("context", "context = sum of weights[i] inputs[i]", std::move(result->context));
    return {};
}

Result<void> all_tokens(LessonBuilder& builder) {
    Result<LayerStages> layer = builder.layer(builder.at("inputs"), AttentionPart{});
    if (!layer) return layer.error();
    builder.say("queries", "inputs");
    builder.say("keys", "inputs");
    builder.add(std::move(*layer));
    return {};
}

Result<void> batched_product(LessonBuilder& builder) {
    const Result<LayerStages> layer = builder.layer(builder.at("a"), AttentionPart{});
    if (!layer) return layer.error();
    builder.add("product", "product = a a^T, each matrix of the batch by itself", layer->at("scores"));
    return {};
}

Result<void> mask(LessonBuilder& builder) {
    builder.add("mask_triu", "mask_triu = 1 where the key comes after the query",
                strictly_upper_triangle(builder.config().context_length));
    return {};
}

}  // namespace fovea::recipes

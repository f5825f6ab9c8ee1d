#include <fovea/model/strict.hpp>

#include <algorithm>

#include "inspect/lessons/recipes.hpp"

namespace fovea::recipes {
namespace {

// Scores of the query token against all tokens, [tokens].
Result<F32Tensor> add_query_and_scores(LessonBuilder& builder) {
    const F32Tensor inputs = builder.at("inputs");
    const uint64_t query = builder.config().query;
    builder.add("query", "query = inputs[" + std::to_string(query) + "]", row_of(inputs, query));
    Result<AttentionResult> result =
        builder.attention(as_row(builder.at("query")), inputs, inputs, {}, FOVEA_OUTPUT_SCORES);
    if (!result) return result.error();
    F32Tensor scores = as_vector(std::move(result->scores));
    builder.add("scores", "scores[i] = inputs[i] . query", scores);
    return scores;
}

Result<AttentionResult> attention_of_query(LessonBuilder& builder, uint32_t outputs) {
    const F32Tensor& inputs = builder.at("inputs");
    return builder.attention(as_row(row_of(inputs, builder.config().query)), inputs, inputs, {}, outputs);
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
    Result<AttentionResult> result = builder.attention(x, keys, keys, {}, FOVEA_OUTPUT_WEIGHTS);
    if (!result) return result.error();
    builder.add("x", "x = " + std::to_string(points) + " points from -5 to 5", as_vector(x));
    builder.add("y", "y = softmax([x, 0])[0] = 1 / (1 + exp(-x))",
                as_vector(slice_columns(result->weights, 0, 1)));
    return {};
}

Result<void> scores_of_one(LessonBuilder& builder) {
    const Result<F32Tensor> scores = add_query_and_scores(builder);
    if (!scores) return scores.error();
    if (builder.config().shows_zeros) {
        builder.add("query_0", "query_0 = query[0]", scalar(builder.at("query").values[0]));
        builder.add("zeros", "zeros = the context before anything is added", F32Tensor(Shape{3}));
    }
    return {};
}

Result<void> normalisation(LessonBuilder& builder) {
    const Result<AttentionResult> result =
        attention_of_query(builder, FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_WEIGHTS);
    if (!result) return result.error();
    const F32Tensor scores = as_vector(result->scores);
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
    add("weights", "weights = softmax(scores), the largest score subtracted first", "sum",
        as_vector(result->weights));
    return {};
}

Result<void> context_of_one(LessonBuilder& builder) {
    const bool by_sum = builder.config().normalise == "sum";
    Result<AttentionResult> result =
        attention_of_query(builder, FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_O);
    if (!result) return result.error();
    F32Tensor weights = by_sum ? divided_by_sum(result->scores) : result->weights;
    F32Tensor context = result->o;
    if (by_sum) {
        Result<F32Tensor> weighed = builder.product(weights, builder.at("inputs"));
        if (!weighed) return weighed.error();
        context = std::move(*weighed);
    }
    builder.add("scores", "scores[i] = inputs[i] . query", as_vector(std::move(result->scores)));
    builder.add("weights", by_sum ? "weights = scores / sum(scores)" : "weights = softmax(scores)",
                as_vector(std::move(weights)));
    builder.add("context", "context = sum of weights[i] inputs[i]", as_vector(std::move(context)));
    return {};
}

Result<void> simple_attention(LessonBuilder& builder) {
    const Result<F32Tensor> scores = add_query_and_scores(builder);
    if (!scores) return scores.error();
    Result<AttentionResult> result = attention_of_query(builder, FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_O);
    if (!result) return result.error();
    const float sum = strict::sum(result->weights.values);
    builder.add("weights", "weights = softmax(scores)", as_vector(std::move(result->weights)));
    builder.add("sum", "sum = sum(weights)", scalar(sum));
    builder.add("context", "context = sum of weights[i] inputs[i]", as_vector(std::move(result->o)));
    return {};
}

Result<void> all_tokens(LessonBuilder& builder) {
    LayerTrace trace = LayerTrace::everything();
    const Result<F32Tensor> context =
        simplified_attention(builder.executor(), builder.at("inputs"), Normalisation::softmax, trace);
    if (!context) return context.error();
    builder.say("queries", "inputs");
    builder.say("keys", "inputs");
    builder.add(trace);
    return {};
}

Result<void> batched_product(LessonBuilder& builder) {
    const F32Tensor a = builder.at("a");
    AttentionProblem problem;
    problem.q = problem.k = problem.v = &a;
    problem.call.outputs = FOVEA_OUTPUT_SCORES;
    Result<AttentionResult> result = builder.executor().attention(problem);
    if (!result) return result.error();
    builder.add("product", "product = a a^T, each matrix of the batch by itself", std::move(result->scores));
    return {};
}

Result<void> mask(LessonBuilder& builder) {
    builder.add("mask_triu", "mask_triu = 1 where the key comes after the query",
                strictly_upper_triangle(builder.config().context_length));
    return {};
}

}  // namespace fovea::recipes

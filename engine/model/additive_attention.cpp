#include <fovea/model/strict.hpp>

#include "model/layer_support.hpp"

namespace fovea {

using namespace layer_support;

namespace {

// v . tanh(W q_i + U k_j) for every query and key, [B, 1, Lq, Lk].
F32Tensor additive_scores(const F32Tensor& queries, const F32Tensor& keys, const F32Tensor& v) {
    const uint64_t len_q = queries.shape[1], len_k = keys.shape[1];
    F32Tensor scores({queries.shape[0], 1, len_q, len_k});
    std::vector<float> hidden(v.values.size());
    for (uint64_t row = 0; row < queries.rows(); ++row) {
        for (uint64_t j = 0; j < len_k; ++j) {
            const auto q = queries.row(row), k = keys.row(row / len_q * len_k + j);
            for (size_t n = 0; n < hidden.size(); ++n) hidden[n] = strict::tanh(q[n] + k[n]);
            scores.row(row)[j] = strict::dot(v.values, hidden);
        }
    }
    return scores;
}

}  // namespace

Result<F32Tensor> AdditiveAttention::forward(Executor& executor, const F32Tensor& x, const F32Tensor& memory,
                                             LayerTrace& trace) const {
    if (Result<void> ok = first_error({check_linear("query", query), check_linear("key", key)}); !ok) {
        return ok.error();
    }
    if (Result<void> ok = first_error({check_width("key", key.d_out(), "query", query.d_out()),
                                       check_width("v", v.values.size(), "query", query.d_out())});
        !ok) {
        return ok.error();
    }
    const Result<F32Tensor> x_batch = as_batch("x", x, query.d_in(), 0);
    if (!x_batch) return x_batch.error();
    const Result<F32Tensor> memory_batch = as_batch("memory", memory, key.d_in(), 0);
    if (!memory_batch) return memory_batch.error();
    if (memory.rank() != x.rank() || memory_batch->shape[0] != x_batch->shape[0]) {
        return wrong("memory", "memory has " + std::to_string(memory_batch->shape[0]) +
                                   " batch entries, x has " + std::to_string(x_batch->shape[0]) +
                                   "; they must be given alike");
    }
    Result<F32Tensor> queries = executor.linear(*x_batch, query);
    if (!queries) return queries;
    Result<F32Tensor> keys = executor.linear(*memory_batch, key);
    if (!keys) return keys;
    trace.record("queries", product_formula("queries", "X", "W", query), *queries,
                 with_columns(x, query.d_out()));
    trace.record("keys", product_formula("keys", "memory", "U", key), *keys,
                 with_columns(memory, key.d_out()));

    // The engine adds a bias to its scores: with a product of zeros the additive scores are all that is left.
    const uint64_t batch = x_batch->shape[0], len_q = x_batch->shape[1], len_k = memory_batch->shape[1];
    const F32Tensor scores = additive_scores(*queries, *keys, v);
    const F32Tensor no_query({batch, 1, len_q, 1}), no_key({batch, 1, len_k, 1});
    const F32Tensor values = reshaped(*memory_batch, {batch, 1, len_k, memory.columns()});
    AttentionProblem problem{.q = &no_query, .k = &no_key, .v = &values, .bias = &scores};
    problem.call.outputs = FOVEA_OUTPUT_O | output_if(trace.wants("weights"), FOVEA_OUTPUT_WEIGHTS);
    Result<AttentionResult> result = executor.attention(problem);
    if (!result) return result.error();
    const Shape matrix = with_columns(x, len_k);
    trace.record("scores", "scores = v . tanh(queries + keys)", scores, matrix);
    trace.record("weights", "weights = softmax(scores)", result->weights, matrix);
    const Shape shape = with_columns(x, memory.columns());
    trace.record("context", "context = weights memory", result->o, shape);
    return reshaped(std::move(result->o), shape);
}

}  // namespace fovea

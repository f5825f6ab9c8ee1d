#include <fovea/model/strict.hpp>

#include <algorithm>

#include "model/layer_support.hpp"

namespace fovea {

using namespace layer_support;

namespace {

HeadTensors one_head(const Projected& p) {
    const auto as_head = [](const F32Tensor& t) {
        return reshaped(t, {t.shape[0], 1, t.shape[1], t.shape[2]});
    };
    return {as_head(p.queries), as_head(p.keys), as_head(p.values)};
}

// weights x of one matrix after the other: the product that follows weights of the caller's own making.
Result<F32Tensor> weigh(Executor& executor, const F32Tensor& weights, const F32Tensor& values) {
    F32Tensor context({weights.shape[0], weights.shape[1], values.shape[2]});
    const uint64_t len_q = weights.shape[1], len_kv = weights.shape[2], dim = values.shape[2];
    for (uint64_t entry = 0; entry < weights.shape[0]; ++entry) {
        const auto w = std::span(weights.values).subspan(entry * len_q * len_kv, len_q * len_kv);
        const auto v = std::span(values.values).subspan(entry * len_kv * dim, len_kv * dim);
        const Linear as_layer{F32Tensor({len_kv, dim}, {v.begin(), v.end()}), WeightLayout::in_out};
        Result<F32Tensor> rows = executor.linear(F32Tensor({len_q, len_kv}, {w.begin(), w.end()}), as_layer);
        if (!rows) return rows;
        std::copy(rows->values.begin(), rows->values.end(), context.row(entry * len_q).begin());
    }
    return context;
}

}  // namespace

Linear make_linear(TorchGenerator& generator, uint64_t d_in, uint64_t d_out, bool bias) {
    Linear layer;
    layer.weight = F32Tensor({d_out, d_in});
    generator.linear_weight(layer.weight.values, d_in);
    if (bias) {
        layer.bias = F32Tensor(Shape{d_out});
        generator.linear_bias(layer.bias.values, d_in);
    }
    return layer;
}

Linear make_rand_parameter(TorchGenerator& generator, uint64_t d_in, uint64_t d_out) {
    Linear layer;
    layer.layout = WeightLayout::in_out;
    layer.weight = F32Tensor({d_in, d_out});
    generator.rand(layer.weight.values);
    return layer;
}

namespace {

// Weights by plain division, without softmax's care for large scores.
void normalise_plainly(F32Tensor& weights, Normalisation normalisation) {
    for (uint64_t row = 0; row < weights.rows(); ++row) {
        const auto values = weights.row(row);
        if (normalisation == Normalisation::naive_softmax) {
            for (float& value : values) value = strict::exp(value);
        }
        const float sum = strict::sum(values);
        for (float& value : values) value /= sum;
    }
}

Result<F32Tensor> attend_plainly(Executor& executor, const HeadTensors& heads, Normalisation normalisation,
                                 const Shape& leading, LayerTrace& trace) {
    AttentionProblem problem{.q = &heads.queries, .k = &heads.keys, .v = &heads.values};
    problem.call.outputs = FOVEA_OUTPUT_SCORES;
    Result<AttentionResult> scored = executor.attention(problem);
    if (!scored) return scored.error();
    F32Tensor weights = reshaped(std::move(scored->scores),
                                 {heads.queries.shape[0], heads.queries.shape[2], heads.keys.shape[2]});
    Shape matrix = leading;
    matrix.insert(matrix.end(), weights.shape.begin() + 1, weights.shape.end());
    trace.record("scores", "scores = queries keys^T", weights, matrix);
    normalise_plainly(weights, normalisation);
    trace.record("weights",
                 normalisation == Normalisation::sum ? "weights = scores / sum(scores)"
                                                     : "weights = exp(scores) / sum(exp(scores))",
                 weights, matrix);
    return weigh(executor, weights, merge_heads(heads.values));
}

}  // namespace

Result<F32Tensor> simplified_attention(Executor& executor, const F32Tensor& x, Normalisation normalisation,
                                       LayerTrace& trace) {
    const Result<F32Tensor> batch = as_batch("x", x, x.columns(), 0);
    if (!batch) return batch.error();
    const HeadTensors heads = one_head({*batch, *batch, *batch});
    Result<F32Tensor> context = normalisation == Normalisation::softmax
                                    ? attend(executor, heads, {}, {}, leading_of(x), trace)
                                    : attend_plainly(executor, heads, normalisation, leading_of(x), trace);
    if (!context) return context;
    trace.record("context", "context = weights X", *context, x.shape);
    return reshaped(std::move(*context), x.shape);
}

namespace {

// The checks and projections that both routes of a single head begin with.
Result<HeadTensors> project_one_head(Executor& executor, const SelfAttention& layer, const F32Tensor& x,
                                     LayerTrace& trace) {
    const Projections layers{layer.query, layer.key, layer.value};
    if (Result<void> ok = check_projections(layers); !ok) return ok.error();
    if (Result<void> ok = check_width("key", layer.key.d_out(), "query", layer.query.d_out()); !ok)
        return ok.error();
    const Result<F32Tensor> batch = as_batch("x", x, layer.query.d_in(), layer.options.context_length);
    if (!batch) return batch.error();
    const Source source{x, *batch, "X"};
    Result<Projected> projected = project(executor, layers, source, source, trace);
    if (!projected) return projected.error();
    return one_head(*projected);
}

}  // namespace

Result<F32Tensor> SelfAttention::forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                                         const Training& training) const {
    const Result<HeadTensors> heads = project_one_head(executor, *this, x, trace);
    if (!heads) return heads.error();
    Result<F32Tensor> context = attend(executor, *heads, options, training, leading_of(x), trace);
    if (!context) return context;
    const Shape shape = with_columns(x, value.d_out());
    trace.record("context",
                 drops(options, training) ? "context = dropped values" : "context = weights values", *context,
                 shape);
    return reshaped(std::move(*context), shape);
}

Result<F32Tensor> SelfAttention::forward_renormalised(Executor& executor, const F32Tensor& x,
                                                      LayerTrace& trace) const {
    const Result<HeadTensors> heads = project_one_head(executor, *this, x, trace);
    if (!heads) return heads.error();
    AttentionOptions unmasked = options;
    unmasked.causal = false;
    LayerTrace inner = LayerTrace::only({"weights"});
    const uint64_t batch = heads->queries.shape[0], tokens = heads->queries.shape[2];
    if (Result<F32Tensor> ok = attend(executor, *heads, unmasked, {}, {batch}, inner); !ok) return ok;
    F32Tensor weights = *inner.find("weights");
    const Shape matrix = with_columns(x, tokens);
    trace.record("weights", "weights = softmax of the scaled scores", weights, matrix);

    F32Tensor triangle({tokens, tokens});
    for (uint64_t i = 0; i < tokens; ++i) std::fill_n(triangle.row(i).begin(), i + 1, 1.0f);
    for (uint64_t row = 0; row < weights.rows(); ++row) {
        for (uint64_t j = 0; j < tokens; ++j) weights.row(row)[j] *= triangle.row(row % tokens)[j];
    }
    trace.record("mask_tril", "mask_tril = 1 where the key is not after the query", std::move(triangle));
    trace.record("masked_simple", "masked_simple = weights * mask_tril", weights, matrix);

    F32Tensor sums(with_columns(x, 1));
    for (uint64_t row = 0; row < weights.rows(); ++row) {
        sums.values[row] = strict::sum(weights.row(row));
        for (float& weight : weights.row(row)) weight /= sums.values[row];
    }
    trace.record("row_sums", "row_sums = sum of each row of masked_simple", std::move(sums));
    trace.record("masked_simple_norm", "masked_simple_norm = masked_simple / row_sums", weights, matrix);
    Result<F32Tensor> context = weigh(executor, weights, merge_heads(heads->values));
    if (!context) return context;
    const Shape shape = with_columns(x, value.d_out());
    trace.record("context", "context = masked_simple_norm values", *context, shape);
    return reshaped(std::move(*context), shape);
}

Result<F32Tensor> StackedHeads::forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                                        const Training& training) const {
    if (heads.empty()) return wrong("heads", "heads is empty; a layer has at least 1");
    std::vector<F32Tensor> contexts;
    for (size_t h = 0; h < heads.size(); ++h) {
        trace.set_prefix("head" + std::to_string(h) + ".");
        Training of_head = training;
        of_head.offset += h;  // heads that are called one by one must not share a counter-based mask
        Result<F32Tensor> context = heads[h].forward(executor, x, trace, of_head);
        trace.set_prefix("");
        if (!context) return context;
        contexts.push_back(std::move(*context));
    }
    F32Tensor output = concat_columns(contexts);
    trace.record("output", "output = the heads' contexts side by side", output, output.shape);
    return output;
}

}  // namespace fovea

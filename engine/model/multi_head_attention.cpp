#include "model/layer_support.hpp"

namespace fovea {

using namespace layer_support;

namespace {

Result<void> check_output(const Linear& output, uint64_t context_width) {
    if (Result<void> ok = check_linear("output", output); !ok) return ok;
    return check_input("output", output, "the heads' contexts have", context_width);
}

// From heads to the layer's result.
Result<F32Tensor> attend_and_finish(Executor& executor, const HeadTensors& heads,
                                    const AttentionOptions& options, const Linear& output,
                                    const char* weight_name, const F32Tensor& x, LayerTrace& trace,
                                    const Training& training) {
    const Shape leading = head_leading(x, heads.queries.shape[1]);
    Result<F32Tensor> context = attend(executor, heads, options, training, leading, trace);
    if (!context) return context;
    return finish(executor, std::move(*context), output, x, weight_name, trace);
}

}  // namespace

Result<F32Tensor> MultiHeadAttention::forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                                              const Training& training) const {
    return forward(executor, x, x, trace, training);
}

Result<F32Tensor> MultiHeadAttention::forward(Executor& executor, const F32Tensor& x, const F32Tensor& memory,
                                              LayerTrace& trace, const Training& training) const {
    const Projections layers{query, key, value};
    if (Result<void> ok = check_projections(layers); !ok) return ok.error();
    if (Result<void> ok = first_error(
            {check_heads("query", query.d_out(), head_count), check_heads("value", value.d_out(), head_count),
             check_width("key", key.d_out(), "query", query.d_out()), check_output(output, value.d_out())});
        !ok) {
        return ok.error();
    }
    const Result<F32Tensor> batch = as_batch("x", x, query.d_in(), options.context_length);
    if (!batch) return batch.error();
    const bool same = &x == &memory;
    const Result<F32Tensor> memory_batch =
        same ? batch : as_batch("memory", memory, key.d_in(), options.context_length);
    if (!memory_batch) return memory_batch.error();
    if (memory.rank() != x.rank() || memory_batch->shape[0] != batch->shape[0]) {
        return wrong("memory", "memory has " + std::to_string(memory_batch->shape[0]) +
                                   " batch entries, x has " + std::to_string(batch->shape[0]) +
                                   "; they must be given alike");
    }
    const Source source{x, *batch, "X"}, memory_source{memory, *memory_batch, same ? "X" : "memory"};
    const Result<Projected> projected = project(executor, layers, source, memory_source, trace);
    if (!projected) return projected.error();
    const HeadTensors heads{split_heads(projected->queries, head_count),
                            split_heads(projected->keys, head_count),
                            split_heads(projected->values, head_count)};
    record_heads(heads, x, memory, trace);
    return attend_and_finish(executor, heads, options, output, "out_proj_weight", x, trace, training);
}

Result<F32Tensor> GptAttention::forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                                        const Training& training) const {
    if (Result<void> ok = check_linear("c_attn", c_attn); !ok) return ok.error();
    if (c_attn.d_out() % 3 != 0) {
        return wrong("c_attn", "c_attn gives " + std::to_string(c_attn.d_out()) +
                                   " columns; it must be three times the width");
    }
    const uint64_t width = c_attn.d_out() / 3;
    if (Result<void> ok =
            first_error({check_heads("c_attn", width, head_count), check_output(c_proj, width)});
        !ok) {
        return ok.error();
    }
    const Result<F32Tensor> batch = as_batch("x", x, c_attn.d_in(), options.context_length);
    if (!batch) return batch.error();
    Result<F32Tensor> qkv = executor.linear(*batch, c_attn);
    if (!qkv) return qkv;
    trace.record("qkv", product_formula("qkv", "X", "c_attn_weight", c_attn), *qkv,
                 with_columns(x, 3 * width));
    const auto part = [&](uint64_t index) {
        return split_heads(slice_columns(*qkv, index * width, width), head_count);
    };
    const HeadTensors heads{part(0), part(1), part(2)};
    record_heads(heads, x, x, trace);
    return attend_and_finish(executor, heads, options, c_proj, "c_proj_weight", x, trace, training);
}

Result<F32Tensor> GroupedQueryAttention::forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                                                 const Training& training) const {
    const Projections layers{query, key, value};
    if (Result<void> ok = check_projections(layers); !ok) return ok.error();
    if (kv_head_count == 0 || head_count % kv_head_count != 0) {
        return wrong("kv_head_count", "kv_head_count is " + std::to_string(kv_head_count) +
                                          "; it must divide head_count, " + std::to_string(head_count));
    }
    if (Result<void> ok = first_error({check_heads("query", query.d_out(), head_count),
                                       check_heads("value", value.d_out(), kv_head_count)});
        !ok) {
        return ok.error();
    }
    const uint64_t head_dim = query.d_out() / head_count, value_dim = value.d_out() / kv_head_count;
    if (Result<void> ok =
            first_error({check_width("key", key.d_out(), "kv_head_count", kv_head_count * head_dim),
                         check_output(output, head_count * value_dim)});
        !ok) {
        return ok.error();
    }
    if (head_dim % 2 != 0) {
        return wrong("head_dim",
                     "head_dim is " + std::to_string(head_dim) + "; a rotary embedding needs an even one");
    }
    const Result<F32Tensor> batch = as_batch("x", x, query.d_in(), options.context_length);
    if (!batch) return batch.error();
    const Source source{x, *batch, "X"};
    const Result<Projected> projected = project(executor, layers, source, source, trace);
    if (!projected) return projected.error();
    HeadTensors heads{split_heads(projected->queries, head_count),
                      split_heads(projected->keys, kv_head_count),
                      split_heads(projected->values, kv_head_count)};
    record_heads(heads, x, x, trace);
    Result<F32Tensor> queries = executor.rope(heads.queries, rope);
    if (!queries) return queries;
    Result<F32Tensor> keys = executor.rope(heads.keys, rope);
    if (!keys) return keys;
    heads.queries = std::move(*queries);
    heads.keys = std::move(*keys);
    trace.record("queries_rotated",
                 "queries_rotated = queries_heads, each pair turned by its position's angle", heads.queries,
                 head_shape(heads.queries, x));
    trace.record("keys_rotated", "keys_rotated = keys_heads, each pair turned by its position's angle",
                 heads.keys, head_shape(heads.keys, x));
    return attend_and_finish(executor, heads, options, output, "o_proj_weight", x, trace, training);
}

}  // namespace fovea

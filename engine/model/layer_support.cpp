#include "model/layer_support.hpp"

namespace fovea::layer_support {

namespace {

std::string number(uint64_t value) { return std::to_string(value); }

}  // namespace

Error wrong(std::string field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

Result<void> check_linear(const char* name, const Linear& layer) {
    if (layer.weight.rank() != 2) {
        return wrong(name, std::string(name) + ": the weight has " + number(layer.weight.rank()) +
                               " dimensions; it must have 2");
    }
    if (layer.has_bias() && layer.bias.values.size() != layer.d_out()) {
        return wrong(name, std::string(name) + ": the bias has " + number(layer.bias.values.size()) +
                               " elements; the weight gives " + number(layer.d_out()));
    }
    return {};
}

Result<F32Tensor> as_batch(const char* name, const F32Tensor& x, uint64_t d_in, uint64_t context_length) {
    if (x.rank() != 2 && x.rank() != 3) {
        return wrong(name, std::string(name) + " has " + number(x.rank()) +
                               " dimensions; it must be [tokens, d_in] or [batch, tokens, d_in]");
    }
    if (x.columns() != d_in) {
        return wrong(name, std::string(name) + " is " + number(x.columns()) + " wide; the layer takes " +
                               number(d_in));
    }
    const uint64_t tokens = x.shape[x.rank() - 2];
    if (context_length != 0 && tokens > context_length) {
        return wrong(name, std::string(name) + " has " + number(tokens) + " tokens; the context length is " +
                               number(context_length));
    }
    return reshaped(x, {x.rank() == 3 ? x.shape[0] : 1, tokens, d_in});
}

Result<void> check_heads(const char* name, uint64_t width, uint64_t head_count) {
    if (head_count == 0 || width % head_count != 0) {
        return wrong("head_count", "head_count is " + number(head_count) + "; it must divide the width of " +
                                       name + ", " + number(width));
    }
    return {};
}

Result<void> check_width(const char* name, uint64_t width, const char* other, uint64_t needed) {
    if (width == needed) return {};
    return wrong(name,
                 std::string(name) + " is " + number(width) + " wide; " + other + " needs " + number(needed));
}

Result<void> check_input(const char* name, const Linear& layer, const char* given, uint64_t columns) {
    if (layer.d_in() == columns) return {};
    return wrong(name, std::string(name) + " takes " + number(layer.d_in()) + " columns; " + given + " " +
                           number(columns));
}

Result<void> first_error(std::initializer_list<Result<void>> results) {
    for (const Result<void>& result : results) {
        if (!result) return result.error();
    }
    return {};
}

std::string product_formula(const char* result, const char* x, const char* weight, const Linear& layer) {
    return std::string(result) + " = " + x + " " + weight +
           (layer.layout == WeightLayout::out_in ? "^T" : "") + (layer.has_bias() ? " + bias" : "");
}

Shape with_columns(const F32Tensor& x, uint64_t columns) {
    Shape shape = x.shape;
    shape.back() = columns;
    return shape;
}

Shape leading_of(const F32Tensor& x) { return Shape(x.shape.begin(), x.shape.end() - 2); }

Shape head_leading(const F32Tensor& x, uint64_t head_count) {
    Shape leading = leading_of(x);
    leading.push_back(head_count);
    return leading;
}

Result<void> check_projections(const Projections& layers) {
    return first_error({check_linear("query", layers.query), check_linear("key", layers.key),
                        check_linear("value", layers.value)});
}

Result<Projected> project(Executor& executor, const Projections& layers, const Source& x,
                          const Source& memory, LayerTrace& trace) {
    const uint64_t memory_columns = memory.batch.columns();
    if (Result<void> ok = first_error({check_input("key", layers.key, "the input has", memory_columns),
                                       check_input("value", layers.value, "the input has", memory_columns)});
        !ok) {
        return ok.error();
    }
    Result<F32Tensor> queries = executor.linear(x.batch, layers.query);
    if (!queries) return queries.error();
    Result<F32Tensor> keys = executor.linear(memory.batch, layers.key);
    if (!keys) return keys.error();
    Result<F32Tensor> values = executor.linear(memory.batch, layers.value);
    if (!values) return values.error();
    trace.record("queries", product_formula("queries", x.name, "W_query", layers.query), *queries,
                 with_columns(x.tensor, layers.query.d_out()));
    trace.record("keys", product_formula("keys", memory.name, "W_key", layers.key), *keys,
                 with_columns(memory.tensor, layers.key.d_out()));
    trace.record("values", product_formula("values", memory.name, "W_value", layers.value), *values,
                 with_columns(memory.tensor, layers.value.d_out()));
    return Projected{std::move(*queries), std::move(*keys), std::move(*values)};
}

Shape head_shape(const F32Tensor& heads, const F32Tensor& x) {
    Shape shape = heads.shape;
    if (x.rank() == 2) shape.erase(shape.begin());
    return shape;
}

void record_heads(const HeadTensors& heads, const F32Tensor& x, const F32Tensor& memory, LayerTrace& trace) {
    trace.record("queries_heads", "queries_heads = queries split into heads", heads.queries,
                 head_shape(heads.queries, x));
    trace.record("keys_heads", "keys_heads = keys split into heads", heads.keys,
                 head_shape(heads.keys, memory));
    trace.record("values_heads", "values_heads = values split into heads", heads.values,
                 head_shape(heads.values, memory));
}

Result<F32Tensor> finish(Executor& executor, F32Tensor context_heads, const Linear& output,
                         const F32Tensor& x, const char* weight_name, LayerTrace& trace) {
    const Shape heads = head_shape(context_heads, x);
    const F32Tensor merged = merge_heads(context_heads);
    trace.record("context_heads", "context_heads = weights values_heads, per head", context_heads, heads);
    trace.record("context", "context = the heads' contexts side by side", merged,
                 with_columns(x, merged.columns()));
    Result<F32Tensor> y = executor.linear(merged, output);
    if (!y) return y;
    F32Tensor result = reshaped(std::move(*y), with_columns(x, output.d_out()));
    trace.record("output", product_formula("output", "context", weight_name, output), result, result.shape);
    return result;
}

}  // namespace fovea::layer_support

// What the attention layers share: checks of sizes in one wording, and the stages they have in common.
#pragma once

#include <fovea/model/attention_layers.hpp>

#include <initializer_list>

namespace fovea::layer_support {

Error wrong(std::string field, std::string text);
Result<void> first_error(std::initializer_list<Result<void>> results);

Result<void> check_linear(const char* name, const Linear& layer);
Result<void> check_width(const char* name, uint64_t width, const char* other, uint64_t needed);
// The columns that a layer takes against those that it is given.
Result<void> check_input(const char* name, const Linear& layer, const char* given, uint64_t columns);
Result<void> check_heads(const char* name, uint64_t width, uint64_t head_count);

// `x` as [batch, tokens, d_in], if a layer of this width and context length (0: any) can take it.
Result<F32Tensor> as_batch(const char* name, const F32Tensor& x, uint64_t d_in, uint64_t context_length);

// The shape of `x` with another last dimension, and the dimensions before its last two.
Shape with_columns(const F32Tensor& x, uint64_t columns);
Shape leading_of(const F32Tensor& x);
Shape head_leading(const F32Tensor& x, uint64_t head_count);

// "queries = X W_query^T + bias"
std::string product_formula(const char* result, const char* x, const char* weight, const Linear& layer);

inline bool drops(const AttentionOptions& options, const Training& training) {
    return training.dropout != Training::Dropout::off && options.dropout_p > 0.0;
}

// The bit of an output, if it is wanted.
inline uint32_t output_if(bool wanted, uint32_t output) { return wanted ? output : 0u; }

struct Projections {
    const Linear &query, &key, &value;
};
struct Projected {
    F32Tensor queries, keys, values;  // [B, L, d_out]
};
// Checks the three layers against each other, projects and records queries, keys and values. `x` and `memory`
// are the caller's tensors (their rank decides the recorded shapes), the batches are as_batch() of them.
struct Source {
    const F32Tensor &tensor, &batch;
    const char* name;  // in formulas
};
Result<void> check_projections(const Projections& layers);
Result<Projected> project(Executor& executor, const Projections& layers, const Source& x,
                          const Source& memory, LayerTrace& trace);

// Records queries_heads, keys_heads, values_heads.
void record_heads(const HeadTensors& heads, const F32Tensor& x, const F32Tensor& memory, LayerTrace& trace);
// The shape [B, H, ..] in the rank that the caller's `x` asks for: without B if x has none.
Shape head_shape(const F32Tensor& heads, const F32Tensor& x);

// Merges the heads' contexts, applies the last projection; records context_heads, context, output.
Result<F32Tensor> finish(Executor& executor, F32Tensor context_heads, const Linear& output,
                         const F32Tensor& x, const char* weight_name, LayerTrace& trace);

}  // namespace fovea::layer_support

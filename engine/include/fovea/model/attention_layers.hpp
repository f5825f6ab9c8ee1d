// The attention layers that tutorials build, from self-attention without weights to a GPT block and Llama's
// grouped heads. Inputs are [tokens, d_in] or [batch, tokens, d_in]. Each layer checks its input and says in
// its error which size was wrong. Each names its intermediate results in the trace: queries, keys, values,
// scores, scaled_scores, masked_scores, weights, context, output, ... Parameters are plain members: fill them
// from a generator, a file or by hand. Thread safety: forward() on one layer may run on many threads, each
// with its own executor and trace.
#pragma once

#include <fovea/model/executor.hpp>
#include <fovea/model/layer_trace.hpp>
#include <fovea/model/torch_random.hpp>

#include <string>
#include <vector>

namespace fovea {

// The two orders give the same numbers; they differ in the stages that can be looked at:
// scores, scaled_scores, masked_scores against scores, masked_scores, scaled_masked_scores.
enum class MaskOrder { scale_first, mask_first };

struct AttentionOptions {  // what all layers share
    ScoreScale scale;
    std::string scale_rule;  // for the stages' formulas: "sqrt(d_out)"; empty: the number
    MaskOrder order = MaskOrder::scale_first;
    bool causal = false;
    uint64_t context_length = 0;  // longest input that is accepted; 0: any
    double dropout_p = 0.0;       // in training, [0, 1)
};

// Where the dropout masks of one forward pass come from. Default: evaluation, no dropout and nothing drawn.
struct Training {
    enum class Dropout {
        off,
        torch_native,  // drawn from `generator` as nn.Dropout draws them, see TorchGenerator
        torch_mkl,
        counter  // the engine's own: a function of seed, offset and position, the same in every backend
    };
    Dropout dropout = Dropout::off;
    TorchGenerator* generator = nullptr;  // needed by torch_*
    uint64_t seed = 0, offset = 0;        // used by counter
};

// Weights as nn.Linear(d_in, d_out, bias) starts with.
Linear make_linear(TorchGenerator& generator, uint64_t d_in, uint64_t d_out, bool bias);
// A plain parameter torch.rand(d_in, d_out), used as x W.
Linear make_rand_parameter(TorchGenerator& generator, uint64_t d_in, uint64_t d_out);

enum class Normalisation { softmax, sum, naive_softmax };  // of a row

// Self-attention without weights: scores = X X^T, each row normalised, context = weights X. Stages: scores,
// weights, context.
Result<F32Tensor> simplified_attention(Executor& executor, const F32Tensor& x, Normalisation normalisation,
                                       LayerTrace& trace);

// One head with its own three projections: v1 with plain parameters (in_out), v2 with linear layers, and the
// causal class with batches and dropout. Stages: queries, keys, values, scores .. weights, keep and dropped
// (in training), context.
struct SelfAttention {
    Linear query, key, value;
    AttentionOptions options;

    Result<F32Tensor> forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                              const Training& training = {}) const;

    // The other route to a causal mask: softmax over all keys, weights above the diagonal set to 0, rows
    // divided by their sums. Stages: .. weights, mask_tril, masked_simple, row_sums, masked_simple_norm,
    // context.
    Result<F32Tensor> forward_renormalised(Executor& executor, const F32Tensor& x, LayerTrace& trace) const;
};

// Heads built one by one, their contexts side by side. Stages: head0.queries .. head1.context, output.
struct StackedHeads {
    std::vector<SelfAttention> heads;

    Result<F32Tensor> forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                              const Training& training = {}) const;
};

// One projection each for queries, keys and values, split into heads; merged and projected again. Stages:
// queries, keys, values, queries_heads, keys_heads, values_heads, scores .. weights, context_heads, context,
// output.
struct MultiHeadAttention {
    Linear query, key, value, output;
    uint64_t head_count = 1;
    AttentionOptions options;

    Result<F32Tensor> forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                              const Training& training = {}) const;
    // Queries from x, keys and values from `memory`: cross attention. Lengths may differ.
    Result<F32Tensor> forward(Executor& executor, const F32Tensor& x, const F32Tensor& memory,
                              LayerTrace& trace, const Training& training = {}) const;
};

// GPT's block: one joint projection, its columns q, then k, then v. Stages: qkv, queries_heads .. context,
// output.
struct GptAttention {
    Linear c_attn, c_proj;
    uint64_t head_count = 1;
    AttentionOptions options;

    Result<F32Tensor> forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                              const Training& training = {}) const;
};

// Llama's block: fewer key heads than query heads, rotary positions, causal. Stages: queries_heads,
// keys_heads, values_heads, queries_rotated, keys_rotated, scores .. context, output.
struct GroupedQueryAttention {
    Linear query, key, value, output;
    uint64_t head_count = 1, kv_head_count = 1;
    Rope rope;
    AttentionOptions options;

    Result<F32Tensor> forward(Executor& executor, const F32Tensor& x, LayerTrace& trace,
                              const Training& training = {}) const;
};

// Bahdanau's additive attention: score = v . tanh(W q + U k), the values are the memory itself. Stages:
// queries (W q), keys (U k), scores, weights, context.
struct AdditiveAttention {
    Linear query, key;
    F32Tensor v;  // [hidden]

    Result<F32Tensor> forward(Executor& executor, const F32Tensor& x, const F32Tensor& memory,
                              LayerTrace& trace) const;
};

// The core that the layers above share: queries, keys and values in heads -> contexts in heads. Matrices go
// into the trace as [leading.., Lq, Lkv]; `leading` has as many elements as batch * heads.
struct HeadTensors {
    F32Tensor queries, keys, values;  // [B, H, L, D]
};
Result<F32Tensor> attend(Executor& executor, const HeadTensors& heads, const AttentionOptions& options,
                         const Training& training, const Shape& leading, LayerTrace& trace);

}  // namespace fovea

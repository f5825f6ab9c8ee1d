// One block's steps beside attention itself, shared by all that run blocks: traces and decoding.
#pragma once

#include <functional>

#include <fovea/model/trace.hpp>

#include "model/transformer_parts.hpp"

namespace fovea {

// Runs a linear layer in whichever arithmetic its owner computes.
using LinearRun = std::function<Result<F32Tensor>(const F32Tensor& x, const Linear& layer)>;
// By the engine's kernels.
Result<F32Tensor> run_linear(EngineRunner& engine, const F32Tensor& x, const Linear& layer);
// Several layers of the same x, all at once where their matrices are stored. Each y has its size already.
struct LinearProduct {
    const Linear* layer;
    F32Tensor* y;
};
Result<void> run_linears(EngineRunner& engine, const F32Tensor& x, std::span<const LinearProduct> products);

// What comes before attention. Heads are [heads, rows, width].
struct ProjectedHeads {
    F32Tensor normed, q, k, v;
};
// Without positions and norms of heads, which place_heads() adds. Keys and values are of `memory` where there
// is one.
Result<ProjectedHeads> project_heads(const Block& block, const F32Tensor& x, const F32Tensor* memory,
                                     const LinearRun& linear);
// Norms and rotary positions of queries and keys; row 0 stands at position `first` beyond the rope's own.
Result<void> place_heads(const AttentionPart& part, uint64_t first, F32Tensor& q, F32Tensor& k);

// What comes behind attention.
struct BlockEnd {
    F32Tensor output;  // of attention, before the norm that may follow
    F32Tensor sum;     // after attention
    F32Tensor ff_normed, ff_hidden, ff_output;
    F32Tensor result;
};
// `x` is what the block read; null where it has no residual sums. `context` is [rows, heads * width].
Result<BlockEnd> finish_block(const Block& block, const F32Tensor* x, const F32Tensor& context,
                              const LinearRun& linear);

// From the final norm's rows to logits, or to the prediction head's rows where there is no unembedding.
Result<F32Tensor> predict(const Model& model, F32Tensor rows, const LinearRun& linear);

}  // namespace fovea

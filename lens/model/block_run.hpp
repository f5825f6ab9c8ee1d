// One block's steps beside attention itself, shared by all that run blocks: traces and decoding.
#pragma once

#include <fovea/model/trace.hpp>

#include "model/transformer_parts.hpp"

namespace fovea {

// The layer with its weight's values, whether they are stored or not.
Result<Linear> widened(Linear layer);
// The [d_in] weights that one output is made with.
Result<std::vector<float>> weights_of_output(const Linear& layer, uint64_t output);

// Several layers of the same x by the engine's kernels, all at once where their matrices are stored. Each y
// has its size already.
struct LinearProduct {
    const Linear* layer;
    F32Tensor* y;
};
Result<void> run_linears(EngineRunner& engine, const F32Tensor& x, std::span<const LinearProduct> products);

// The parts of a block in the arithmetic that its owner computes in: by an engine's kernels, or strictly, in
// plain loops.
class BlockLoops {
  public:
    // Null: strictly.
    explicit BlockLoops(EngineRunner* engine) : engine_(engine) {}

    // Each product's y takes its size here.
    Result<void> linears(const F32Tensor& x, std::span<const LinearProduct> products) const;
    Result<F32Tensor> linear(const F32Tensor& x, const Linear& layer) const;
    F32Tensor normalised(const Norm& norm, F32Tensor x) const;
    // x becomes act(x), with `other` act(x) * other.
    void activate(Activation activation, F32Tensor& x, const F32Tensor* other = nullptr) const;
    // Queries and keys, [heads, tokens, width], by the angles of their tokens' positions.
    void rotate(F32Tensor& q, F32Tensor& k, const Rope& rope) const;

  private:
    EngineRunner* engine_;
};

// What comes before attention. Heads are [heads, rows, width].
struct ProjectedHeads {
    F32Tensor normed, q, k, v;
};
// Without positions and norms of heads, which place_heads() adds. Keys and values are of `memory` where there
// is one.
Result<ProjectedHeads> project_heads(const Block& block, const F32Tensor& x, const F32Tensor* memory,
                                     const BlockLoops& loops);
// Norms and rotary positions of queries and keys.
void place_heads(const AttentionPart& part, F32Tensor& q, F32Tensor& k, const BlockLoops& loops);

// What comes behind attention.
struct BlockEnd {
    F32Tensor output;  // of attention, before the norm that may follow
    F32Tensor sum;     // after attention
    F32Tensor ff_normed, ff_hidden, ff_output;
    F32Tensor result;
};
// `x` is what the block read; null where it has no residual sums. `context` is [rows, heads * width].
Result<BlockEnd> finish_block(const Block& block, const F32Tensor* x, const F32Tensor& context,
                              const BlockLoops& loops);

// From what leaves the last block to logits, or to the prediction head's rows where there is no unembedding.
Result<F32Tensor> predict(const Model& model, F32Tensor rows, const BlockLoops& loops);

}  // namespace fovea

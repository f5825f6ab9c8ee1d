// The products, norms and activations of a block by an engine's kernels or strictly, and what comes after the
// last block.
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
Result<void> run_linears(Runner& engine, const F32Tensor& x, std::span<const LinearProduct> products);
// y = x W^T + bias on a weight whose type linear() reads.
FoveaLinearDesc linear_of(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x);

// The parts of a block in the arithmetic that its owner computes in: by an engine's kernels, or strictly, in
// plain loops.
class BlockLoops {
  public:
    // Null: strictly.
    explicit BlockLoops(Runner* engine) : engine_(engine) {}

    // Each product's y takes its size here.
    Result<void> linears(const F32Tensor& x, std::span<const LinearProduct> products) const;
    Result<F32Tensor> linear(const F32Tensor& x, const Linear& layer) const;
    F32Tensor normalised(const Norm& norm, F32Tensor x) const;
    // x becomes act(x), with `other` act(x) * other.
    void activate(Activation activation, F32Tensor& x, const F32Tensor* other = nullptr) const;
    // Queries or keys, [heads, tokens, width], by the angles of their tokens' positions.
    void rotate(F32Tensor& x, const Rope& rope) const;

  private:
    Runner* engine_;
};

// Turns rows after the last block into logits, or into the prediction head's rows if there is no unembedding.
Result<F32Tensor> predict(const Model& model, F32Tensor rows, const BlockLoops& loops);

}  // namespace fovea

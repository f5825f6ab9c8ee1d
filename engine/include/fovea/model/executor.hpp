// Where a layer's arithmetic runs. Layers are written once against this interface; the strict executor below
// computes in plain float32, the runtime's executors hand the same problems to the engine as
// FoveaAttentionDesc and its kin.
#pragma once

#include <fovea/fovea.hpp>
#include <fovea/model/f32_tensor.hpp>

#include <string>
#include <vector>

namespace fovea {

// scores / divisor or scores * factor, the number rounded to float32 once. The engine always multiplies.
struct ScoreScale {
    double value = 1.0;
    bool divides = false;

    static ScoreScale divided_by(double divisor) { return {divisor, true}; }
    static ScoreScale times(double factor) { return {factor, false}; }
    float factor() const { return static_cast<float>(divides ? 1.0 / value : value); }
    friend bool operator==(const ScoreScale&, const ScoreScale&) = default;
};

// One attention call on host tensors: a FoveaAttentionDesc with the tensors that it is for. Pointers are
// borrowed for the call.
struct AttentionProblem {
    const F32Tensor* q = nullptr;  // [B, Hq, Lq, D]
    const F32Tensor* k = nullptr;  // [B, Hkv, Lkv, D], Hq a multiple of Hkv
    const F32Tensor* v = nullptr;  // [B, Hkv, Lkv, Dv]
    ScoreScale scale;
    const F32Tensor* bias = nullptr;  // [1 or B, 1 or Hq, Lq, Lkv], added to the scores; -inf hides
    const F32Tensor* keep = nullptr;  // [B, Hq, Lq, Lkv] of 0 and 1: the dropout mask
    double dropout_p = 0.0;           // without `keep`: the engine's counter-based mask of the call's seed
    // Everything else: flags, alignment, softcap, outputs (O, LSE, SCORES, CAPPED, MASKED, WEIGHTS),
    // dropout's seed. Sizes, scale, types and matrices are those of the members above.
    FoveaAttentionDesc call = foveaAttentionDesc();
};

// What was asked for; the rest is left an empty scalar. Matrices are [B, Hq, Lq, Lkv].
struct AttentionResult {
    F32Tensor o;        // [B, Hq, Lq, Dv]
    F32Tensor lse;      // [B, Hq, Lq]
    F32Tensor scores;   // scaled
    F32Tensor capped;   // after the softcap
    F32Tensor masked;   // after bias and mask: -inf where hidden
    F32Tensor weights;  // after dropout, if there is any
};

enum class WeightLayout { out_in, in_out };  // of a linear layer

// y = x W^T + b (nn.Linear, out_in) or y = x W + b (Conv1D and plain parameters, in_out).
struct Linear {
    F32Tensor weight;
    WeightLayout layout = WeightLayout::out_in;
    F32Tensor bias{Shape{0}};  // [d_out], or empty

    uint64_t d_in() const { return weight.shape[layout == WeightLayout::out_in ? 1 : 0]; }
    uint64_t d_out() const { return weight.shape[layout == WeightLayout::out_in ? 0 : 1]; }
    bool has_bias() const { return !bias.values.empty(); }
};

// Rotary embedding. Of the first R columns of a row, pair n is (n, n + R/2), or (2n, 2n + 1) when
// interleaved; row i is rotated by the angles of position first_position + i, pair n by the position times
// theta^(-2n/R) / divisors[n]. Columns from R on stay as they are.
struct Rope {
    double theta = 10000.0;
    bool interleaved = false;
    uint64_t first_position = 0;
    uint64_t width = 0;            // R, even; 0: all columns
    std::vector<double> divisors;  // [R / 2], as longer contexts are reached by; empty: 1
    double magnitude = 1;          // of the rotated columns (YaRN, Peng et al., 2023)

    uint64_t rotated(uint64_t columns) const { return width == 0 ? columns : width; }
};
// Tables of cos and sin of rows of `dim` columns, magnitude included: [len, R / 2] each.
struct RopeTables {
    F32Tensor cos, sin;
};
RopeTables rope_tables(const Rope& rope, uint64_t len, uint64_t dim);

// Shapes are checked by the caller of an executor: the layers do it, with the layer's own words.
// Thread safety: one executor, one thread.
class Executor {
  public:
    virtual ~Executor() = default;
    virtual std::string name() const = 0;
    virtual Result<AttentionResult> attention(const AttentionProblem& problem) = 0;
    // x [.., d_in] -> [.., d_out].
    virtual Result<F32Tensor> linear(const F32Tensor& x, const Linear& layer) = 0;
    // x [B, H, L, D], D even.
    virtual Result<F32Tensor> rope(const F32Tensor& x, const Rope& rope) = 0;
};

// Plain float32 on the calling thread, see <fovea/model/strict.hpp>. Refuses counter-based dropout: give
// `keep`.
class StrictExecutor final : public Executor {
  public:
    std::string name() const override { return "strict"; }
    Result<AttentionResult> attention(const AttentionProblem& problem) override;
    Result<F32Tensor> linear(const F32Tensor& x, const Linear& layer) override;
    Result<F32Tensor> rope(const F32Tensor& x, const Rope& rope) override;
};

}  // namespace fovea

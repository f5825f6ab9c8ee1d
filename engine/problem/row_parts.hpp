// The parts of a layer other than matrix multiplications: norms of rows and elementwise operations. They are
// plans like any other, for programs that keep a layer's values on a device (lens/model). The C API has no
// functions for them, because an application with its own layers has such kernels. Tensors are float32 and
// packed. Bindings: X is the input, Y the result, which may be X.
#pragma once

#include "problem/operations.hpp"

namespace fovea {

enum class NormRule : uint32_t { layer, rms };  // as NormKind of <fovea/model/transformer.hpp> says

// Y = norm(X) * weight + bias, row by row; WEIGHT holds [width] weights, then with `has_bias` as many biases.
// With `adds` O is a residual sum, [rows, width]: X is added to it first, and the norm is of the sum. Sums
// are float32 and not in one chain; squares must not overflow it.
struct NormDesc {
    NormRule rule;
    uint32_t width;
    uint64_t rows;
    float epsilon;
    uint32_t has_weight, has_bias, adds;  // 0 or 1
    FoveaKernel kernel;                   // as of FoveaLinearDesc
};

enum class PointwiseRule : uint32_t { add, gelu, gelu_tanh, silu, relu };  // as Activation says
constexpr uint64_t kPointwiseStretch = 256;  // elements that count as one row on the CPU

// add: Y = X + O. Else Y = f(X), or with `gated` Y = f(X) * O. O is [count] like X.
struct PointwiseDesc {
    PointwiseRule rule;
    uint32_t gated;  // 0 or 1
    uint64_t count;
    FoveaKernel kernel;
    bool has_other() const { return rule == PointwiseRule::add || gated; }
};

// Return the cost of one row and of one element.
constexpr double norm_flops(const NormDesc& d) { return 8.0 * d.width; }
constexpr double pointwise_flops(const PointwiseDesc& d) { return d.rule == PointwiseRule::add ? 1 : 32; }

FoveaResult make_norm(const NormDesc* desc, NormDesc& out, OperationBindings& bindings, FoveaDiag* diag);
FoveaResult make_pointwise(const PointwiseDesc* desc, PointwiseDesc& out, OperationBindings& bindings,
                           FoveaDiag* diag);

// Plans of them, as foveaPlanLinear makes one.
FoveaResult plan_norm(const FoveaDeviceProperties* properties, const NormDesc* desc,
                      const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
FoveaResult plan_pointwise(const FoveaDeviceProperties* properties, const PointwiseDesc* desc,
                           const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);

}  // namespace fovea

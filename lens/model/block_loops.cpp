// The parts of a block other than products and attention, by the engine's kernels or strictly; with
// FOVEA_NO_ROW_KERNELS always strictly.
#include <fovea/model/strict.hpp>

#include "model/block_run.hpp"
#include "model/host_rows.hpp"

namespace fovea {

#ifdef FOVEA_NO_ROW_KERNELS
constexpr bool kHasKernels = false;
#else
constexpr bool kHasKernels = true;
#endif

F32Tensor BlockLoops::normalised(const Norm& norm, F32Tensor x) const {
    if (norm.kind == NormKind::none) return x;
    if (!kHasKernels || !engine_) return fovea::normalised(norm, std::move(x));
    HostRows(engine_->parallel()).norm(norm, x.values.data(), x.rows(), x.columns(), x.values.data());
    return x;
}

void BlockLoops::activate(Activation activation, F32Tensor& x, const F32Tensor* other) const {
    if (!kHasKernels || !engine_) return fovea::activate(activation, x.values, other);
    HostRows(engine_->parallel())
        .pointwise(rule_of(activation), x.values.data(), other ? other->values.data() : nullptr,
                   x.values.data(), x.values.size());
}

void BlockLoops::rotate(F32Tensor& x, const Rope& rope) const {
    if (!kHasKernels || !engine_) {
        x = strict::rotated(std::move(x), rope);
        return;
    }
    HostRows(engine_->parallel())
        .rotate(x.values.data(), x.shape[1], x.shape[0], x.shape[2], HeadOrder::apart, rope,
                rope_tables(rope, x.shape[1], x.shape[2]), 0);
}

}  // namespace fovea

// What a block has beside products and attention: by the engine's kernels, or strictly. The page's own module
// has other definitions (web/engine/left_out.cpp).
#include <fovea/model/strict.hpp>

#include <algorithm>

#include "model/block_run.hpp"
#include "model/host_rows.hpp"

namespace fovea {

F32Tensor BlockLoops::normalised(const Norm& norm, F32Tensor x) const {
    if (norm.kind == NormKind::none) return x;
    if (!engine_) return fovea::normalised(norm, std::move(x));
    HostRows(engine_->parallel()).norm(norm, x.values.data(), x.rows(), x.columns(), x.values.data());
    return x;
}

void BlockLoops::activate(Activation activation, F32Tensor& x, const F32Tensor* other) const {
    if (!engine_) return fovea::activate(activation, x.values, other);
    HostRows(engine_->parallel())
        .pointwise(rule_of(activation), x.values.data(), other ? other->values.data() : nullptr,
                   x.values.data(), x.values.size());
}

void BlockLoops::rotate(F32Tensor& q, F32Tensor& k, const Rope& rope) const {
    if (!engine_) {
        q = strict::rotated(std::move(q), rope), k = strict::rotated(std::move(k), rope);
        return;
    }
    const HostRows on_rows(engine_->parallel());
    const RopeTables tables = rope_tables(rope, std::max(q.shape[1], k.shape[1]), q.shape[2]);
    for (F32Tensor* const x : {&q, &k})
        on_rows.rotate(x->values.data(), x->shape[1], x->shape[0], x->shape[2], HeadOrder::apart, rope,
                       tables, 0);
}

}  // namespace fovea

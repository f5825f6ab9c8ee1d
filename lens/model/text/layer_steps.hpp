// A text whose values stay where they are computed: the steps of its layers by the CPU's kernels
// (host_text.hpp) or by dispatches on a Vulkan device (device_text.hpp).
#pragma once

#include <fovea/model/trace.hpp>

#include <optional>

#include "model/block_steps.hpp"
#include "model/host_rows.hpp"

namespace fovea {

class LayerSteps : public ResidentText, protected BlockExecutor {
  public:
    Result<void> layer(uint64_t n, const Block& block) final;

  protected:
    explicit LayerSteps(uint64_t capacity) : capacity_(capacity) {}

    // Sets the rows [rows, width], after `held` others, that the next layers process. Rejects rows that do
    // not fit.
    Result<void> take(const F32Tensor& x, uint64_t held);
    // Queries that are all keys' last ones, on keys and values [kv_heads, capacity, width].
    FoveaAttentionDesc attention_call(const AttentionPart& a) const;
    uint64_t head_width() const { return block_->attention.query.d_out() / block_->attention.heads; }

    // The steps that follow are layer n's.
    virtual void begin(uint64_t n) = 0;
    // `sum`: what x is added to first; none: nothing.
    virtual Result<void> norm_rows(const Norm& n, uint64_t rows, uint64_t width, Role x, Role y,
                                   std::optional<Role> sum = std::nullopt) = 0;
    // In place.
    virtual Result<void> pointwise(PointwiseRule rule, uint64_t count, Role x, std::optional<Role> other) = 0;
    virtual void swap(Role a, Role b) = 0;

    uint64_t capacity_, rows_ = 0, width_ = 0, held_ = 0;

  private:
    Result<void> copy(Role from, Role to) final;
    Result<void> norm(const Norm& n, uint32_t heads, Role from, Role to) final;
    Result<void> activate(Activation activation, Role role, const Role* other) final;
    Result<void> add(Role from, const Norm* next, Role to) final;
};

// True if both ropes rotate by the same angles.
bool same_angles(const Rope& a, const Rope& b);

}  // namespace fovea

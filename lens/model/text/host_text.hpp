// A text whose layers run on host memory: matrices and attention by an engine's runner, the parts between by
// the CPU's kernels. Buffers and plans are kept from layer to layer and from token to token.
#pragma once

#include <array>
#include <vector>

#include "model/text/layer_steps.hpp"

namespace fovea {

class HostText final : public LayerSteps {
  public:
    // The engine must outlive it.
    HostText(Runner& engine, uint64_t layers, uint64_t capacity);

    Result<void> enter(const F32Tensor& x, uint64_t held) override;
    Result<F32Tensor> row(uint64_t index) override;

  private:
    struct Layer {
        F32Tensor keys{Shape{0}}, values = keys;  // [kv_heads, capacity, width]
    };
    struct Angles {
        Rope rope;
        uint64_t width;
        RopeTables tables;
    };

    void begin(uint64_t n) override { at_ = &layers_[n]; }
    Result<void> linear(std::span<const Product> products, Role x) override;
    Result<void> norm_rows(const Norm& n, uint64_t rows, uint64_t width, Role x, Role y,
                           std::optional<Role> sum) override;
    Result<void> pointwise(PointwiseRule rule, uint64_t count, Role x, std::optional<Role> other) override;
    Result<void> rotate(const Rope& rope, uint32_t heads, Role role) override;
    Result<void> attend(const AttentionPart& a) override;
    void swap(Role a, Role b) override { std::swap(room_[a], room_[b]); }
    // Rows of a role, not cleared.
    F32Tensor& need(Role role, uint64_t width);

    Runner& engine_;
    HostRows on_rows_;
    std::vector<Layer> layers_;
    Layer* at_ = nullptr;  // the layer whose steps run
    std::array<F32Tensor, role_count> room_;
    std::vector<Angles> angles_;
};

}  // namespace fovea

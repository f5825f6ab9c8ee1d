// The steps of a layer whose values stay where they are computed, in the one order that all such texts run
// them in: host_text.hpp by the CPU's kernels, device_text.hpp by dispatches on a Vulkan device.
#pragma once

#include <fovea/model/trace.hpp>

#include <optional>

#include "model/host_rows.hpp"

namespace fovea {

class LayerSteps : public ResidentText {
  public:
    Result<void> layer(uint64_t n, const Block& block) final;

  protected:
    // What the steps read and write, rows of the text each.
    enum Role { stream, normed, queries, keys, values, context, part, hidden, gate, role_count };
    struct Product {
        const Linear* layer;
        Role to;
    };
    explicit LayerSteps(uint64_t capacity) : capacity_(capacity) {}

    // Rows [rows, width] behind `held` others are what layers see from here on. Refused where they do not
    // fit.
    Result<void> take(const F32Tensor& x, uint64_t held);

    // The steps that follow are layer n's.
    virtual void begin(uint64_t n, const Block& block) = 0;
    // Products of the same rows, none of which reads another's result.
    virtual Result<void> linear(std::span<const Product> products, Role x) = 0;
    // `sum`: what x is added to first; none: nothing.
    virtual Result<void> norm(const Norm& n, uint64_t rows, uint64_t width, Role x, Role y,
                              std::optional<Role> sum = std::nullopt) = 0;
    // In place.
    virtual Result<void> pointwise(PointwiseRule rule, uint64_t count, Role x, std::optional<Role> other) = 0;
    virtual Result<void> rotate(const AttentionPart& a, Role role, uint64_t heads, uint64_t width) = 0;
    // New keys and values go behind those that the layer holds; queries stand behind all keys but their own.
    virtual Result<void> attend(const AttentionPart& a, uint64_t width) = 0;
    virtual void swap(Role a, Role b) = 0;

    uint64_t capacity_, rows_ = 0, width_ = 0, held_ = 0;

  private:
    Result<void> add_to_stream(const Norm& n, Role x, bool stays);
    Result<void> attention(const AttentionPart& a, Role from);
    Result<void> feed_forward(const FeedForward& f, Role from);
};

// Whether two ropes turn by the same angles.
bool same_angles(const Rope& a, const Rope& b);

}  // namespace fovea

// Shared by the plans of all Vulkan attention kernels: the parametric masks as the kernels take them, and the
// parts of tensors, matrices and results that a block of query rows binds.
#pragma once

#include "plan/plan.hpp"
#include "plan/vulkan/limits.hpp"

namespace fovea {

// Flags, offset, window and key_limit as shaders/interface.h has them.
VulkanVisibility visibility_of(const Problem& p);

// Keys that a block of `rows` queries may see, at most.
uint64_t keys_of_rows(const Problem& p, const VulkanVisibility& visible, uint64_t rows);

// True if rows of q and k, of v, are multiples of 4 elements.
bool score_rows_are_quads(const Problem& p);
bool value_rows_are_quads(const Problem& p);

// Lengths, o's type: what no kernel can do on a device with these properties.
FoveaResult check_attention(const FoveaPlan_T& plan, FoveaDiag* diag);

// Plans an attention call with the kernel that kernel_choice.cpp finds for it.
FoveaResult plan_vulkan_attention(FoveaPlan_T& plan, FoveaDiag* diag);

// Inputs, o, lse and row statistics of a block of (at most) this shape against the device's descriptors.
struct BlockShape {
    uint64_t batches, heads_q, heads_kv, rows;
};
FoveaResult check_windows(const Problem& p, const BlockShape& shape, const VulkanLimits& limits);

// The same parts for one block. `block` counts query heads, `keys` key/value heads.
class BlockWindows {
  public:
    BlockWindows(const FoveaPlan_T& plan, const RowBlock& block);

    Window query(const FoveaStrides& strides, uint64_t dim, FoveaDtype type) const;
    Window keys(const FoveaStrides& strides, uint64_t dim, FoveaDtype type) const;
    Window matrix(const MatrixView& m) const;
    Window whole(uint32_t binding) const { return {0, p.binding_bytes[binding], 0}; }

    // Results that are packed by (b, h, i) rows: row `row_base` of the first two is the block's first.
    Window lse, stats, matrices;
    uint32_t row_base;

  private:
    const Problem& p;
    RowBlock block_;
    uint64_t alignment_;
};

}  // namespace fovea

// Attention inside a renderer's frame: adopted device, planned once, recorded in slices over as many frames
// as the budget asks for.
#pragma once

#include "gpu.hpp"

#include <fovea/fovea_vulkan.h>
#include <fovea/fovea.hpp>

namespace flock {

constexpr uint32_t kHeads = 2, kDim = 4;

class Attention {
  public:
    Attention(const Gpu& gpu, uint32_t birds);
    ~Attention();
    Attention(const Attention&) = delete;

    // Records the next slices of the round under way, at least one, at most what `budget_seconds` allows by
    // the times measured so far. Two timestamps each go to `queries`, from `first_query` on. Returns how many
    // it recorded.
    uint32_t record(VkCommandBuffer cmd, double budget_seconds, VkQueryPool queries, uint32_t first_query,
                    uint32_t frame);
    // The last round is complete and none is under way.
    bool between_rounds() const { return next_slice_ == 0; }
    void measured(double slice_seconds);
    void forget_times() { slowest_slice_seconds_ = 0; }

    // What the renderer's own passes read and write.
    const Buffer& q() const { return q_; }
    const Buffer& k() const { return k_; }
    const Buffer& v() const { return v_; }
    const Buffer& means(uint32_t side) const { return means_[side]; }
    const Buffer& log_sums(uint32_t side) const { return log_sums_[side]; }
    uint32_t finished_side() const { return 1 - side_; }  // of the last round that is complete
    uint32_t slice_count() const { return uint32_t(info_.slice_count); }
    const char* reason() const { return info_.reason; }

  private:
    const Gpu& gpu_;
    FoveaContext context_ = nullptr;
    fovea::Plan plan_;
    FoveaPlanInfo info_{};
    Buffer q_, k_, v_, workspace_, means_[2], log_sums_[2];  // results in turns: one is shown, one is written
    VkDescriptorPool pools_[kFramesInFlight] = {};           // only where the device has no push descriptors
    uint32_t side_ = 0, next_slice_ = 0;
    double slowest_slice_seconds_ = 0;
};

}  // namespace flock

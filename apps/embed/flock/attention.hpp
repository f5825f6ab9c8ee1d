// The birds' attention to each other: planned once, recorded in slices over as many frames as the budget asks
// for.
#pragma once

#include "guest.hpp"

namespace flock {

using namespace embed;
constexpr uint32_t kHeads = 2, kDim = 4;

class Attention {
  public:
    Attention(const Gpu& gpu, uint32_t birds);
    ~Attention();
    Attention(const Attention&) = delete;

    // As SlicedPlan::record; a round that is complete is shown from then on, and the next one writes the
    // other side.
    uint32_t record(VkCommandBuffer cmd, double budget_seconds, VkQueryPool queries, uint32_t first_query,
                    uint32_t frame);
    SlicedPlan& plan() { return plan_; }
    const SlicedPlan& plan() const { return plan_; }

    // Buffers that the renderer's own passes read and write.
    const Buffer& q() const { return q_; }
    const Buffer& k() const { return k_; }
    const Buffer& v() const { return v_; }
    const Buffer& means(uint32_t side) const { return means_[side]; }
    const Buffer& log_sums(uint32_t side) const { return log_sums_[side]; }
    uint32_t finished_side() const { return 1 - side_; }  // side of the last complete round

  private:
    Guest guest_;
    SlicedPlan plan_;
    Buffer q_, k_, v_, means_[2], log_sums_[2];  // results in turns: one is shown, one is written
    uint32_t side_ = 0;
};

}  // namespace flock

// Fovea as a guest of the renderer's device: a context for all, and plans whose slices are spread over
// frames.
#pragma once

#include "gpu.hpp"

#include <fovea/fovea_vulkan.h>
#include <fovea/fovea.hpp>

#include <limits>

namespace embed {

constexpr double kNoBudget = std::numeric_limits<double>::infinity();  // seconds: the whole round at once

class Guest {
  public:
    explicit Guest(const Gpu& lender);
    ~Guest() { foveaDestroyContext(context); }
    Guest(const Guest&) = delete;

    const Gpu& gpu;
    FoveaContext context = nullptr;
    FoveaDeviceProperties properties = foveaDeviceProperties();
};

using Bindings = FoveaBuffer[FOVEA_BIND_COUNT];
inline void bind(Bindings& to, FoveaBinding which, const Buffer& buffer) {
    to[which] = {buffer.handle, 0, buffer.size};
}

// One round after another of a plan, each spread over as many frames as the budget asks for.
class SlicedPlan {
  public:
    // Plans are made and compiled ahead of the first frame.
    SlicedPlan(const Guest& guest, fovea::Result<fovea::Plan> plan);
    ~SlicedPlan();
    SlicedPlan(const SlicedPlan&) = delete;

    // Records the next slices of the round under way, at least one, at most what `budget_seconds` allows by
    // the times measured so far. Two timestamps each go to `queries`, from `first_query` on (null: none are
    // taken). Returns how many it recorded.
    uint32_t record(VkCommandBuffer cmd, const Bindings& bindings, double budget_seconds, VkQueryPool queries,
                    uint32_t first_query, uint32_t frame);
    // The last round is complete and none is under way.
    bool between_rounds() const { return next_slice_ == 0; }
    void measured(double slice_seconds);
    void forget_times() { slowest_slice_seconds_ = 0; }
    uint32_t slice_count() const { return uint32_t(info.slice_count); }

    FoveaPlanInfo info{};

  private:
    const Guest& guest_;
    fovea::Plan plan_;
    Buffer workspace_;
    VkDescriptorPool pools_[kFramesInFlight] = {};  // only where the device has no push descriptors
    uint32_t next_slice_ = 0;
    double slowest_slice_seconds_ = 0;
};

}  // namespace embed

// Inputs that a plan gathers in the workspace because its kernels would bind more storage buffers than they
// may: for each a small dispatch copies its window there, see shaders/gather.comp.
#pragma once

#include "plan/vulkan/attention.hpp"
#include "shaders/interface.h"

namespace fovea {

// No kernel binds more buffers than this, however many the device takes: it is what WebGPU promises.
constexpr uint32_t kMaxStorageBuffers = 8;
uint32_t storage_buffer_limit(const FoveaDeviceProperties& properties);

// The kGather* bit of the next input to gather, the small ones first; 0: the call has no other.
uint32_t next_to_gather(const FoveaPlan_T& plan);

// The place of the gathered inputs of a plan's slices: the same for all slices, with room for the largest.
class Gathering {
  public:
    // `extra_offset` is the offset of FlashExtra in the workspace; `begin` is the first free byte after it.
    Gathering(const FoveaPlan_T& plan, const BlockShape& largest, uint64_t extra_offset, uint64_t begin);

    uint64_t end() const { return end_; }  // in the workspace
    shader::GatheredAt places() const;
    // Adds the dispatches that copy, after the first `count` of `out`.
    void fill(const BlockWindows& windows, FoveaDispatch* out, uint32_t& count) const;

  private:
    static constexpr uint32_t kInputs = 9;

    const FoveaPlan_T& plan_;
    uint64_t extra_offset_, end_;
    uint64_t place_[kInputs] = {};
};

// Returns the inputs that a plan gathers whether it must or not: on a software driver all of them, so that
// one pipeline serves all calls.
uint32_t always_gathered(const FoveaDeviceProperties& properties);

// How many dispatches gather; 0: the call has none of the inputs of plan.vulkan.gathered.
uint32_t gathered_count(const FoveaPlan_T& plan);

}  // namespace fovea

// The pipelines of a context: built once for each combination of shader, constants and layout, kept until the
// context goes, shared by all its plans.
#pragma once

#include "vulkan/vk_table.hpp"

#include <atomic>
#include <cstdint>

namespace fovea::vulkan {

struct PipelineKey {
    uint32_t shader, subgroup_size, push_words, slot_mask;  // slot_mask: binding numbers in set 0
    uint32_t spec_count;
    uint32_t spec[FOVEA_MAX_SPEC_CONSTANTS];  // zero past spec_count
};
PipelineKey key_of(const FoveaDispatch& dispatch);
bool operator==(const PipelineKey& a, const PipelineKey& b);

struct Pipeline {
    PipelineKey key;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline handle;
};

// Entries are never removed or changed, and copied out: readers hold the lock for a short search only. A spin
// lock, because the library takes part in no operating system's threads.
class PipelineTable {
  public:
    bool find(const PipelineKey& key, Pipeline& out);
    // False if there is no host memory. If another thread was faster, `pipeline` becomes its entry and
    // `lost_race` tells the caller to destroy the new pipeline.
    bool insert(const FoveaHostAllocator& allocator, Pipeline& pipeline, bool& lost_race);
    // Hands every entry to `destroy` and frees the memory. No other thread may use the table.
    template <class Destroy>
    void clear(const FoveaHostAllocator& allocator, Destroy destroy) {
        for (uint32_t i = 0; i < count_; ++i) destroy(items_[i]);
        if (items_) allocator.release(allocator.user, items_, sizeof(Pipeline) * capacity_);
        items_ = nullptr;
        count_ = capacity_ = 0;
    }

  private:
    const Pipeline* search(const PipelineKey& key) const;
    bool grow(const FoveaHostAllocator& allocator);

    std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
    Pipeline* items_ = nullptr;
    uint32_t count_ = 0, capacity_ = 0;
};

}  // namespace fovea::vulkan

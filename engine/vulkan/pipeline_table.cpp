#include "vulkan/pipeline_table.hpp"

#include <cstring>
#include <type_traits>

namespace fovea::vulkan {
namespace {

class SpinLock {
  public:
    explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
        while (flag_.test_and_set(std::memory_order_acquire)) {
        }
    }
    ~SpinLock() { flag_.clear(std::memory_order_release); }
    SpinLock(const SpinLock&) = delete;
    SpinLock& operator=(const SpinLock&) = delete;

  private:
    std::atomic_flag& flag_;
};

}  // namespace

PipelineKey key_of(const FoveaDispatch& dispatch) {
    PipelineKey key{};
    key.shader = dispatch.shader;
    key.subgroup_size = dispatch.subgroup_size;
    key.push_words = dispatch.push_words;
    for (uint32_t i = 0; i < dispatch.binding_count; ++i) key.slot_mask |= 1u << dispatch.bindings[i].slot;
    key.spec_count = dispatch.spec_count;
    for (uint32_t i = 0; i < dispatch.spec_count; ++i) key.spec[i] = dispatch.spec[i];
    return key;
}

bool operator==(const PipelineKey& a, const PipelineKey& b) {
    static_assert(std::has_unique_object_representations_v<PipelineKey>);
    return memcmp(&a, &b, sizeof a) == 0;
}

const Pipeline* PipelineTable::search(const PipelineKey& key) const {
    for (uint32_t i = 0; i < count_; ++i) {
        if (items_[i].key == key) return &items_[i];
    }
    return nullptr;
}

bool PipelineTable::find(const PipelineKey& key, Pipeline& out) {
    SpinLock lock(lock_);
    const Pipeline* found = search(key);
    if (found) out = *found;
    return found != nullptr;
}

bool PipelineTable::insert(const FoveaHostAllocator& allocator, Pipeline& pipeline, bool& lost_race) {
    SpinLock lock(lock_);
    lost_race = false;
    if (const Pipeline* found = search(pipeline.key)) {
        pipeline = *found;
        lost_race = true;
        return true;
    }
    if (count_ == capacity_ && !grow(allocator)) return false;
    items_[count_++] = pipeline;
    return true;
}

bool PipelineTable::grow(const FoveaHostAllocator& allocator) {
    const uint32_t capacity = capacity_ ? capacity_ * 2 : 16;
    void* memory = allocator.allocate(allocator.user, sizeof(Pipeline) * capacity, alignof(Pipeline));
    if (!memory) return false;
    if (count_) memcpy(memory, items_, sizeof(Pipeline) * count_);
    if (items_) allocator.release(allocator.user, items_, sizeof(Pipeline) * capacity_);
    items_ = static_cast<Pipeline*>(memory);
    capacity_ = capacity;
    return true;
}

}  // namespace fovea::vulkan

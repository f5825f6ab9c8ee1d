// A FoveaHostAllocator that keeps books, checks sizes on release, and can run out.
#pragma once

#include <fovea/fovea.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>

namespace fovea::test {

class CountingAllocator {
  public:
    FoveaHostAllocator get() { return {this, allocate, release}; }
    // The n-th allocation from now on (1: the next) gives null; 0: none.
    void fail_allocation(uint32_t n) {
        allocations_ = 0;
        fail_at_ = n;
    }
    uint32_t allocations() const { return allocations_; }
    size_t live() const { return live_.size(); }
    // Releases of what was never allocated, or with another size.
    uint32_t mistakes() const { return mistakes_; }

  private:
    static constexpr size_t kAlignment = 64;  // the most that the library asks for

    static void* allocate(void* user, size_t size_bytes, size_t alignment) {
        auto& self = *static_cast<CountingAllocator*>(user);
        std::lock_guard lock(self.mutex_);
        if (++self.allocations_ == self.fail_at_) return nullptr;
        self.mistakes_ += alignment > kAlignment;
        void* memory = ::operator new (size_bytes, std::align_val_t{kAlignment}, std::nothrow);
        self.live_[memory] = size_bytes;
        return memory;
    }
    static void release(void* user, void* memory, size_t size_bytes) {
        auto& self = *static_cast<CountingAllocator*>(user);
        std::lock_guard lock(self.mutex_);
        const auto found = self.live_.find(memory);
        if (found == self.live_.end() || found->second != size_bytes) {
            ++self.mistakes_;
            return;
        }
        self.live_.erase(found);
        ::operator delete (memory, std::align_val_t{kAlignment});
    }

    std::mutex mutex_;
    std::map<void*, size_t> live_;
    uint32_t allocations_ = 0, fail_at_ = 0, mistakes_ = 0;
};

}  // namespace fovea::test

// Host memory with guarded margins: bytes before and after it that show a write and, if it is only read, a
// page without access after its end.
#pragma once

#include "support/wall.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace fovea::test {

enum class Behind {
    margin,  // bytes, which show what was written there
    wall     // a page without access, which stops reads too
};

class GuardedBuffer {
  public:
    // With a margin, `offset_bytes` is the distance of the first byte from a multiple of 64. At a wall the
    // first byte is where the last one leaves it, on a multiple of `alignment`.
    GuardedBuffer(size_t size_bytes, size_t offset_bytes, std::byte fill, Behind behind = Behind::margin,
                  size_t alignment = 1)
        : size_(size_bytes), memory_(size_bytes + 2 * kMargin + 64), fill_(fill) {
        memset(memory_.data(), int(fill), memory_.size());
        first_ = behind == Behind::wall ? (memory_.size() - size_) / alignment * alignment
                                        : kMargin + offset_bytes % 64;
        poison(true);
    }
    ~GuardedBuffer() { poison(false); }
    GuardedBuffer(const GuardedBuffer&) = delete;
    GuardedBuffer& operator=(const GuardedBuffer&) = delete;

    std::byte* data() { return memory_.data() + first_; }
    size_t size() const { return size_; }
    void assign(const std::vector<std::byte>& bytes) {
        if (!bytes.empty()) memcpy(data(), bytes.data(), bytes.size());
    }
    std::vector<std::byte> contents() const {
        return {memory_.data() + first_, memory_.data() + first_ + size_};
    }

    // Offset of the first changed byte outside the buffer, counted from its begin; 0 if there is none. (A
    // margin never has offset 0.)
    ptrdiff_t changed_margin() const {
        poison(false);
        ptrdiff_t changed = 0;
        for (size_t n = first_ < kSeen ? 0 : first_ - kSeen; n < memory_.size() && n < first_ + size_ + kSeen;
             ++n) {
            if (n == first_) n += size_;
            if (n >= memory_.size()) break;
            if (memory_.data()[n] == fill_) continue;
            changed = ptrdiff_t(n) - ptrdiff_t(first_);
            break;
        }
        poison(true);
        return changed;
    }

  private:
    static constexpr size_t kMargin = 256;
    static constexpr size_t kSeen = 4096;  // size of the margins, which fill a page

    // The address sanitizer sees reads of the margins, too.
    void poison([[maybe_unused]] bool on) const {
#if defined(__SANITIZE_ADDRESS__)
        if (on) {
            __asan_poison_memory_region(memory_.data(), first_);
            __asan_poison_memory_region(memory_.data() + first_ + size_, memory_.size() - first_ - size_);
        } else {
            __asan_unpoison_memory_region(memory_.data(), memory_.size());
        }
#endif
    }

    size_t size_, first_ = 0;
    WalledMemory memory_;
    std::byte fill_;
};

}  // namespace fovea::test

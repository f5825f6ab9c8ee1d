// Host memory with margins that nobody may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace fovea::test {

class GuardedBuffer {
  public:
    // `offset_bytes` is the distance of the first byte from a multiple of 64.
    GuardedBuffer(size_t size_bytes, size_t offset_bytes, std::byte fill)
        : size_(size_bytes), memory_(size_bytes + 2 * kMargin + 64, fill), fill_(fill) {
        const auto base = reinterpret_cast<uintptr_t>(memory_.data());
        first_ = (base + kMargin + 63) / 64 * 64 - base + offset_bytes % 64;
    }

    std::byte* data() { return memory_.data() + first_; }
    size_t size() const { return size_; }
    void assign(const std::vector<std::byte>& bytes) {
        if (!bytes.empty()) memcpy(data(), bytes.data(), bytes.size());
    }
    std::vector<std::byte> contents() const {
        return {memory_.begin() + ptrdiff_t(first_), memory_.begin() + ptrdiff_t(first_ + size_)};
    }

    // Offset of the first changed byte outside the buffer, counted from its begin; 0 if there is none. (A
    // margin never has offset 0.)
    ptrdiff_t changed_margin() const {
        for (size_t n = 0; n < memory_.size(); ++n) {
            if (n == first_) n += size_;
            if (n < memory_.size() && memory_[n] != fill_) return ptrdiff_t(n) - ptrdiff_t(first_);
        }
        return 0;
    }

  private:
    static constexpr size_t kMargin = 256;
    size_t size_, first_ = 0;
    std::vector<std::byte> memory_;
    std::byte fill_;
};

}  // namespace fovea::test

// Memory that ends at a page without access, so that a read past it stops the test instead of passing unseen;
// and words for what was running when it happened.
#pragma once

#include <cstddef>
#include <string>

namespace fovea::test {

// Pages of which the last ends at a wall. Where the system has no such pages (no POSIX), plain memory.
class WalledMemory {
  public:
    explicit WalledMemory(size_t size_bytes);
    ~WalledMemory();
    WalledMemory(WalledMemory&& other) noexcept;
    WalledMemory& operator=(WalledMemory&&) = delete;

    // `size` is the size asked for, rounded up to whole pages.
    std::byte* data() const { return data_; }
    size_t size() const { return size_; }

    // Whole pages within [first, first + count) lose their access.
    void forbid(size_t first, size_t count) const;

  private:
    std::byte* data_ = nullptr;
    size_t size_ = 0, mapped_ = 0;
};

// While it lives, a fault prints `what` before the process ends: the command that replays the case.
class Running {
  public:
    explicit Running(const std::string& what);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

  private:
    const char* before_;
    std::string text_;
};

}  // namespace fovea::test

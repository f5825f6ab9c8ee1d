#pragma once
// Counts the bytes that malloc and operator new hand out, libraries' included (zlib, libpng).
#include <cstddef>

namespace fovea::test {

/// False where the system gives no way to count; tests then say that they skip.
bool can_count_allocations();

/// The most bytes that were allocated at one time since construction, above what was allocated then.
/// One at a time, one thread.
class AllocationPeak {
  public:
    AllocationPeak();
    ~AllocationPeak();
    AllocationPeak(const AllocationPeak&) = delete;
    AllocationPeak& operator=(const AllocationPeak&) = delete;
    size_t bytes() const;
};

}  // namespace fovea::test

// foveaCheckDevice on a queue of the runtime, and what it found: each kernel is checked once, when the first
// plan uses it.
#pragma once

#include "runtime/vulkan_memory.hpp"

namespace fovea::runtime {

// Checks `shaders` (all zero: every kernel) of a context on the device of the queue.
Result<FoveaCheckReport> check_device(FoveaContext context, VulkanAllocator& allocator,
                                      const CheckedShaders& shaders, uint32_t seed, double timeout_seconds);

// The results for one driver, kept in a file of a folder if there is one. A file of another library is
// ignored, and so is one that cannot be read or written: then the check runs again.
class DriverCheck {
  public:
    // `folder`: its path, or empty.
    DriverCheck(const VkPhysicalDeviceProperties& device, const std::string& folder);

    const CheckedShaders& failed() const { return failed_; }
    // "flash is off for float32 tensors: ..." of each failed kernel.
    const std::vector<std::string>& texts() const { return texts_; }
    bool knows(uint32_t type, uint32_t shader) const { return checked_[type] >> shader & 1; }
    // Adds what a check found. `asked`: kernels that count as checked even where no problem of theirs could
    // run.
    void add(const FoveaCheckReport& report, const CheckedShaders& asked);

  private:
    void read();
    void write() const;
    std::string identity_, file_;
    CheckedShaders checked_{}, failed_{};
    std::vector<std::string> texts_;
};

}  // namespace fovea::runtime

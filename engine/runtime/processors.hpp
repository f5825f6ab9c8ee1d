// The CPUs and the memory that this process may use.
#pragma once

#include <cstdint>

namespace fovea::runtime {

// Returns the CPU cores that this process may use, at least 1.
uint32_t available_processors();

// Bytes of memory that this process may ever have: of the machine, its control group and its address space.
uint64_t memory_of_process();

}  // namespace fovea::runtime

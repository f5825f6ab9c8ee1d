// The most memory that this process has held.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace fovea::test {

// Bytes resident at most since the process started; 0 where the system does not tell.
inline uint64_t peak_resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0) return std::stoull(line.substr(6)) * 1024;
    return 0;
}

}  // namespace fovea::test

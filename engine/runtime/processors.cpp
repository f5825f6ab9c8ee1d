#include "runtime/processors.hpp"

#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace fovea::runtime {

uint32_t available_processors() {
#if defined(__linux__)
    // hardware_concurrency() may count processors that a container does not lend.
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        const int count = CPU_COUNT(&set);
        if (count > 0) return static_cast<uint32_t>(count);
    }
#endif
    const uint32_t count = std::thread::hardware_concurrency();
    return count ? count : 1;
}

}  // namespace fovea::runtime

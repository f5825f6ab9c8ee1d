#include "runtime/processors.hpp"

#include <algorithm>
#include <fstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
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

uint64_t memory_of_process() {
    uint64_t bytes = UINT64_MAX;
#if defined(__linux__)
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) bytes = uint64_t(pages) * uint64_t(page);
    for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        uint64_t limit = 0;  // the first says "max" where there is none
        if (std::ifstream(file) >> limit && limit > 0) bytes = std::min(bytes, limit);
    }
    rlimit space{};
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        bytes = std::min<uint64_t>(bytes, space.rlim_cur);
#endif
    return bytes;
}

}  // namespace fovea::runtime

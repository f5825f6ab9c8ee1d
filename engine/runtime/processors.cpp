#include "runtime/processors.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace fovea::runtime {

uint32_t available_processors() {
#if defined(__linux__)
    // hardware_concurrency() may count CPU cores that a container does not provide.
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
    // Without C++ streams, which bring every locale into the shared library.
    for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        char text[32] = "";
        if (FILE* file = fopen(path, "re")) {
            if (!fgets(text, sizeof text, file)) text[0] = 0;
            fclose(file);
        }
        uint64_t limit = 0;  // the first says "max" where there is none
        std::from_chars(text, text + strlen(text), limit);
        if (limit > 0) bytes = std::min(bytes, limit);
    }
    rlimit space{};
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        bytes = std::min<uint64_t>(bytes, space.rlim_cur);
#endif
    return bytes;
}

}  // namespace fovea::runtime

#include "bench/pool.hpp"

#include <algorithm>
#include <chrono>
#if defined(__linux__)
#include <time.h>
#endif
#if defined(__EMSCRIPTEN__)
#include <emscripten/em_js.h>

// Node has no clock of a thread, but Linux shows it as a file, brought up to date by cpuUsage.
EM_JS(double, node_thread_seconds, (), {
    try {
        process.cpuUsage();
        return parseInt(require("fs").readFileSync("/proc/thread-self/schedstat", "utf8")) * 1e-9;
    } catch (error) {
        return performance.now() * 1e-3;
    }
});
#endif

namespace fovea::app {
namespace {

// For stretches of a millisecond and more: reading it may take some microseconds.
double processor_seconds() {
#if defined(__EMSCRIPTEN__)
    return node_thread_seconds();
#else
    return thread_seconds();
#endif
}

}  // namespace

double thread_seconds() {
#if defined(__linux__)
    timespec t{};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0) return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
#endif
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

BenchPool::BenchPool(uint32_t workers)
    : began_(workers),
      spent_(workers),
      pool_(workers, ThreadPool::kBetweenCalls,
            {[](void* user, uint32_t worker) {
                 static_cast<BenchPool*>(user)->began_[worker] = processor_seconds();
             },
             [](void* user, uint32_t worker) {
                 auto& pool = *static_cast<BenchPool*>(user);
                 pool.spent_[worker] += processor_seconds() - pool.began_[worker];
             },
             this}) {
    const auto call = [](void* user, uint32_t count, FoveaTask task, void* arg) {
        static_cast<BenchPool*>(user)->run(count, task, arg);
    };
    parallel_ = {this, call, pool_.worker_count()};
}

void BenchPool::run(uint32_t count, FoveaTask task, void* arg) {
    const double start = processor_seconds(), before = spent_[0];
    pool_.run(count, task, arg);
    waited_ += processor_seconds() - start - (spent_[0] - before);
}

double BenchPool::busy_seconds(void (*call)(void*), void* arg) {
    std::fill(spent_.begin(), spent_.end(), 0.0);
    waited_ = 0;
    const double start = processor_seconds();
    call(arg);
    spent_[0] = processor_seconds() - start - waited_;
    return *std::max_element(spent_.begin(), spent_.end());
}

}  // namespace fovea::app

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

constexpr int kSpins = 20000;

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

BenchPool::BenchPool(uint32_t workers) : spent_(workers) {
    parallel_.user = this;
    parallel_.run = [](void* user, uint32_t count, FoveaTask task, void* arg) {
        static_cast<BenchPool*>(user)->run(count, task, arg);
    };
    parallel_.worker_count = workers;
    for (uint32_t n = 1; n < workers; ++n) threads_.emplace_back([this, n] { work(n); });
}

BenchPool::~BenchPool() {
    stop_ = true;
    ++generation_;
    generation_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void BenchPool::drain(uint32_t worker) {
    for (uint32_t n; (n = next_.fetch_add(1)) < count_;) task_(arg_, n, worker);
}

void BenchPool::work(uint32_t worker) {
    uint32_t seen = 0;
    for (;;) {
        for (int n = 0; n < kSpins && generation_.load() == seen; ++n) {
        }
        generation_.wait(seen);
        seen = generation_.load();
        if (stop_) return;
        const double start = processor_seconds();
        drain(worker);
        spent_[worker] += processor_seconds() - start;
        if (--busy_ == 0) busy_.notify_one();
    }
}

void BenchPool::run(uint32_t count, FoveaTask task, void* arg) {
    task_ = task, arg_ = arg, count_ = count;
    next_ = 0;
    busy_ = uint32_t(threads_.size());
    ++generation_;
    generation_.notify_all();
    drain(0);
    const double start = processor_seconds();
    for (int n = 0; n < kSpins && busy_.load() != 0; ++n) {
    }
    for (uint32_t left; (left = busy_.load()) != 0;) busy_.wait(left);
    waited_ += processor_seconds() - start;
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

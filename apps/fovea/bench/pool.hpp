// Threads for the benchmarks. They wait in a loop for a moment before they sleep, so that starting them costs
// as little as in a program that keeps computing, and they count the processor time that each spends on
// tasks: on a machine that others use too, the clock on the wall says more about the others.
#pragma once

#include <fovea/fovea.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace fovea::app {

// Processor time of the calling thread in seconds; the wall's time where a system does not tell.
double thread_seconds();

class BenchPool {
  public:
    explicit BenchPool(uint32_t workers);
    ~BenchPool();
    BenchPool(const BenchPool&) = delete;
    BenchPool& operator=(const BenchPool&) = delete;

    uint32_t workers() const { return uint32_t(threads_.size()) + 1; }
    // Null for a single worker.
    const FoveaParallel* parallel() const { return threads_.empty() ? nullptr : &parallel_; }
    void run(uint32_t count, FoveaTask task, void* arg);

    // Calls call(arg) here, with this pool to lend, and returns the processor time of the busiest worker:
    // what the call takes on a machine of its own.
    double busy_seconds(void (*call)(void* arg), void* arg);

  private:
    void work(uint32_t worker);
    void drain(uint32_t worker);

    FoveaParallel parallel_;
    std::vector<std::thread> threads_;
    FoveaTask task_ = nullptr;
    void* arg_ = nullptr;
    uint32_t count_ = 0;
    std::atomic<uint32_t> next_{0}, generation_{0}, busy_{0};
    std::atomic<bool> stop_{false};
    std::vector<double> spent_;  // by worker, since busy_seconds began
    double waited_ = 0;          // of the caller
};

}  // namespace fovea::app

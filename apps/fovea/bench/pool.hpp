// Threads for the benchmarks. They wait in a loop for a moment before they sleep (not in WebAssembly, see
// ThreadPool), so that starting them costs as little as in a program that keeps computing, and they count the
// CPU time that each spends on tasks, because on a shared machine wall time depends on the other programs.
#pragma once

#include <fovea/thread_pool.hpp>

#include <cstdint>
#include <vector>

namespace fovea::app {

// CPU time of the calling thread in seconds; wall time if the system does not report it.
double thread_seconds();

class BenchPool {
  public:
    explicit BenchPool(uint32_t workers);
    BenchPool(const BenchPool&) = delete;
    BenchPool& operator=(const BenchPool&) = delete;

    uint32_t workers() const { return pool_.worker_count(); }
    // Null for a single worker.
    const FoveaParallel* parallel() const { return workers() == 1 ? nullptr : &parallel_; }
    void run(uint32_t count, FoveaTask task, void* arg);

    // Calls call(arg) here, lending this pool, and returns the CPU time of the busiest worker: the time of
    // the call on an otherwise idle machine.
    double busy_seconds(void (*call)(void* arg), void* arg);

  private:
    FoveaParallel parallel_;
    std::vector<double> began_, spent_;  // by worker; spent on tasks since busy_seconds began
    double waited_ = 0;                  // waiting time of the caller
    ThreadPool pool_;
};

}  // namespace fovea::app

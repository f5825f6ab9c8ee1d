// The workers that the page lends to the engine: pthreads, each a Web Worker over the same memory.
#pragma once

#include <fovea/fovea.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace fovea::web {

// The calling thread is worker 0 and takes part. Workers live as long as the page: a browser cannot join them
// without blocking its event loop.
class ThreadPool {
  public:
    explicit ThreadPool(uint32_t worker_count);

    uint32_t worker_count() const { return worker_count_; }
    // For a call by at most so many workers, until the next call of this. Null for one: the caller works
    // alone.
    const FoveaParallel* parallel(uint32_t worker_limit);

  private:
    static void run_tasks(void* user, uint32_t count, FoveaTask task, void* arg);
    void work(uint32_t worker);
    void take_tasks(uint32_t worker);

    uint32_t worker_count_;
    FoveaParallel parallel_{};
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable start_, done_;
    uint64_t generation_ = 0;
    uint32_t busy_ = 0;
    uint32_t active_limit_ = 0;
    FoveaTask task_ = nullptr;
    void* arg_ = nullptr;
    uint32_t count_ = 0;
    std::atomic<uint32_t> next_{0};
};

}  // namespace fovea::web

// Threads that an Engine lends to the CPU backend.
#pragma once

#include <fovea/fovea.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace fovea::runtime {

// Processors that this process may use, at least 1.
uint32_t available_processors();

// `workers` in all: the caller of run() is worker 0, the others sleep between calls. One caller at a time.
class ThreadPool {
  public:
    explicit ThreadPool(uint32_t workers);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    uint32_t worker_count() const { return static_cast<uint32_t>(threads_.size()) + 1; }
    // Calls task(arg, i, worker) for each i < count and returns when all are done.
    void run(uint32_t count, FoveaTask task, void* arg);
    FoveaParallel parallel();

  private:
    struct Job {
        FoveaTask task = nullptr;
        void* arg = nullptr;
        uint32_t count = 0;
    };
    void work(uint32_t worker);
    void drain(const Job& job, uint32_t worker);

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Job job_;
    std::atomic<uint32_t> next_{0};
    uint64_t generation_ = 0;  // counts jobs
    uint32_t busy_ = 0;        // threads still on the current job
    bool stop_ = false;
};

}  // namespace fovea::runtime

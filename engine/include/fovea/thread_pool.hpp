// Threads that a program keeps and lends to the CPU backend. C++20, header only.
#pragma once

#include <fovea/fovea.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fovea {

// `workers` in all: the caller of run() is worker 0, the others sleep between calls. One caller at a time.
class ThreadPool {
  public:
    // Told on a worker's own thread before and after it takes tasks, for those who measure.
    struct Observer {
        void (*begins)(void* user, uint32_t worker);
        void (*ends)(void* user, uint32_t worker);
        void* user;
    };

    // Fewer workers than asked for where the system gives no more threads, or has none at all (WebAssembly
    // without them). `spins`: how often a thread looks for more work before it sleeps, so that calls in quick
    // succession start at once.
    explicit ThreadPool(uint32_t workers, uint32_t spins = 0) : ThreadPool(workers, spins, Observer{}) {}
    ThreadPool(uint32_t workers, uint32_t spins, const Observer& observer)
        : observer_(observer), spins_(spins) {
#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#ifdef __cpp_exceptions
        try {
            start_threads(workers);
        } catch (const std::system_error&) {  // those that there are do the work
        }
#else  // a build without exceptions ends where the system refuses a thread
        start_threads(workers);
#endif
#else
        static_cast<void>(workers);
#endif
    }
    ~ThreadPool() {
        {
            std::lock_guard lock(mutex_);
            stop_ = true;
            ++generation_;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    uint32_t worker_count() const { return uint32_t(threads_.size()) + 1; }

    // Calls task(arg, i, worker) for each i < count, `worker` below `most_workers` (0: all of them), and
    // returns when all are done.
    void run(uint32_t count, FoveaTask task, void* arg, uint32_t most_workers = 0) {
        const Job job{task, arg, count, most_workers ? most_workers : worker_count()};
        if (threads_.empty() || count <= 1 || job.workers <= 1) {
            next_.store(0, std::memory_order_relaxed);
            take_tasks(job, 0);
            return;
        }
        {
            std::lock_guard lock(mutex_);
            job_ = job;
            next_.store(0, std::memory_order_relaxed);
            busy_.store(uint32_t(threads_.size()), std::memory_order_relaxed);
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        take_tasks(job, 0);
        spin_while([&] { return busy_.load(std::memory_order_acquire) != 0; });
        std::unique_lock lock(mutex_);
        done_.wait(lock, [&] { return busy_.load(std::memory_order_acquire) == 0; });
    }

    // For FoveaCpuRun::parallel, of all workers or at most so many. Valid as long as the pool.
    FoveaParallel parallel(uint32_t most_workers = 0) {
        const uint32_t workers =
            most_workers && most_workers < worker_count() ? most_workers : worker_count();
        lent_workers_ = workers;
        const auto call = [](void* user, uint32_t count, FoveaTask task, void* arg) {
            auto& pool = *static_cast<ThreadPool*>(user);
            pool.run(count, task, arg, pool.lent_workers_);
        };
        return FoveaParallel{this, call, workers};
    }

  private:
    struct Job {
        FoveaTask task = nullptr;
        void* arg = nullptr;
        uint32_t count = 0, workers = 0;
    };

    void start_threads(uint32_t workers) {
        for (uint32_t i = 1; i < workers; ++i) threads_.emplace_back([this, i] { work(i); });
    }

    template <class Condition>
    void spin_while(const Condition& condition) const {
        for (uint32_t n = 0; n < spins_ && condition(); ++n) {
        }
    }

    void take_tasks(const Job& job, uint32_t worker) {
        if (observer_.begins) observer_.begins(observer_.user, worker);
        for (uint32_t i = next_.fetch_add(1, std::memory_order_relaxed); i < job.count;
             i = next_.fetch_add(1, std::memory_order_relaxed))
            job.task(job.arg, i, worker);
        if (observer_.ends) observer_.ends(observer_.user, worker);
    }

    void work(uint32_t worker) {
        uint64_t seen = 0;
        for (;;) {
            spin_while([&] { return generation_.load(std::memory_order_acquire) == seen; });
            Job job;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return generation_.load(std::memory_order_relaxed) != seen; });
                if (stop_) return;
                seen = generation_.load(std::memory_order_relaxed);
                job = job_;
            }
            if (worker < job.workers) take_tasks(job, worker);
            std::lock_guard lock(mutex_);
            if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.notify_one();
        }
    }

    std::vector<std::thread> threads_;
    Observer observer_;
    uint32_t spins_, lent_workers_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Job job_;
    std::atomic<uint32_t> next_{0}, busy_{0};  // busy: threads still on the current job
    std::atomic<uint64_t> generation_{0};      // counts jobs
    bool stop_ = false;
};

}  // namespace fovea

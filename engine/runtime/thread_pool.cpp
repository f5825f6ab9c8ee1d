#include "runtime/thread_pool.hpp"

#include <system_error>

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

ThreadPool::ThreadPool(uint32_t workers) {
    try {
        for (uint32_t i = 1; i < workers; ++i) threads_.emplace_back([this, i] { work(i); });
    } catch (
        const std::system_error&) {  // no more threads for this process: those that there are do the work
    }
}

ThreadPool::~ThreadPool() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::drain(const Job& job, uint32_t worker) {
    for (uint32_t i = next_.fetch_add(1, std::memory_order_relaxed); i < job.count;
         i = next_.fetch_add(1, std::memory_order_relaxed))
        job.task(job.arg, i, worker);
}

void ThreadPool::work(uint32_t worker) {
    uint64_t seen = 0;
    for (;;) {
        Job job;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
            if (stop_) return;
            seen = generation_;
            job = job_;
        }
        drain(job, worker);
        std::lock_guard lock(mutex_);
        if (--busy_ == 0) done_.notify_one();
    }
}

void ThreadPool::run(uint32_t count, FoveaTask task, void* arg) {
    const Job job{task, arg, count};
    if (threads_.empty() || count <= 1) {
        for (uint32_t i = 0; i < count; ++i) task(arg, i, 0);
        return;
    }
    {
        std::lock_guard lock(mutex_);
        job_ = job;
        next_.store(0, std::memory_order_relaxed);
        busy_ = static_cast<uint32_t>(threads_.size());
        ++generation_;
    }
    wake_.notify_all();
    drain(job, 0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
}

FoveaParallel ThreadPool::parallel() {
    const auto call = [](void* user, uint32_t count, FoveaTask task, void* arg) {
        static_cast<ThreadPool*>(user)->run(count, task, arg);
    };
    return FoveaParallel{this, call, worker_count()};
}

}  // namespace fovea::runtime

#include "thread_pool.hpp"

#include <algorithm>

namespace fovea::web {

ThreadPool::ThreadPool(uint32_t worker_count) : worker_count_(std::max(1u, worker_count)) {
#if defined(__EMSCRIPTEN_PTHREADS__) || !defined(__EMSCRIPTEN__)
    for (uint32_t worker = 1; worker < worker_count_; ++worker)
        threads_.emplace_back([this, worker] { work(worker); });
#else
    worker_count_ = 1;
#endif
}

const FoveaParallel* ThreadPool::parallel(uint32_t worker_limit) {
    const uint32_t workers = std::min(worker_limit, worker_count_);
    if (workers <= 1) return nullptr;
    active_limit_ = workers;
    parallel_ = {this, &ThreadPool::run_tasks, workers};
    return &parallel_;
}

void ThreadPool::run_tasks(void* user, uint32_t count, FoveaTask task, void* arg) {
    auto& pool = *static_cast<ThreadPool*>(user);
    {
        const std::lock_guard lock(pool.mutex_);
        pool.task_ = task;
        pool.arg_ = arg;
        pool.count_ = count;
        pool.next_.store(0, std::memory_order_relaxed);
        pool.busy_ = static_cast<uint32_t>(pool.threads_.size());
        ++pool.generation_;
    }
    pool.start_.notify_all();
    pool.take_tasks(0);
    std::unique_lock lock(pool.mutex_);
    pool.done_.wait(lock, [&] { return pool.busy_ == 0; });
}

void ThreadPool::work(uint32_t worker) {
    uint64_t seen = 0;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            start_.wait(lock, [&] { return generation_ != seen; });
            seen = generation_;
        }
        if (worker < active_limit_) take_tasks(worker);
        const std::lock_guard lock(mutex_);
        if (--busy_ == 0) done_.notify_one();
    }
}

void ThreadPool::take_tasks(uint32_t worker) {
    for (uint32_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) task_(arg_, i, worker);
}

}  // namespace fovea::web

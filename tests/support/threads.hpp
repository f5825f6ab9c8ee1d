// Threads lent to a CPU run, the plainest way: started for each call. Task i goes to any thread that is free.
#pragma once

#include <fovea/fovea.h>

#include <atomic>
#include <thread>
#include <vector>

namespace fovea::test {

class LentThreads {
  public:
    explicit LentThreads(uint32_t count) : parallel_{nullptr, &run, count} { parallel_.user = this; }
    const FoveaParallel* parallel() const { return &parallel_; }

  private:
    static void run(void* user, uint32_t count, FoveaTask task, void* arg) {
        std::atomic<uint32_t> next{0};
        const auto work = [&](uint32_t worker) {
            for (uint32_t i; (i = next++) < count;) task(arg, i, worker);
        };
        const uint32_t workers = static_cast<LentThreads*>(user)->parallel_.worker_count;
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
        // No threads here: the workers take turns.
        for (uint32_t i = 0; i < count; ++i) task(arg, i, (i * 7 + i / 3) % workers);
        return;
#endif
        std::vector<std::thread> threads;
        for (uint32_t worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
        work(0);
        for (std::thread& thread : threads) thread.join();
    }
    FoveaParallel parallel_;
};

}  // namespace fovea::test

// Threads that a program keeps and lends to the CPU backend. C++20, header only.
#pragma once

#include <fovea/fovea.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace fovea {

// `workers` in all: the caller of run() is worker 0, the others sleep between calls. One caller at a time.
class ThreadPool {
  public:
    // `spin` for calls that follow one another, as the layers of a model do: longer than a caller's work
    // between two of them, too short to affect the CPU's other work.
    static constexpr std::chrono::microseconds kBetweenCalls{100};

    // Told on a worker's own thread before and after it takes tasks, for those who measure.
    struct Observer {
        void (*begins)(void* user, uint32_t worker);
        void (*ends)(void* user, uint32_t worker);
        void* user;
    };

    // Starts fewer workers than requested if the system gives no more threads, or has none (WebAssembly
    // without them). `spin` is how long a thread looks for more work before it sleeps, so that calls in quick
    // succession start at once: a system call to wake it takes ten microseconds and more. More workers than
    // CPU cores would hinder each other by spinning: such a pool sleeps at once.
    explicit ThreadPool(uint32_t workers, std::chrono::microseconds spin = {})
        : ThreadPool(workers, spin, Observer{}) {}
    ThreadPool(uint32_t workers, std::chrono::microseconds spin, const Observer& observer)
        : observer_(observer), spin_(workers <= std::thread::hardware_concurrency() ? spin : spin.zero()) {
#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#ifdef __cpp_exceptions
        try {
            start_threads(workers);
        } catch (const std::system_error&) {  // continue with the threads created so far
        }
#else  // a build without exceptions ends if the system cannot start a thread
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
        bool sleepers;
        {
            std::lock_guard lock(mutex_);
            job_ = job;
            next_.store(0, std::memory_order_relaxed);
            busy_.store(uint32_t(threads_.size()), std::memory_order_relaxed);
            generation_.fetch_add(1, std::memory_order_release);
            sleepers = sleepers_ != 0;
        }
        if (sleepers) wake_.notify_all();
        const Clock::time_point begin = read_clock();
        take_tasks(job, 0);
        const Clock::time_point end = read_clock();
        const bool spins = may_spin(end);
        if (spin_while([&] { return busy_.load(std::memory_order_acquire) != 0; })) return;
        {
            std::unique_lock lock(mutex_);
            caller_sleeps_.store(true);
            done_.wait(lock, [&] { return busy_.load() == 0; });
            caller_sleeps_.store(false);
        }
        // A long last task of this worker does not mean that other programs are using the cores.
        if (const Clock::time_point now = read_clock(); spins && now - end > end - begin)
            had_to_wait(now - end, now);
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
    using Clock = std::chrono::steady_clock;
    struct Job {
        FoveaTask task = nullptr;
        void* arg = nullptr;
        uint32_t count = 0, workers = 0;
    };

    void start_threads(uint32_t workers) {
        for (uint32_t i = 1; i < workers; ++i) threads_.emplace_back([this, i] { work(i); });
    }

    static void pause() {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
        __builtin_ia32_pause();
#elif defined(__GNUC__) && defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }

    // If other programs also need the cores, a spinning thread uses up its time slice and lacks it when there
    // is work. A wait of milliseconds shows this: then no thread spins for a while, and twice as long if the
    // next such wait comes soon after.
    static constexpr Clock::duration kTakenAway = std::chrono::milliseconds(1);
    static constexpr Clock::duration kCallerIsElsewhere = std::chrono::milliseconds(20);
    static constexpr Clock::duration kMinRest = std::chrono::milliseconds(100);
    static constexpr Clock::duration kMaxRest = std::chrono::seconds(5);
    void had_to_wait(Clock::duration wait, Clock::time_point at) const {
        if (wait < kTakenAway) return;
        const Clock::rep now = at.time_since_epoch().count(), last = rest_.load(std::memory_order_relaxed);
        const bool soon = now - rests_until_.load(std::memory_order_relaxed) < last;
        const Clock::rep longer = 2 * last < kMaxRest.count() ? 2 * last : kMaxRest.count();
        const Clock::rep rest = soon ? longer : kMinRest.count();
        rest_.store(rest, std::memory_order_relaxed);
        rests_until_.store(now + rest, std::memory_order_relaxed);
    }

    // In WebAssembly nobody spins: a look at the clock is a call out of it, and pages count bytes.
    static Clock::time_point read_clock() {
#ifdef __EMSCRIPTEN__
        return {};
#else
        return Clock::now();
#endif
    }
    bool may_spin(Clock::time_point now) const {
#ifdef __EMSCRIPTEN__
        static_cast<void>(now);
        return false;
#else
        return spin_ != spin_.zero() &&
               now.time_since_epoch().count() >= rests_until_.load(std::memory_order_relaxed);
#endif
    }

    // True as soon as the condition does not hold; false where it still holds when the time is over.
    template <class Condition>
    bool spin_while(const Condition& condition) const {
        if (!condition()) return true;
        Clock::time_point now = read_clock();
        if (!may_spin(now)) return false;
        const Clock::time_point end = now + spin_;
        while (now < end) {
            for (int n = 0; n < 16; ++n) {  // looks for each look at the clock
                pause();
                if (!condition()) return true;
            }
            const Clock::time_point before = std::exchange(now, read_clock());
            had_to_wait(now - before, now);
        }
        return false;
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
            const Clock::time_point idle = read_clock();
            const bool spins = may_spin(idle);
            if (!spin_while([&] { return generation_.load(std::memory_order_acquire) == seen; })) {
                {
                    std::unique_lock lock(mutex_);
                    ++sleepers_;
                    wake_.wait(lock, [&] { return generation_.load(std::memory_order_relaxed) != seen; });
                    --sleepers_;
                }
                // The caller of calls that follow one another was kept from making one.
                const Clock::time_point now = read_clock();
                if (spins && now - idle < kCallerIsElsewhere) had_to_wait(now - idle, now);
            }
            // job_ was written before its generation, and it does not change until every thread has left it.
            seen = generation_.load(std::memory_order_acquire);
            if (stop_) return;
            if (worker < job_.workers) take_tasks(job_, worker);
            // Either this sees that the caller sleeps or the caller, before it sleeps, that nobody is busy:
            // both write one and read the other in sequentially consistent order.
            if (busy_.fetch_sub(1) == 1 && caller_sleeps_.load()) {
                std::lock_guard lock(mutex_);
                done_.notify_one();
            }
        }
    }

    std::vector<std::thread> threads_;
    Observer observer_;
    std::chrono::microseconds spin_;
    mutable std::atomic<Clock::rep> rest_{0}, rests_until_{0};  // the current pause between spins and the
                                                                // time until which it holds
    uint32_t lent_workers_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Job job_;
    std::atomic<uint32_t> next_{0}, busy_{0};  // busy: threads still on the current job
    std::atomic<uint64_t> generation_{0};      // counts jobs
    uint32_t sleepers_ = 0;                    // threads that wake_ must wake; under the mutex
    std::atomic<bool> caller_sleeps_{false};
    bool stop_ = false;
};

}  // namespace fovea

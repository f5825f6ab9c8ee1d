// Tiles by the CPU backend, on threads of their own.
#include "model/tile_maker.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr uint32_t kMostWorkers = 16;
constexpr uint64_t kRowsAtOnce = 256;

Result<void> run_plan(const Plan& plan, FoveaHostBuffer* bindings, const FoveaParallel& parallel) {
    const FoveaPlanInfo info = plan.info();
    std::vector<std::byte> workspace(info.workspace_bytes + info.workspace_alignment);
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.bindings = bindings;
    run.binding_count = FOVEA_BIND_COUNT;
    run.parallel = &parallel;
    void* aligned = workspace.data();
    size_t room = workspace.size();
    if (info.workspace_bytes)
        run.workspace = {std::align(info.workspace_alignment, info.workspace_bytes, aligned, room),
                         info.workspace_bytes};
    return plan.run_cpu(run);
}

class ProcessorTiles final : public TileMaker {
  public:
    ProcessorTiles(const LongHead& head, std::function<void()> wake)
        : head_(head),
          wake_(std::move(wake)),
          // One processor is left to the window.
          workers_(std::clamp(std::thread::hardware_concurrency(), 2u, kMostWorkers + 1) - 1),
          lse_(head.call.len_q),
          known_(head.call.len_q),
          thread_([this] { work(); }) {}
    ~ProcessorTiles() override;

    bool has_room() const override { return !busy(); }
    bool busy() const override;
    void start(const TileJob& job) override;
    void cancel(const std::function<bool(const MapTileId&)>& wanted) override;
    std::optional<TileDone> take() override;
    Result<void> wait() override;
    uint64_t rows_known() const override { return known_count_; }
    uint64_t finished() const override { return finished_; }
    std::string where() const override {
        return "processor, " + std::to_string(workers_) + (workers_ == 1 ? " thread" : " threads");
    }

  private:
    void work();
    TileDone run(const TileJob& job);
    Result<void> compute_rows(uint64_t first, uint64_t count);
    Result<void> know_rows_of(const TileJob& job);
    FoveaHostBuffer host(const std::vector<float>& values, uint64_t first_row) const;
    static void spread(void* user, uint32_t count, FoveaTask task, void* arg);

    const LongHead& head_;
    std::function<void()> wake_;
    uint32_t workers_;

    // Of the working thread alone.
    std::vector<float> lse_;
    std::vector<uint8_t> known_;
    std::atomic<uint64_t> known_count_{0}, finished_{0};

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<TileJob> job_;  // guarded by mutex_, as the next two
    std::optional<TileDone> done_;
    bool ending_ = false;
    std::atomic<bool> cancelled_{false};
    std::thread thread_;
};

ProcessorTiles::~ProcessorTiles() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    cancelled_ = true;
    changed_.notify_all();
    thread_.join();
}

bool ProcessorTiles::busy() const {
    const std::lock_guard lock(mutex_);
    return job_ || done_;
}

void ProcessorTiles::start(const TileJob& job) {
    const std::lock_guard lock(mutex_);
    job_ = job;
    cancelled_ = false;
    changed_.notify_all();
}

void ProcessorTiles::cancel(const std::function<bool(const MapTileId&)>& wanted) {
    const std::lock_guard lock(mutex_);
    if (job_ && !wanted(job_->id)) cancelled_ = true;
}

std::optional<TileDone> ProcessorTiles::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(done_, std::nullopt);
}

Result<void> ProcessorTiles::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !job_; });
    return {};
}

void ProcessorTiles::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || job_; });
        if (ending_) return;
        const TileJob job = *job_;
        lock.unlock();
        TileDone done = run(job);
        lock.lock();
        done_ = std::move(done);
        job_.reset();
        ++finished_;
        changed_.notify_all();
        if (wake_) wake_();
    }
}

TileDone ProcessorTiles::run(const TileJob& job) {
    TileDone done{job.id, false, {}, {}};
    const auto refused = [&](const Error& error) {
        if (!cancelled_) done.problem = error.field + ": " + error.text;
        return done;
    };
    if (Result<void> r = know_rows_of(job); !r) return refused(r.error());
    if (cancelled_) return done;
    const Result<FoveaDeviceFacts> facts = cpu_facts(workers_);
    if (!facts) return refused(facts.error());
    FoveaPlan handle = nullptr;
    Diag diag;
    if (foveaPlanMapTile(&*facts, &head_.call, &job.tile, nullptr, &handle, &diag) != FOVEA_OK)
        return refused(diag.error());
    const Plan plan(handle);
    constexpr size_t kPixels = size_t{kMapTileSide} * kMapTileSide;
    done.pixels.mass.resize(kPixels);
    done.pixels.max.resize(kPixels);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = host(head_.q, 0);
    bindings[FOVEA_BIND_K] = host(head_.k, 0);
    bindings[FOVEA_BIND_LSE] = {lse_.data(), lse_.size() * 4};
    bindings[FOVEA_BIND_TILE_MASS] = {done.pixels.mass.data(), kPixels * 8};
    bindings[FOVEA_BIND_TILE_MAX] = {done.pixels.max.data(), kPixels * 4};
    const FoveaParallel parallel{this, spread, workers_};
    if (Result<void> r = run_plan(plan, bindings, parallel); !r) return refused(r.error());
    done.whole = true;
    return done;
}

// A preview needs the rows in the middle of its pixels, an exact tile all of its rows.
Result<void> ProcessorTiles::know_rows_of(const TileJob& job) {
    const uint64_t rows = head_.call.len_q, first = job.tile.first_row;
    const uint64_t count = job.tile.row_count ? job.tile.row_count : rows - first;
    const uint64_t height = job.tile.height ? job.tile.height : count;
    if (job.tile.sampled) {
        for (uint64_t y = 0; y < height && !cancelled_; ++y) {
            const uint64_t begin = first + y * count / height, end = first + (y + 1) * count / height;
            const uint64_t row = begin + (end - begin) / 2;
            if (row >= rows || known_[row]) continue;
            if (Result<void> r = compute_rows(row, 1); !r) return r;
        }
        return {};
    }
    for (uint64_t row = first; row < std::min(first + count, rows) && !cancelled_; row += kRowsAtOnce) {
        const uint64_t end = std::min({row + kRowsAtOnce, first + count, rows});
        if (std::find(known_.begin() + std::ptrdiff_t(row), known_.begin() + std::ptrdiff_t(end), 0) ==
            known_.begin() + std::ptrdiff_t(end))
            continue;
        if (Result<void> r = compute_rows(row, end - row); !r) return r;
    }
    return {};
}

Result<void> ProcessorTiles::compute_rows(uint64_t first, uint64_t count) {
    FoveaAttentionDesc call = head_.call;
    call.len_q = count;
    call.align = FOVEA_ALIGN_OFFSET;
    call.q_offset = int64_t(first);
    call.outputs = FOVEA_OUTPUT_LSE;
    const Result<FoveaDeviceFacts> facts = cpu_facts(workers_);
    if (!facts) return facts.error();
    const Result<Plan> plan = plan_attention(*facts, call);
    if (!plan) return plan.error();
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = host(head_.q, first);
    // No output weighs values: any will do.
    bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = host(head_.k, 0);
    bindings[FOVEA_BIND_LSE] = {&lse_[first], count * 4};
    const FoveaParallel parallel{this, spread, workers_};
    if (Result<void> r = run_plan(*plan, bindings, parallel); !r) return r;
    uint64_t learnt = 0;
    for (uint64_t row = first; row < first + count; ++row) learnt += !std::exchange(known_[row], uint8_t(1));
    known_count_ += learnt;
    return {};
}

FoveaHostBuffer ProcessorTiles::host(const std::vector<float>& values, uint64_t first_row) const {
    const uint64_t skip = first_row * head_.call.dim_qk;
    return {const_cast<float*>(values.data()) + skip, (values.size() - skip) * 4};
}

void ProcessorTiles::spread(void* user, uint32_t count, FoveaTask task, void* arg) {
    const auto* tiles = static_cast<const ProcessorTiles*>(user);
    std::atomic<uint32_t> next{0};
    const auto take = [&](uint32_t worker) {
        for (uint32_t i = next++; i < count; i = next++) task(arg, i, worker);
    };
    std::vector<std::thread> others;
    for (uint32_t worker = 1; worker < std::min(tiles->workers_, count); ++worker)
        others.emplace_back(take, worker);
    take(0);
    for (std::thread& other : others) other.join();
}

}  // namespace

std::unique_ptr<TileMaker> make_processor_tiles(const LongHead& head, std::function<void()> wake) {
    return std::make_unique<ProcessorTiles>(head, std::move(wake));
}

}  // namespace fovea::visualizer

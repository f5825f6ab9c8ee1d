// Tiles by the CPU backend, on threads of their own.
#include "document/host_call.hpp"
#include "document/tile_maker.hpp"

#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr uint32_t kMostWorkers = 16;
constexpr uint64_t kRowsAtOnce = 256;
constexpr size_t kScatteredAtOnce = 8;

class ProcessorTiles final : public TileMaker {
  public:
    ProcessorTiles(const LongHead& head, std::function<void()> wake)
        : head_(head),
          wake_(std::move(wake)),
          // One processor is left to the window.
          workers_(std::clamp(std::thread::hardware_concurrency(), 2u, kMostWorkers + 1) - 1),
          pool_(workers_),
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
    // A mask begins at a whole word of each part.
    uint64_t common_keys(uint64_t first_row, bool causal) const {
        return causal ? (first_row + 1) / 4 * 4 : head_.call.len_kv;
    }
    Result<void> compute_scattered(const std::vector<uint64_t>& rows);
    Result<void> compute_group(std::span<const uint64_t> rows, bool causal);
    Result<void> know_rows_of(const TileJob& job);
    FoveaHostBuffer host(const std::vector<float>& values, uint64_t first_row) const;

    const LongHead& head_;
    std::function<void()> wake_;
    uint32_t workers_;
    ThreadPool pool_;

    // Only the working thread touches these.
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
        return std::move(done);
    };
    if (Result<void> r = know_rows_of(job); !r) return refused(r.error());
    if (cancelled_) return done;
    const Result<FoveaDeviceFacts> facts = cpu_facts(workers_);
    if (!facts) return refused(facts.error());
    const Result<Plan> plan = plan_map_tile(*facts, head_.call, job.tile);
    if (!plan) return refused(plan.error());
    constexpr size_t kPixels = size_t{kMapTileSide} * kMapTileSide;
    done.pixels.mass.resize(kPixels);
    done.pixels.max.resize(kPixels);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = host(head_.q, 0);
    bindings[FOVEA_BIND_K] = host(head_.k, 0);
    head_.bind_beside(bindings);
    bindings[FOVEA_BIND_LSE] = {lse_.data(), lse_.size() * 4};
    bindings[FOVEA_BIND_TILE_MASS] = {done.pixels.mass.data(), kPixels * 8};
    bindings[FOVEA_BIND_TILE_MAX] = {done.pixels.max.data(), kPixels * 4};
    const FoveaParallel parallel = pool_.parallel();
    if (Result<void> r = run_on_host(*plan, bindings, &parallel, &cancelled_); !r) return refused(r.error());
    done.whole = true;
    return done;
}

// A preview needs the rows in the middle of its pixels, an exact tile all of its rows.
Result<void> ProcessorTiles::know_rows_of(const TileJob& job) {
    const uint64_t rows = head_.call.len_q, first = job.tile.first_row;
    const uint64_t count = job.tile.row_count ? job.tile.row_count : rows - first;
    const uint64_t height = job.tile.height ? job.tile.height : count;
    if (job.tile.sampled) {
        std::vector<uint64_t> unknown;
        for (uint64_t y = 0; y < height; ++y) {
            const uint64_t begin = first + y * count / height, end = first + (y + 1) * count / height;
            const uint64_t row = begin + (end - begin) / 2;
            if (row < rows && !known_[row]) unknown.push_back(row);
        }
        return compute_scattered(unknown);
    }
    for (uint64_t row = first; row < std::min(first + count, rows) && !cancelled_; row += kRowsAtOnce) {
        const uint64_t end = std::min({row + kRowsAtOnce, first + count, rows});
        if (std::find(known_.begin() + ptrdiff_t(row), known_.begin() + ptrdiff_t(end), 0) ==
            known_.begin() + ptrdiff_t(end))
            continue;
        if (Result<void> r = compute_rows(row, end - row); !r) return r;
    }
    return {};
}

Result<void> ProcessorTiles::compute_rows(uint64_t first, uint64_t count) {
    const FoveaAttentionDesc call = head_.rows_call(first, count);
    const Result<FoveaDeviceFacts> facts = cpu_facts(workers_);
    if (!facts) return facts.error();
    const Result<Plan> plan = plan_attention(*facts, call);
    if (!plan) return plan.error();
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = host(head_.q, first);
    // No output weighs values: any will do.
    bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = host(head_.k, 0);
    head_.bind_beside(bindings, first);
    bindings[FOVEA_BIND_LSE] = {&lse_[first], count * 4};
    const FoveaParallel parallel = pool_.parallel();
    if (Result<void> r = run_on_host(*plan, bindings, &parallel, &cancelled_); !r) return r;
    uint64_t learnt = 0;
    for (uint64_t row = first; row < first + count; ++row) learnt += !std::exchange(known_[row], uint8_t(1));
    known_count_ += learnt;
    return {};
}

// Rows of a preview lie far apart, but see nearly the same keys: those that all of a group see are read once,
// as the keys of a group of query heads.
Result<void> ProcessorTiles::compute_scattered(const std::vector<uint64_t>& rows) {
    const FoveaAttentionDesc& call = head_.call;
    const bool causal = call.flags & FOVEA_FLAG_CAUSAL;
    // Beside windows and slopes a query's place counts, and a sink would count twice.
    constexpr uint32_t kOfPlace = FOVEA_FLAG_WINDOW | FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS;
    const bool shared = !(call.flags & kOfPlace) && call.mask.rows <= 1 && call.bias.rows <= 1 &&
                        (!causal || (call.len_q == call.len_kv && call.align != FOVEA_ALIGN_OFFSET));
    for (size_t at = 0; at < rows.size() && !cancelled_;) {
        const size_t count =
            shared && common_keys(rows[at], causal) > 0 ? std::min(rows.size() - at, kScatteredAtOnce) : 1;
        const std::span<const uint64_t> group = std::span(rows).subspan(at, count);
        at += count;
        if (Result<void> r = count > 1 ? compute_group(group, causal) : compute_rows(group[0], 1); !r)
            return r;
    }
    return {};
}

Result<void> ProcessorTiles::compute_group(std::span<const uint64_t> rows, bool causal) {
    const uint64_t dim = head_.call.dim_qk, common = common_keys(rows[0], causal);
    FoveaAttentionDesc call = head_.rows_call(0, 1);
    call.flags &= ~uint32_t(FOVEA_FLAG_CAUSAL);
    call.align = FOVEA_ALIGN_TOP_LEFT;
    call.q_offset = 0;
    call.heads_q = uint32_t(rows.size());
    std::vector<float> queries, sums(rows.size());
    for (const uint64_t row : rows)
        queries.insert(queries.end(), head_.q.begin() + ptrdiff_t(row * dim),
                       head_.q.begin() + ptrdiff_t((row + 1) * dim));
    const auto run = [&](uint64_t first_key, uint64_t keys, const float* q, float* out) -> Result<void> {
        call.len_kv = keys;
        call.mask.keys = call.mask.present ? keys : 0;
        call.bias.keys = call.bias.present ? keys : 0;
        const Result<FoveaDeviceFacts> facts = cpu_facts(workers_);
        if (!facts) return facts.error();
        const Result<Plan> plan = plan_attention(*facts, call);
        if (!plan) return plan.error();
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        bindings[FOVEA_BIND_Q] = {const_cast<float*>(q), call.heads_q * dim * 4};
        bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = host(head_.k, first_key);
        head_.bind_beside(bindings, 0, first_key);
        bindings[FOVEA_BIND_LSE] = {out, call.heads_q * 4};
        const FoveaParallel parallel = pool_.parallel();
        return run_on_host(*plan, bindings, &parallel, &cancelled_);
    };
    if (Result<void> r = run(0, common, queries.data(), sums.data()); !r) return r;
    call.heads_q = 1;
    for (size_t i = 0; i < rows.size(); ++i) {
        if (causal && rows[i] + 1 > common) {
            float rest = 0;
            if (Result<void> r = run(common, rows[i] + 1 - common, &queries[i * dim], &rest); !r) return r;
            // The logarithm of the sum of two parts' exponentials.
            const double high = double(std::max(sums[i], rest)), low = double(std::min(sums[i], rest));
            if (std::isfinite(high)) sums[i] = float(high + std::log1p(std::exp(low - high)));
        }
        lse_[rows[i]] = sums[i];
        known_count_ += !std::exchange(known_[rows[i]], uint8_t(1));
    }
    return {};
}

FoveaHostBuffer ProcessorTiles::host(const std::vector<float>& values, uint64_t first_row) const {
    const uint64_t skip = first_row * head_.call.dim_qk;
    return {const_cast<float*>(values.data()) + skip, (values.size() - skip) * 4};
}

}  // namespace

std::unique_ptr<TileMaker> make_processor_tiles(const LongHead& head, std::function<void()> wake) {
    return std::make_unique<ProcessorTiles>(head, std::move(wake));
}

}  // namespace fovea::visualizer

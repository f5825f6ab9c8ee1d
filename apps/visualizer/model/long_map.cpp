#include "model/long_map.hpp"

#include "model/token_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fovea::visualizer {
namespace {

constexpr uint32_t kMostWorkers = 16;
constexpr uint64_t kRowsAtOnce = 256;

// Mask, scale and softcap of the settings on a call; what has no place on a long map is left out.
FoveaAttentionDesc settled(const LongHead& head, const Settings& s) {
    FoveaAttentionDesc call = head.call;
    call.flags &= ~uint32_t(FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW);
    if (s.causal || head.always_causal) call.flags |= FOVEA_FLAG_CAUSAL;
    if (s.windowed) {
        call.flags |= FOVEA_FLAG_WINDOW;
        call.window_left = s.window_left, call.window_right = s.window_right;
    }
    call.scale = (s.scaled ? 1 / std::sqrt(float(call.dim_qk)) : 1) / s.temperature;
    call.softcap = s.softcap;
    return call;
}

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

}  // namespace

Result<LongHead> long_preset(std::string_view name) {
    Result<LongContext> made = long_context(name);
    if (!made) return made.error();
    return LongHead{std::string(name), made->call, std::move(made->q), std::move(made->k), true};
}

LongHead long_head(const Projected& p, uint32_t head) {
    LongHead out;
    const uint64_t rows = p.q.shape[2], keys = p.k.shape[2], dim = p.q.shape[3];
    Attention call;
    call.batch(1).heads(1).lengths(rows, keys).dims(uint32_t(dim)).outputs(FOVEA_OUTPUT_LSE);
    out.call = call.desc;
    const uint64_t kv = head / (p.q.shape[1] / p.k.shape[1]);
    out.q.assign(p.q.values.begin() + std::ptrdiff_t(head * rows * dim),
                 p.q.values.begin() + std::ptrdiff_t((head + 1) * rows * dim));
    out.k.assign(p.k.values.begin() + std::ptrdiff_t(kv * keys * dim),
                 p.k.values.begin() + std::ptrdiff_t((kv + 1) * keys * dim));
    return out;
}

LongMap::LongMap(LongHead head, const Settings& settings, std::function<void()> wake)
    : head_(std::move(head)),
      tiles_({head_.call.len_q, head_.call.len_kv}),
      wake_(std::move(wake)),
      // One processor is left to the window.
      workers_(std::clamp(std::thread::hardware_concurrency(), 2u, kMostWorkers + 1) - 1),
      lse_(head_.call.len_q),
      known_(head_.call.len_q) {
    head_.call = settled(head_, settings);
    thread_ = std::thread([this] { work(); });
}

LongMap::~LongMap() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    cancelled_ = true;
    changed_.notify_all();
    thread_.join();
}

bool LongMap::follow(const Settings& settings) {
    const FoveaAttentionDesc next = settled(head_, settings);
    if (std::memcmp(&next, &head_.call, sizeof next) == 0) return false;
    cancelled_ = true;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_; });
    job_.reset();
    done_.reset();
    cancelled_ = false;
    head_.call = next;
    tiles_.clear();
    std::fill(known_.begin(), known_.end(), 0);
    known_count_ = 0;
    problem_.clear();
    return true;
}

bool LongMap::advance() {
    const std::lock_guard lock(mutex_);
    if (done_) {
        if (done_->whole)
            tiles_.store(done_->id, std::move(done_->pixels));
        else
            tiles_.give_back(done_->id);
        if (!done_->problem.empty()) problem_ = done_->problem;
        done_.reset();
    }
    if (job_ && !tiles_.wanted(job_->id)) cancelled_ = true;
    if (busy_ || job_ || !problem_.empty()) return busy_ || job_;
    const std::optional<MapTileId> id = tiles_.next();
    if (!id) return false;
    job_ = Job{*id, tiles_.description(*id)};
    cancelled_ = false;
    busy_ = true;
    changed_.notify_all();
    return true;
}

void LongMap::finish(bool exact) {
    while (advance() && (exact || tiles_.progress().quality == MapQuality::empty)) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !busy_; });
    }
}

void LongMap::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || job_; });
        if (ending_) return;
        const Job job = *job_;
        lock.unlock();
        Done done = run(job);
        lock.lock();
        done_ = std::move(done);
        job_.reset();
        busy_ = false;
        ++finished_tiles_;
        changed_.notify_all();
        if (wake_) wake_();
    }
}

LongMap::Done LongMap::run(const Job& job) {
    Done done{job.id, false, {}, {}};
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
Result<void> LongMap::know_rows_of(const Job& job) {
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

Result<void> LongMap::compute_rows(uint64_t first, uint64_t count) {
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

FoveaHostBuffer LongMap::host(const std::vector<float>& values, uint64_t first_row) const {
    const uint64_t skip = first_row * head_.call.dim_qk;
    return {const_cast<float*>(values.data()) + skip, (values.size() - skip) * 4};
}

void LongMap::spread(void* user, uint32_t count, FoveaTask task, void* arg) {
    const auto* map = static_cast<const LongMap*>(user);
    std::atomic<uint32_t> next{0};
    const auto take = [&](uint32_t worker) {
        for (uint32_t i = next++; i < count; i = next++) task(arg, i, worker);
    };
    std::vector<std::thread> others;
    for (uint32_t worker = 1; worker < std::min(map->workers_, count); ++worker)
        others.emplace_back(take, worker);
    take(0);
    for (std::thread& other : others) other.join();
}

Result<Derivation> LongMap::derive(uint64_t row, uint64_t key) {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = host(head_.q, 0);
    // Values are no part of a weight; the map's inspector shows none.
    bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = host(head_.k, 0);
    return derive_cell(head_.call, bindings, Cell{0, 0, row, key});
}

}  // namespace fovea::visualizer

#include "inspect/map_source.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace fovea {
namespace {

constexpr uint64_t kRowsAtOnce = 256;
constexpr size_t kScatteredAtOnce = 8;
constexpr size_t kPixels = size_t{kMapTileSide} * kMapTileSide;
// A slice of a device that also draws, and its rest after each.
constexpr double kSliceSeconds = 4e-3;
constexpr std::chrono::milliseconds kRest{12};
// FLOP/s to begin with; measured from the first call on.
constexpr double kSoftwareRate = 1e9, kHardwareRate = 2e11;
constexpr double kMaxSliceCost = 1e13;

FoveaHostBuffer part(const float* values, uint64_t size, uint64_t skip) {
    return {const_cast<float*>(values) + skip, (size - skip) * sizeof(float)};
}

}  // namespace

void MapHead::bind(FoveaHostBuffer* bindings, uint64_t first_row, uint64_t first_key) const {
    bindings[FOVEA_BIND_Q] = part(q.data(), q.size(), first_row * call.dim_qk);
    bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = part(k.data(), k.size(), first_key * call.dim_qk);
    const auto skip = [&](const FoveaMatrixDesc& matrix) {
        return (matrix.rows > 1 ? first_row * uint64_t(matrix.strides.row) : 0) + first_key;
    };
    if (!mask.empty()) {
        const uint64_t from = skip(call.mask);
        bindings[FOVEA_BIND_MASK] = {const_cast<uint8_t*>(mask.data()) + from, mask.size() - from};
    }
    if (!bias.empty()) bindings[FOVEA_BIND_BIAS] = part(bias.data(), bias.size(), skip(call.bias));
    if (call.flags & FOVEA_FLAG_ALIBI) bindings[FOVEA_BIND_ALIBI] = part(&slope, 1, 0);
    if (call.flags & FOVEA_FLAG_SINKS) bindings[FOVEA_BIND_SINKS] = part(&sink, 1, 0);
}

FoveaAttentionDesc MapHead::rows_call(uint64_t first_row, uint64_t count) const {
    FoveaAttentionDesc rows = call;
    rows.len_q = count;
    rows.align = FOVEA_ALIGN_OFFSET;
    rows.q_offset = int64_t(first_row);
    rows.outputs = FOVEA_OUTPUT_LSE;
    rows.dropout_p = 0;
    if (rows.mask.rows > 1) rows.mask.rows = count;
    if (rows.bias.rows > 1) rows.bias.rows = count;
    return rows;
}

// ---- the thread that draws ----

MapSource::MapSource(const MapHead& head, EngineOptions on, std::function<void()> wake)
    : head_(head),
      wanted_(std::move(on)),
      wake_(std::move(wake)),
      tiles_({head.call.len_q, head.call.len_kv}),
      lse_(head.call.len_q),
      known_(head.call.len_q),
      thread_([this] { work(); }) {}

MapSource::~MapSource() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        cancelled_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

std::string MapSource::refusal() const {
    const std::lock_guard lock(mutex_);
    return refusal_;
}

void MapSource::follow(EngineOptions on, const std::function<void()>& change) {
    std::unique_lock lock(mutex_);
    cancelled_ = true;
    changed_.wait(lock, [&] { return !job_; });
    done_.reset();
    change();
    tiles_.clear();
    problem_.clear();
    known_.assign(known_.size(), 0);
    known_count_ = 0;
    inputs_ = std::make_shared<int>();
    const bool other = on.backend != wanted_.backend || on.device_name != wanted_.device_name;
    if (other || !std::exchange(refusal_, "").empty()) runner_.reset();
    wanted_ = std::move(on);
}

bool MapSource::advance() {
    const std::lock_guard lock(mutex_);
    if (std::optional<Done> done = std::exchange(done_, std::nullopt)) {
        if (!done->error)
            tiles_.store(done->id, std::move(done->pixels));
        else
            tiles_.give_back(done->id);
        if (done->error && done->error->code != FOVEA_CANCELLED) problem_ = done->error->text;
    }
    if (job_ && !tiles_.wanted(job_->id)) cancelled_ = true;
    if (!job_ && problem_.empty())
        if (const std::optional<MapTileId> id = tiles_.next()) {
            job_ = {*id, tiles_.description(*id)};
            cancelled_ = false;
            changed_.notify_all();
        }
    return job_.has_value();
}

void MapSource::finish(bool exact) {
    hurried_ = true;
    while (advance() && (exact || tiles_.progress().quality == MapQuality::empty)) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !job_; });
    }
    hurried_ = false;
}

// ---- the working thread ----

void MapSource::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || job_; });
        if (ending_) return;
        const Job job = *job_;
        lock.unlock();
        Result<MapPixels> made = compute(job.tile);
        lock.lock();
        done_ = made ? Done{job.id, std::move(*made), {}} : Done{job.id, {}, made.error()};
        if (!made && cancelled_) done_->error->code = FOVEA_CANCELLED;
        job_.reset();
        ++finished_;
        changed_.notify_all();
        if (wake_) wake_();
    }
}

Result<void> MapSource::open() {
    if (runner_) return {};
    Result<std::unique_ptr<DeviceRunner>> made = DeviceRunner::open(wanted_);
    if (made && (*made)->properties().backend == FOVEA_BACKEND_VULKAN) {
        // Calls that its kernels cannot run are rejected here, not at the first tile.
        const FoveaMapTileDesc whole = MapTiles({head_.call.len_q, head_.call.len_kv}).description({});
        if (const Result<Plan> plan = plan_map_tile((*made)->properties(), head_.call, whole); !plan)
            made = plan.error();
    }
    if (!made && wanted_.backend == BackendChoice::vulkan) {
        {
            const std::lock_guard lock(mutex_);
            refusal_ = made.error().text;
        }
        EngineOptions on_cpu;
        on_cpu.backend = BackendChoice::cpu;
        on_cpu.cpu_threads = wanted_.cpu_threads;
        made = DeviceRunner::open(on_cpu);
    }
    if (!made) return made.error();
    runner_ = std::move(*made);
    rates_.fill(runner_->properties().device_class == FOVEA_CLASS_CPU ? kSoftwareRate : kHardwareRate);
    return {};
}

Result<MapPixels> MapSource::compute(const FoveaMapTileDesc& tile) {
    if (Result<void> r = open(); !r) return r.error();
    if (Result<void> r = know_rows_of(tile); !r) return r.error();
    const Result<Plan> plan = plan_small(false, head_.call, [&](const FoveaAttentionDesc& call) {
        return plan_map_tile(runner_->properties(), call, tile);
    });
    if (!plan) return plan.error();
    MapPixels pixels{std::vector<uint64_t>(kPixels), std::vector<float>(kPixels)};
    HostBindings bindings{};
    head_.bind(bindings);
    bindings[FOVEA_BIND_V] = {};
    bindings[FOVEA_BIND_LSE] = {lse_.data(), lse_.size() * sizeof(float)};
    bindings[FOVEA_BIND_TILE_MASS] = {pixels.mass.data(), kPixels * sizeof(uint64_t)};
    bindings[FOVEA_BIND_TILE_MAX] = {pixels.max.data(), kPixels * sizeof(float)};
    if (Result<void> r = run(false, *plan, bindings); !r) return r.error();
    return pixels;
}

// For a device that draws meanwhile in slices of a part of a frame, or in the smallest that there are.
template <class Make>
Result<Plan> MapSource::plan_small(bool of_rows, FoveaAttentionDesc call, Make make) const {
    if (!is_vulkan() || hurried_) return make(call);
    for (call.max_slice_cost = kSliceSeconds * rates_[of_rows];; call.max_slice_cost *= 4) {
        Result<Plan> plan = make(call);
        const bool too_small = !plan && plan.error().code == FOVEA_LIMIT_EXCEEDED;
        if (!too_small || call.max_slice_cost >= kMaxSliceCost) return plan;
    }
}

// The sums that a tile reads grow with each, and another block of rows takes the place of the one before.
Result<void> MapSource::run(bool of_rows, const Plan& plan, const HostBindings& bindings) {
    const FoveaAttentionDesc& call = head_.call;
    uint64_t moves = 1ull << FOVEA_BIND_LSE;
    if (of_rows) moves |= 1ull << FOVEA_BIND_Q;
    if (of_rows && call.mask.rows > 1) moves |= 1ull << FOVEA_BIND_MASK;
    if (of_rows && call.bias.rows > 1) moves |= 1ull << FOVEA_BIND_BIAS;
    const FoveaPlanInfo info = plan.info();
    RunOptions options;
    options.progress = [&](double) {
        if (wake_ && is_vulkan() && !hurried_ && !cancelled_) std::this_thread::sleep_for(kRest);
        return !cancelled_;
    };
    const Result<RunReport> report =
        runner_->run(plan, bindings, ~(moves | info.output_mask), inputs_, options);
    if (!report) return report.error();
    if (is_vulkan() && report->device_seconds > 0 && info.flops > 0) {
        rates_[of_rows] = info.flops / report->device_seconds;
        slice_seconds_ = report->device_seconds / double(std::max<uint64_t>(report->slices, 1));
    }
    return {};
}

// ---- the rows' log-sum-exp ----

// A preview needs the rows in the middle of its pixels, an exact tile all of its rows.
Result<void> MapSource::know_rows_of(const FoveaMapTileDesc& tile) {
    const uint64_t rows = head_.call.len_q, end = std::min(tile.first_row + tile.row_count, rows);
    if (tile.sampled) {
        std::vector<uint64_t> unknown;
        for (uint64_t y = 0; y < tile.height; ++y) {
            const uint64_t from = tile.first_row + y * tile.row_count / tile.height,
                           to = tile.first_row + (y + 1) * tile.row_count / tile.height;
            const uint64_t row = from + (to - from) / 2;
            if (row < rows && !known_[row]) unknown.push_back(row);
        }
        return sum_scattered(unknown);
    }
    for (uint64_t row = tile.first_row; row < end; row += kRowsAtOnce) {
        const uint64_t count = std::min(kRowsAtOnce, end - row);
        const auto from = known_.begin() + ptrdiff_t(row);
        if (std::find(from, from + ptrdiff_t(count), 0) == from + ptrdiff_t(count)) continue;
        if (Result<void> r = sum_rows(row, count); !r) return r;
    }
    return {};
}

Result<void> MapSource::sums(const FoveaAttentionDesc& call, const HostBindings& bindings) {
    if (cancelled_) return Error{FOVEA_CANCELLED, "run", "the map was cancelled"};
    const Result<Plan> plan = plan_small(true, call, [&](const FoveaAttentionDesc& small) {
        return plan_attention(runner_->properties(), small);
    });
    return plan ? run(true, *plan, bindings) : plan.error();
}

Result<void> MapSource::sum_rows(uint64_t first, uint64_t count) {
    HostBindings bindings{};
    head_.bind(bindings, first);
    bindings[FOVEA_BIND_LSE] = {&lse_[first], count * sizeof(float)};
    if (Result<void> r = sums(head_.rows_call(first, count), bindings); !r) return r;
    for (uint64_t row = first; row < first + count; ++row) know(row);
    return {};
}

// The keys that all rows up to this one see. A mask begins at a whole word of each part.
static uint64_t common_keys(const FoveaAttentionDesc& call, uint64_t first_row) {
    return call.flags & FOVEA_FLAG_CAUSAL ? (first_row + 1) / 4 * 4 : call.len_kv;
}

// Rows of a preview are far apart, but see nearly the same keys: those that all of a group see are read once,
// as the keys of a group of query heads.
Result<void> MapSource::sum_scattered(std::span<const uint64_t> rows) {
    const FoveaAttentionDesc& call = head_.call;
    const bool causal = call.flags & FOVEA_FLAG_CAUSAL;
    // With windows and slopes a query's place counts, and a sink would count twice.
    constexpr uint32_t kOfPlace = FOVEA_FLAG_WINDOW | FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS;
    const bool shared = !is_vulkan() && !(call.flags & kOfPlace) && call.mask.rows <= 1 &&
                        call.bias.rows <= 1 &&
                        (!causal || (call.len_q == call.len_kv && call.align != FOVEA_ALIGN_OFFSET));
    while (!rows.empty()) {
        const size_t count =
            shared && common_keys(call, rows[0]) > 0 ? std::min(rows.size(), kScatteredAtOnce) : 1;
        if (Result<void> r = count > 1 ? sum_group(rows.first(count), causal) : sum_rows(rows[0], 1); !r)
            return r;
        rows = rows.subspan(count);
    }
    return {};
}

Result<void> MapSource::sum_group(std::span<const uint64_t> rows, bool causal) {
    const uint64_t dim = head_.call.dim_qk, common = common_keys(head_.call, rows[0]);
    FoveaAttentionDesc call = head_.rows_call(0, 1);
    call.flags &= ~uint32_t(FOVEA_FLAG_CAUSAL);
    call.align = FOVEA_ALIGN_TOP_LEFT;
    call.q_offset = 0;
    std::vector<float> queries, all(rows.size());
    for (const uint64_t row : rows)
        queries.insert(queries.end(), head_.q.begin() + ptrdiff_t(row * dim),
                       head_.q.begin() + ptrdiff_t((row + 1) * dim));
    const auto sum = [&](uint64_t first_key, uint64_t keys, uint64_t first, size_t count, float* out) {
        call.heads_q = uint32_t(count);
        call.len_kv = keys;
        call.mask.keys = call.mask.present ? keys : 0;
        call.bias.keys = call.bias.present ? keys : 0;
        HostBindings bindings{};
        head_.bind(bindings, 0, first_key);
        bindings[FOVEA_BIND_Q] = part(queries.data(), queries.size(), first * dim);
        bindings[FOVEA_BIND_LSE] = {out, count * sizeof(float)};
        return sums(call, bindings);
    };
    if (Result<void> r = sum(0, common, 0, rows.size(), all.data()); !r) return r;
    for (size_t i = 0; i < rows.size(); ++i) {
        if (causal && rows[i] + 1 > common) {
            float rest = 0;
            if (Result<void> r = sum(common, rows[i] + 1 - common, i, 1, &rest); !r) return r;
            // The logarithm of the sum of two parts' exponentials.
            const double high = double(std::max(all[i], rest)), low = double(std::min(all[i], rest));
            if (std::isfinite(high)) all[i] = float(high + std::log1p(std::exp(low - high)));
        }
        lse_[rows[i]] = all[i];
        know(rows[i]);
    }
    return {};
}

}  // namespace fovea

// Tiles by the Vulkan kernels on the device that draws, a share of each frame: about 4 ms by the rate that
// its own timestamps showed.
#include "document/frame_share.hpp"
#include "document/known_rows.hpp"
#include "document/tile_maker.hpp"
#include "gpu/gpu_device.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <span>
#include <utility>

namespace fovea::visualizer {
namespace {

// A frame's share; where a picture waits for its tiles, that of a submission.
constexpr double kFrameSeconds = 4e-3, kWaitSeconds = 0.25;
// A slice is at most this part of a frame's share, where the kernels can be cut so small.
constexpr double kSlicesAFrame = 4;
constexpr uint64_t kMostRowsAtOnce = 256;
constexpr size_t kJobs = 4;  // under way at the same time, so that no frame is without work
constexpr uint64_t kPixels = uint64_t{kMapTileSide} * kMapTileSide;
constexpr uint64_t kScratchBytes = 256;  // the largest alignment that Vulkan allows

class DeviceTiles final : public TileMaker {
  public:
    DeviceTiles(GpuDevice& device, const LongHead& head, std::function<void()> wake)
        : device_(device), head_(head), wake_(std::move(wake)), known_(head.call.len_q), shares_(device) {}
    Result<void> prepare();

    bool has_room() const override { return jobs_.size() < kJobs; }
    bool busy() const override { return !jobs_.empty(); }
    void start(const TileJob& job) override;
    void cancel(const std::function<bool(const MapTileId&)>& wanted) override;
    std::optional<TileDone> take() override;
    Result<void> wait() override;
    Result<void> record(VkCommandBuffer cmd, int frames_in_flight) override;
    uint64_t rows_known() const override { return known_.count(); }
    bool waits() const override { return waits_; }
    uint64_t finished() const override { return finished_ + *warmed_; }
    std::string where() const override;

  private:
    struct Run {  // a plan while its slices are recorded
        Plan plan;
        FoveaPlanInfo info{};
        uint64_t next_slice = 0;
        bool ready = false;  // compiled, with its workspace
        bool whole() const { return !plan || (ready && next_slice >= info.slice_count); }
        double slice_flops() const { return info.flops / double(std::max<uint64_t>(info.slice_count, 1)); }
    };
    struct Job {
        TileJob asked;
        Run rows, pixels;
        RowRange row_range;  // of `rows`
        GpuBuffer mass, max;
        uint64_t last_frame = 0;  // that recorded something of it
        bool recorded = false, cancelled = false;
        std::string problem;
    };
    Result<void> record_frame(VkCommandBuffer cmd, bool of_window);
    Result<bool> record_step(VkCommandBuffer cmd, FrameShare& share, double flops_left);
    Result<void> record_slices(VkCommandBuffer cmd, FrameShare& share, Run& run, const FoveaBuffer* bindings,
                               double flops_left);
    Result<bool> next_rows(Job& job);
    template <class Make>
    Result<Plan> plan_small(double rate, Make make) const;
    Result<Plan> plan_rows(RowRange rows) const;
    Result<Plan> plan_pixels(const FoveaMapTileDesc& tile) const;
    void warm_ahead();
    void warm(Plan plan);
    bool is_warm(Run& run);
    Result<void> ready(Run& run);
    uint64_t rows_at_once() const;
    void release_ended();
    bool has_ended(const Job& job) const {
        return (job.recorded || job.cancelled) && job.last_frame <= ended_;
    }

    GpuDevice& device_;
    const LongHead& head_;
    FoveaAttentionDesc call_{};
    std::function<void()> wake_;
    GpuBuffer q_, k_, mask_, bias_, slope_, sink_, lse_, row_lse_, workspace_;
    KnownRows known_;
    uint64_t finished_ = 0;
    std::deque<Job> jobs_;
    std::vector<std::pair<GpuBuffer, GpuBuffer>> spare_;  // mass and maximum of jobs given up
    FrameShares shares_;
    uint64_t frame_ = 0, ended_ = 0;  // recorded, and known to have ended
    bool warming_ = false;            // the kernels foreseen were asked for
    bool waits_ = false;              // the newest frame did, for a kernel
    // Shared with the thread that makes kernels ready, which may outlive this.
    std::shared_ptr<std::atomic<uint64_t>> warmed_ = std::make_shared<std::atomic<uint64_t>>(0);
    // To go when the frame of the number has ended.
    std::deque<std::pair<uint64_t, Plan>> old_plans_;
    std::deque<std::pair<uint64_t, GpuBuffer>> old_buffers_;
};

void full_barrier(VkCommandBuffer cmd) {
    constexpr VkPipelineStageFlags kBoth =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    vkCmdPipelineBarrier(cmd, kBoth, kBoth, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// Tiles are drawn from the buffers that they were written to, and kept by the host.
void result_barrier(VkCommandBuffer cmd) {
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier,
                         0, nullptr, 0, nullptr);
}

FoveaBuffer from(const GpuBuffer& buffer, uint64_t offset = 0) {
    return {buffer.handle(), offset, buffer.size_bytes() - offset};
}

Result<void> DeviceTiles::prepare() {
    const FoveaAttentionDesc& asked = head_.call;
    // Any row of queries may be the first of a call, so each stands where the device can bind it.
    const uint64_t alignment = std::max<uint64_t>(device_.facts().storage_offset_alignment / 4, 1);
    const uint64_t stride = (asked.dim_qk + alignment - 1) / alignment * alignment;
    call_ = asked;
    call_.q_strides = {int64_t(asked.len_q * stride), int64_t(asked.len_q * stride), int64_t(stride)};
    const std::pair<GpuBuffer*, uint64_t> wanted[] = {{&q_, asked.len_q * stride * 4},
                                                      {&k_, head_.k.size() * 4},
                                                      {&lse_, (asked.len_q + kMostRowsAtOnce) * 4},
                                                      {&row_lse_, kScratchBytes},
                                                      {&slope_, kScratchBytes},
                                                      {&sink_, kScratchBytes}};
    for (const auto& [buffer, bytes] : wanted) {
        Result<GpuBuffer> made = GpuBuffer::create(device_, bytes);
        if (!made) return made.error();
        *buffer = std::move(*made);
    }
    auto* q = reinterpret_cast<float*>(q_.data());
    for (uint64_t row = 0; row < asked.len_q; ++row)
        std::memcpy(q + row * stride, &head_.q[row * asked.dim_qk], asked.dim_qk * 4);
    q_.flush();
    std::memcpy(k_.data(), head_.k.data(), head_.k.size() * 4);
    k_.flush();
    std::memcpy(slope_.data(), &head_.slope, 4);
    slope_.flush();
    std::memcpy(sink_.data(), &head_.sink, 4);
    sink_.flush();
    const std::pair<GpuBuffer*, std::span<const std::byte>> cells[] = {
        {&mask_, std::as_bytes(std::span(head_.mask))}, {&bias_, std::as_bytes(std::span(head_.bias))}};
    for (const auto& [buffer, bytes] : cells) {
        if (bytes.empty()) continue;
        Result<GpuBuffer> made = GpuBuffer::create(device_, (bytes.size() + 3) / 4 * 4);
        if (!made) return made.error();
        *buffer = std::move(*made);
        std::memcpy(buffer->data(), bytes.data(), bytes.size());
        buffer->flush();
    }
    // A problem that the kernels do not take is refused here, not at the first tile.
    const FoveaMapTileDesc whole = MapTiles({asked.len_q, asked.len_kv}).description({});
    if (const Result<Plan> r = plan_map_tile(device_.facts(), call_, whole); !r) return r.error();
    return shares_.create();
}

// Frames go on without tiles until the driver has compiled the kernels. First all that is foreseen; a kernel
// that was not is the run's own, which is planned anew then.
bool DeviceTiles::is_warm(Run& run) {
    if (device_.warmer()->ready(run.plan)) return true;
    waits_ = true;
    if (!std::exchange(warming_, true))
        warm_ahead();
    else if (device_.warmer()->waiting() == 0)
        warm(std::move(std::exchange(run, {}).plan));
    return false;
}

void DeviceTiles::warm(Plan plan) {
    device_.warmer()->warm(std::move(plan), [count = warmed_, wake = wake_] {
        ++*count;
        if (wake) wake();
    });
}

// The four kinds of work once each. What is refused here is refused again by the tile that needs it, and told
// there.
void DeviceTiles::warm_ahead() {
    const MapTiles tiles({call_.len_q, call_.len_kv});
    for (const uint32_t level : {std::min(tiles.highest_level(), 1u), 0u}) {
        const RowRange rows{0, level > 0 ? 1 : std::min<uint64_t>(call_.len_q, rows_at_once())};
        if (Result<Plan> plan = plan_rows(rows)) warm(std::move(*plan));
        if (Result<Plan> plan = plan_pixels(tiles.description({0, 0, level, 0, 0, level > 0})))
            warm(std::move(*plan));
    }
}

void DeviceTiles::start(const TileJob& asked) {
    Job& job = jobs_.emplace_back();
    job.asked = asked;
    if (!spare_.empty()) {
        std::tie(job.mass, job.max) = std::move(spare_.back());
        spare_.pop_back();
        return;
    }
    Result<GpuBuffer> mass = GpuBuffer::create(device_, kPixels * 8),
                      max = GpuBuffer::create(device_, kPixels * 4);
    if (mass && max) {
        job.mass = std::move(*mass), job.max = std::move(*max);
        return;
    }
    job.problem = (mass ? max : mass).error().text;
    job.cancelled = true;
}

void DeviceTiles::cancel(const std::function<bool(const MapTileId&)>& wanted) {
    for (Job& job : jobs_)
        if (!job.recorded && !wanted(job.asked.id)) job.cancelled = true;
}

// In any order: the cache does not care.
std::optional<TileDone> DeviceTiles::take() {
    const auto found =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) { return has_ended(job); });
    if (found == jobs_.end()) return {};
    Job job = std::move(*found);
    jobs_.erase(found);
    ++finished_;
    TileDone done{job.asked.id, job.recorded && !job.cancelled, {}, job.problem};
    if (done.whole) {
        job.mass.invalidate(), job.max.invalidate();
        done.pixels.mass.resize(kPixels), done.pixels.max.resize(kPixels);
        std::memcpy(done.pixels.mass.data(), job.mass.data(), kPixels * 8);
        std::memcpy(done.pixels.max.data(), job.max.data(), kPixels * 4);
    }
    if (done.whole)
        done.mass = std::move(job.mass), done.max = std::move(job.max);
    else if (job.mass.handle() && job.max.handle())
        spare_.emplace_back(std::move(job.mass), std::move(job.max));
    return done;
}

Result<void> DeviceTiles::wait() {
    const auto some_ended = [&] {
        return std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& job) { return has_ended(job); });
    };
    while (!jobs_.empty() && !some_ended()) {
        Result<void> recorded;
        Result<void> ran =
            device_.run_once([&](VkCommandBuffer cmd) { recorded = record_frame(cmd, false); });
        if (!ran) return ran;
        if (!recorded) return recorded;
        ended_ = frame_;
        release_ended();
    }
    return {};
}

Result<void> DeviceTiles::record(VkCommandBuffer cmd, int frames_in_flight) {
    const uint64_t next = frame_ + 1, flying = uint64_t(std::max(frames_in_flight, 1));
    if (next > flying) ended_ = std::max(ended_, next - flying);
    release_ended();
    return record_frame(cmd, true);
}

Result<void> DeviceTiles::record_frame(VkCommandBuffer cmd, bool of_window) {
    ++frame_;
    waits_ = false;
    FrameShare& share = shares_.next(frame_, ended_, of_window);
    const bool has_work = std::any_of(jobs_.begin(), jobs_.end(),
                                      [](const Job& job) { return !job.recorded && !job.cancelled; });
    if (!has_work) return {};
    const double seconds = of_window ? kFrameSeconds : kWaitSeconds;
    shares_.begin(cmd, share);
    for (bool more = true; more;) {
        const double rate = shares_.rate(share.work == Work::none ? Work::pixels : share.work);
        Result<bool> step = record_step(cmd, share, seconds * rate - share.flops);
        if (!step) return step.error();
        more = *step;
    }
    shares_.end(cmd, share);
    result_barrier(cmd);
    return {};
}

void DeviceTiles::release_ended() {
    while (!old_plans_.empty() && old_plans_.front().first <= ended_) old_plans_.pop_front();
    while (!old_buffers_.empty() && old_buffers_.front().first <= ended_) old_buffers_.pop_front();
}

// False where the frame has enough, or nothing is left to record.
Result<bool> DeviceTiles::record_step(VkCommandBuffer cmd, FrameShare& share, double flops_left) {
    const auto open = std::find_if(jobs_.begin(), jobs_.end(),
                                   [](const Job& job) { return !job.recorded && !job.cancelled; });
    if (open == jobs_.end() || share.sets_left == 0) return false;
    Job& job = *open;
    const auto refuse = [&](const Error& error) {
        job.problem = error.field + ": " + error.text;
        job.cancelled = true;
        return true;
    };
    const Result<bool> rows = next_rows(job);
    if (!rows) return refuse(rows.error());
    if (!*rows && !job.pixels.plan) {
        Result<Plan> made = plan_pixels(job.asked.tile);
        if (!made) return refuse(made.error());
        job.pixels = {std::move(*made)};
    }
    Run& run = *rows ? job.rows : job.pixels;
    if (!run.ready) {
        if (share.of_window && !is_warm(run)) return false;
        if (Result<void> r = ready(run); !r) return refuse(r.error());
    }
    const Work work = *rows ? Work::rows : Work::pixels;
    // One kind of work for a frame, so that its time says the kind's rate; one slice at least.
    if (share.work != Work::none && (share.work != work || run.slice_flops() > flops_left)) return false;
    share.work = work;
    FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = from(k_);
    const RowRange at = job.row_range;
    const bool alone = *rows && at.count == 1;
    const uint64_t row_bytes = uint64_t(call_.q_strides.row) * 4;
    bindings[FOVEA_BIND_Q] = from(q_, *rows ? at.first * row_bytes : 0);
    bindings[FOVEA_BIND_LSE] = !*rows ? from(lse_) : alone ? from(row_lse_) : from(lse_, at.first * 4);
    const uint64_t first_row = *rows ? at.first : 0;
    if (mask_.handle()) bindings[FOVEA_BIND_MASK] = from(mask_, head_.mask_offset(first_row));
    if (bias_.handle()) bindings[FOVEA_BIND_BIAS] = from(bias_, head_.bias_offset(first_row));
    bindings[FOVEA_BIND_ALIBI] = from(slope_), bindings[FOVEA_BIND_SINKS] = from(sink_);
    bindings[FOVEA_BIND_TILE_MASS] = from(job.mass), bindings[FOVEA_BIND_TILE_MAX] = from(job.max);
    if (Result<void> r = record_slices(cmd, share, run, bindings, flops_left); !r) return refuse(r.error());
    job.last_frame = frame_;
    if (!run.whole()) return true;
    if (*rows) {
        if (alone) {
            full_barrier(cmd);
            const VkBufferCopy copy{0, at.first * 4, 4};
            vkCmdCopyBuffer(cmd, row_lse_.handle(), lse_.handle(), 1, &copy);
        }
        known_.mark(at);
    } else {
        job.recorded = true;
    }
    old_plans_.emplace_back(frame_, std::move(run.plan));
    run = {};
    return true;
}

// Whether rows have to be recorded before the job's pixels; then they are planned.
Result<bool> DeviceTiles::next_rows(Job& job) {
    if (!job.rows.whole()) return true;
    if (job.pixels.plan) return false;
    job.row_range = known_.lacked_by(job.asked.tile, rows_at_once());
    if (job.row_range.count == 0) return false;
    Result<Plan> made = plan_rows(job.row_range);
    if (!made) return made.error();
    job.rows = {std::move(*made)};
    return true;
}

// As many rows as fit a frame: a slice of rows takes all of their keys. A power of two of rows whose sums the
// device can bind.
uint64_t DeviceTiles::rows_at_once() const {
    const double row_flops = 2.0 * call_.dim_qk * double(call_.len_kv);
    const uint64_t least = std::max<uint64_t>(device_.facts().storage_offset_alignment / 4, 1);
    uint64_t rows = kMostRowsAtOnce;
    while (rows > least && double(rows) * row_flops > kFrameSeconds * shares_.rate(Work::rows)) rows /= 2;
    return rows;
}

// In slices of a part of a frame, or in the smallest that there are.
template <class Make>
Result<Plan> DeviceTiles::plan_small(double rate, Make make) const {
    for (double cost = kFrameSeconds * rate / kSlicesAFrame;; cost *= 4) {
        Result<Plan> plan = make(cost);
        if (plan || plan.error().code != FOVEA_LIMIT_EXCEEDED || cost >= 1e13) return plan;
    }
}

Result<Plan> DeviceTiles::plan_rows(RowRange rows) const {
    FoveaAttentionDesc call = head_.rows_call(rows.first, rows.count);
    call.q_strides = call_.q_strides;
    return plan_small(shares_.rate(Work::rows), [&](double cost) {
        call.max_slice_cost = cost;
        return plan_attention(device_.facts(), call);
    });
}

Result<Plan> DeviceTiles::plan_pixels(const FoveaMapTileDesc& tile) const {
    FoveaAttentionDesc call = call_;
    return plan_small(shares_.rate(Work::pixels), [&](double cost) {
        call.max_slice_cost = cost;
        return plan_map_tile(device_.facts(), call, tile);
    });
}

// Pipelines, and a workspace that is large enough.
Result<void> DeviceTiles::ready(Run& run) {
    run.info = run.plan.info();
    run.ready = true;
    Diag diag;
    if (foveaCompilePlan(device_.context(), run.plan.get(), &diag) != FOVEA_OK) return diag.error();
    if (run.info.workspace_bytes <= workspace_.size_bytes()) return {};
    Result<GpuBuffer> made = GpuBuffer::create(device_, run.info.workspace_bytes);
    if (!made) return made.error();
    old_buffers_.emplace_back(frame_, std::exchange(workspace_, std::move(*made)));
    return {};
}

Result<void> DeviceTiles::record_slices(VkCommandBuffer cmd, FrameShare& share, Run& run,
                                        const FoveaBuffer* bindings, double flops_left) {
    const uint64_t sets = std::max(run.info.dispatches_per_slice, 1u);
    const double fitting =
        std::clamp(flops_left / std::max(run.slice_flops(), 1.0), 1.0, double(FrameShares::kSetsAFrame));
    FoveaBuffer needed[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (run.info.binding_mask >> i & 1) needed[i] = bindings[i];
    FoveaRecord record{};
    record.struct_size = sizeof record;
    record.cmd = cmd;
    record.bindings = needed;
    record.binding_count = FOVEA_BIND_COUNT;
    if (workspace_.handle()) record.workspace = from(workspace_);
    record.first_slice = run.next_slice;
    record.slice_count = std::min({run.info.slice_count - run.next_slice, uint64_t(fitting),
                                   std::max<uint64_t>(share.sets_left / sets, 1)});
    record.arena.pool = share.pool;
    full_barrier(cmd);
    if (run.info.slice_count > 0) {
        Diag diag;
        if (foveaCmdRun(run.plan.get(), &record, &diag) != FOVEA_OK) return diag.error();
    }
    run.next_slice += record.slice_count;
    share.flops += run.slice_flops() * double(record.slice_count);
    share.sets_left -= uint32_t(std::min<uint64_t>(share.sets_left, sets * record.slice_count));
    return {};
}

std::string DeviceTiles::where() const {
    char text[64];
    std::snprintf(text, sizeof text, ", %.1f ms of a frame", 1e3 * shares_.last_seconds());
    return device_.name() + (shares_.last_seconds() > 0 ? text : "");
}

}  // namespace

Result<std::unique_ptr<TileMaker>> make_device_tiles(GpuDevice& device, const LongHead& head,
                                                     std::function<void()> wake) {
    auto tiles = std::make_unique<DeviceTiles>(device, head, std::move(wake));
    if (Result<void> r = tiles->prepare(); !r) return r.error();
    return std::unique_ptr<TileMaker>(std::move(tiles));
}

}  // namespace fovea::visualizer

// Tiles by the Vulkan kernels on the device that draws, a share of each frame: about 4 ms by the rate that
// its own timestamps showed.
#include "gpu/gpu_device.hpp"
#include "model/tile_maker.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

namespace fovea::visualizer {
namespace {

// A frame's share; where a picture waits for its tiles, that of a submission.
constexpr double kFrameSeconds = 4e-3, kWaitSeconds = 0.25;
// FLOP/s to begin with; measured from the first frame on.
constexpr double kSoftwareRate = 1e9, kHardwareRate = 2e11;
// A slice is at most this part of a frame's share, where the kernels can be cut so small.
constexpr double kSlicesAFrame = 4;
constexpr uint64_t kMostRowsAtOnce = 256;
constexpr size_t kJobs = 4;   // under way at the same time, so that no frame is without work
constexpr size_t kSlots = 4;  // more than any number of frames in flight
constexpr uint32_t kSetsAFrame = 256;
constexpr uint64_t kPixels = uint64_t{kMapTileSide} * kMapTileSide;
constexpr uint64_t kScratchBytes = 256;  // the largest alignment that Vulkan allows

// Rows of a preview run alone and slower than blocks of rows; pixels are another kernel.
enum class Work { none, rows, pixels };
constexpr size_t kWorkKinds = 3;

class DeviceTiles final : public TileMaker {
  public:
    DeviceTiles(GpuDevice& device, const LongHead& head) : device_(device), head_(head) {}
    ~DeviceTiles() override;
    Result<void> prepare();

    bool has_room() const override { return jobs_.size() < kJobs; }
    bool busy() const override { return !jobs_.empty(); }
    void start(const TileJob& job) override;
    void cancel(const std::function<bool(const MapTileId&)>& wanted) override;
    std::optional<TileDone> take() override;
    Result<void> wait() override;
    Result<void> record(VkCommandBuffer cmd, int frames_in_flight) override;
    uint64_t rows_known() const override { return known_count_; }
    uint64_t finished() const override { return finished_; }
    std::string where() const override;

  private:
    struct Run {  // a plan while its slices are recorded
        Plan plan;
        FoveaPlanInfo info{};
        uint64_t next_slice = 0;
        bool whole() const { return !plan || next_slice >= info.slice_count; }
        double slice_flops() const { return info.flops / double(std::max<uint64_t>(info.slice_count, 1)); }
    };
    struct Job {
        TileJob asked;
        Run rows, pixels;
        uint64_t first_row = 0, row_count = 0;  // of `rows`
        GpuBuffer mass, max;
        uint64_t last_frame = 0;  // that recorded something of it
        bool recorded = false, cancelled = false;
        std::string problem;
    };
    struct Slot {  // what one frame needs of its own
        VkDescriptorPool pool = VK_NULL_HANDLE;
        VkQueryPool queries = VK_NULL_HANDLE;
        uint64_t frame = 0;
        Work work = Work::none;
        double flops = 0;
        bool of_window = false;  // else a picture waited for it
        uint32_t sets_left = 0;
    };

    Result<void> create_slots();
    void compile_ahead();
    Result<void> record_frame(VkCommandBuffer cmd, double seconds);
    Result<bool> record_step(VkCommandBuffer cmd, Slot& slot, double flops_left);
    Result<void> record_slices(VkCommandBuffer cmd, Slot& slot, Run& run, const FoveaBuffer* bindings,
                               double flops_left);
    Result<bool> next_rows(Job& job);
    bool find_unknown(const Job& job, uint64_t& first, uint64_t& count) const;
    Result<Run> plan_rows(uint64_t first, uint64_t count);
    Result<Run> plan_pixels(const Job& job);
    Result<void> ready(Run& run);
    uint64_t rows_at_once() const;
    void learn_rate(Slot& slot);
    void release_ended();
    bool has_ended(const Job& job) const {
        return (job.recorded || job.cancelled) && job.last_frame <= ended_;
    }
    double rate(Work work) const { return rates_[size_t(work)]; }

    GpuDevice& device_;
    const LongHead& head_;
    FoveaAttentionDesc call_{};
    // Compiles the pipelines, which may take a driver seconds, while frames go on without tiles.
    std::thread compiler_;
    std::atomic<bool> compiled_{false};
    GpuBuffer q_, k_, mask_, lse_, row_lse_, workspace_;
    std::vector<uint8_t> known_;
    uint64_t known_count_ = 0, finished_ = 0;
    std::deque<Job> jobs_;
    std::vector<std::pair<GpuBuffer, GpuBuffer>> spare_;  // mass and maximum of jobs that have ended
    std::array<Slot, kSlots> slots_;
    std::array<double, kWorkKinds> rates_{};
    uint64_t frame_ = 0, ended_ = 0;  // recorded, and known to have ended
    double last_seconds_ = 0;         // of the newest frame that was measured
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

void host_barrier(VkCommandBuffer cmd) {
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &barrier, 0, nullptr, 0, nullptr);
}

FoveaBuffer from(const GpuBuffer& buffer, uint64_t offset = 0) {
    return {buffer.handle(), offset, buffer.size_bytes() - offset};
}

DeviceTiles::~DeviceTiles() {
    if (compiler_.joinable()) compiler_.join();
    for (const Slot& slot : slots_) {
        vkDestroyDescriptorPool(device_.device(), slot.pool, nullptr);
        vkDestroyQueryPool(device_.device(), slot.queries, nullptr);
    }
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
                                                      {&row_lse_, kScratchBytes}};
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
    if (!head_.mask.empty()) {
        Result<GpuBuffer> made = GpuBuffer::create(device_, (head_.mask.size() + 3) / 4 * 4);
        if (!made) return made.error();
        mask_ = std::move(*made);
        std::memcpy(mask_.data(), head_.mask.data(), head_.mask.size());
        mask_.flush();
    }
    known_.assign(asked.len_q, 0);
    rates_.fill(device_.facts().device_class == FOVEA_CLASS_CPU ? kSoftwareRate : kHardwareRate);
    // A problem that the kernels do not take is refused here, not at the first tile.
    const FoveaMapTileDesc whole = MapTiles({asked.len_q, asked.len_kv}).description({});
    if (const Result<Plan> r = plan_map_tile(device_.facts(), call_, whole); !r) return r.error();
    if (Result<void> r = create_slots(); !r) return r;
    compile_ahead();
    return {};
}

// The four kinds of work once each; plans of later tiles find their pipelines in the context. What is refused
// here is refused again by the tile that needs it, and told there.
void DeviceTiles::compile_ahead() {
    std::vector<Plan> plans;
    for (const uint64_t count : {uint64_t{1}, std::min<uint64_t>(call_.len_q, rows_at_once())}) {
        FoveaAttentionDesc rows = head_.rows_call(0, count);
        rows.q_strides = call_.q_strides;
        Result<Plan> plan = plan_attention(device_.facts(), rows);
        if (plan) plans.push_back(std::move(*plan));
    }
    const MapTiles tiles({call_.len_q, call_.len_kv});
    for (const uint32_t level : {0u, std::min(tiles.highest_level(), 1u)}) {
        const MapTileId id{0, 0, level, 0, 0, level > 0};
        Result<Plan> plan = plan_map_tile(device_.facts(), call_, tiles.description(id));
        if (plan) plans.push_back(std::move(*plan));
    }
    compiler_ = std::thread([this, plans = std::move(plans)] {
        for (const Plan& plan : plans) (void)foveaCompilePlan(device_.context(), plan.get(), nullptr);
        compiled_ = true;
    });
}

Result<void> DeviceTiles::create_slots() {
    for (Slot& slot : slots_) {
        if (device_.has_timestamps()) {
            VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
            queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
            queries.queryCount = 2;
            if (VkResult r = vkCreateQueryPool(device_.device(), &queries, nullptr, &slot.queries))
                return vulkan_error("vkCreateQueryPool", r);
        }
        if (device_.facts().features & FOVEA_FEATURE_PUSH_DESCRIPTORS) continue;
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        kSetsAFrame * FOVEA_MAX_DISPATCH_BINDINGS};
        VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
        pool.maxSets = kSetsAFrame;
        pool.poolSizeCount = 1;
        pool.pPoolSizes = &size;
        if (VkResult r = vkCreateDescriptorPool(device_.device(), &pool, nullptr, &slot.pool))
            return vulkan_error("vkCreateDescriptorPool", r);
    }
    return {};
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
    if (job.mass.handle() && job.max.handle()) spare_.emplace_back(std::move(job.mass), std::move(job.max));
    return done;
}

Result<void> DeviceTiles::wait() {
    if (compiler_.joinable()) compiler_.join();
    const auto some_ended = [&] {
        return std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& job) { return has_ended(job); });
    };
    while (!jobs_.empty() && !some_ended()) {
        Result<void> recorded;
        Result<void> ran =
            device_.run_once([&](VkCommandBuffer cmd) { recorded = record_frame(cmd, kWaitSeconds); });
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
    return record_frame(cmd, kFrameSeconds);
}

Result<void> DeviceTiles::record_frame(VkCommandBuffer cmd, double seconds) {
    ++frame_;
    Slot& slot = slots_[frame_ % kSlots];
    learn_rate(slot);
    slot.frame = frame_, slot.work = Work::none, slot.flops = 0;
    slot.of_window = seconds == kFrameSeconds;
    slot.sets_left = kSetsAFrame;
    if (slot.pool) vkResetDescriptorPool(device_.device(), slot.pool, 0);
    const bool has_work = std::any_of(jobs_.begin(), jobs_.end(),
                                      [](const Job& job) { return !job.recorded && !job.cancelled; });
    if (!has_work || !compiled_) return {};
    if (slot.queries) {
        vkCmdResetQueryPool(cmd, slot.queries, 0, 2);
        vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, slot.queries, 0);
    }
    for (bool more = true; more;) {
        const double budget = seconds * rate(slot.work == Work::none ? Work::pixels : slot.work);
        Result<bool> step = record_step(cmd, slot, budget - slot.flops);
        if (!step) return step.error();
        more = *step;
    }
    if (slot.queries) vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, slot.queries, 1);
    host_barrier(cmd);
    return {};
}

// Of the frame that used the slot before, which has ended.
void DeviceTiles::learn_rate(Slot& slot) {
    if (slot.work == Work::none || !slot.queries || slot.frame > ended_) return;
    uint64_t ticks[2] = {};
    if (vkGetQueryPoolResults(device_.device(), slot.queries, 0, 2, sizeof ticks, ticks, 8,
                              VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
        return;
    const double taken = double(ticks[1] - ticks[0]) * double(device_.timestamp_period_ns()) * 1e-9;
    if (slot.of_window) last_seconds_ = taken;
    if (taken < 1e-6 || slot.flops < 1e5) return;
    double& known = rates_[size_t(slot.work)];
    known = std::clamp(0.5 * (known + slot.flops / taken), known / 4, known * 4);
}

void DeviceTiles::release_ended() {
    while (!old_plans_.empty() && old_plans_.front().first <= ended_) old_plans_.pop_front();
    while (!old_buffers_.empty() && old_buffers_.front().first <= ended_) old_buffers_.pop_front();
}

// False where the frame has enough, or nothing is left to record.
Result<bool> DeviceTiles::record_step(VkCommandBuffer cmd, Slot& slot, double flops_left) {
    const auto open = std::find_if(jobs_.begin(), jobs_.end(),
                                   [](const Job& job) { return !job.recorded && !job.cancelled; });
    if (open == jobs_.end() || slot.sets_left == 0) return false;
    Job& job = *open;
    const auto refuse = [&](const Error& error) {
        job.problem = error.field + ": " + error.text;
        job.cancelled = true;
        return true;
    };
    const Result<bool> rows = next_rows(job);
    if (!rows) return refuse(rows.error());
    if (!*rows && !job.pixels.plan) {
        Result<Run> made = plan_pixels(job);
        if (!made) return refuse(made.error());
        job.pixels = std::move(*made);
    }
    Run& run = *rows ? job.rows : job.pixels;
    const Work work = *rows ? Work::rows : Work::pixels;
    // One kind of work for a frame, so that its time says the kind's rate; one slice at least.
    if (slot.work != Work::none && (slot.work != work || run.slice_flops() > flops_left)) return false;
    slot.work = work;
    FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = from(k_);
    const bool alone = *rows && job.row_count == 1;
    const uint64_t row_bytes = uint64_t(call_.q_strides.row) * 4;
    bindings[FOVEA_BIND_Q] = from(q_, *rows ? job.first_row * row_bytes : 0);
    bindings[FOVEA_BIND_LSE] = !*rows ? from(lse_) : alone ? from(row_lse_) : from(lse_, job.first_row * 4);
    if (mask_.handle()) bindings[FOVEA_BIND_MASK] = from(mask_, *rows ? head_.mask_offset(job.first_row) : 0);
    bindings[FOVEA_BIND_TILE_MASS] = from(job.mass), bindings[FOVEA_BIND_TILE_MAX] = from(job.max);
    if (Result<void> r = record_slices(cmd, slot, run, bindings, flops_left); !r) return refuse(r.error());
    job.last_frame = frame_;
    if (!run.whole()) return true;
    if (*rows) {
        if (alone) {
            full_barrier(cmd);
            const VkBufferCopy copy{0, job.first_row * 4, 4};
            vkCmdCopyBuffer(cmd, row_lse_.handle(), lse_.handle(), 1, &copy);
        }
        for (uint64_t row = job.first_row; row < job.first_row + job.row_count; ++row)
            known_count_ += !std::exchange(known_[row], uint8_t{1});
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
    if (job.pixels.plan || !find_unknown(job, job.first_row, job.row_count)) return false;
    Result<Run> made = plan_rows(job.first_row, job.row_count);
    if (!made) return made.error();
    job.rows = std::move(*made);
    return true;
}

// As many rows as fit a frame: a slice of rows takes all of their keys. A power of two of rows whose sums the
// device can bind.
uint64_t DeviceTiles::rows_at_once() const {
    const double row_flops = 2.0 * call_.dim_qk * double(call_.len_kv);
    const uint64_t least = std::max<uint64_t>(device_.facts().storage_offset_alignment / 4, 1);
    uint64_t rows = kMostRowsAtOnce;
    while (rows > least && double(rows) * row_flops > kFrameSeconds * rate(Work::rows)) rows /= 2;
    return rows;
}

// A preview needs the rows in the middle of its pixels, an exact tile all of its rows.
bool DeviceTiles::find_unknown(const Job& job, uint64_t& first, uint64_t& count) const {
    const FoveaMapTileDesc& tile = job.asked.tile;
    const uint64_t rows = call_.len_q, tile_rows = tile.row_count ? tile.row_count : rows - tile.first_row;
    const uint64_t height = tile.height ? tile.height : tile_rows;
    if (!tile.sampled) {
        const uint64_t end = std::min(rows, tile.first_row + tile_rows);
        const auto begin = known_.begin() + std::ptrdiff_t(tile.first_row);
        const auto unknown = std::find(begin, known_.begin() + std::ptrdiff_t(end), uint8_t{0});
        if (unknown == known_.begin() + std::ptrdiff_t(end)) return false;
        const uint64_t block = rows_at_once();
        first = uint64_t(unknown - known_.begin()) / block * block;
        count = std::min(block, rows - first);
        return true;
    }
    for (uint64_t y = 0; y < height; ++y) {
        const uint64_t begin = tile.first_row + y * tile_rows / height,
                       end = tile.first_row + (y + 1) * tile_rows / height;
        first = begin + (end - begin) / 2;
        count = 1;
        if (first < rows && !known_[first]) return true;
    }
    return false;
}

Result<DeviceTiles::Run> DeviceTiles::plan_rows(uint64_t first, uint64_t count) {
    FoveaAttentionDesc call = head_.rows_call(first, count);
    call.q_strides = call_.q_strides;
    const double least = kFrameSeconds * rate(Work::rows) / kSlicesAFrame;
    for (call.max_slice_cost = least;; call.max_slice_cost *= 4) {
        Result<Plan> plan = plan_attention(device_.facts(), call);
        if (!plan && plan.error().code == FOVEA_LIMIT_EXCEEDED && call.max_slice_cost < 1e13) continue;
        if (!plan) return plan.error();
        Run run{std::move(*plan)};
        if (Result<void> r = ready(run); !r) return r.error();
        return run;
    }
}

Result<DeviceTiles::Run> DeviceTiles::plan_pixels(const Job& job) {
    FoveaAttentionDesc call = call_;
    const double least = kFrameSeconds * rate(Work::pixels) / kSlicesAFrame;
    for (call.max_slice_cost = least;; call.max_slice_cost *= 4) {
        Result<Plan> plan = plan_map_tile(device_.facts(), call, job.asked.tile);
        if (!plan && plan.error().code == FOVEA_LIMIT_EXCEEDED && call.max_slice_cost < 1e13) continue;
        if (!plan) return plan.error();
        Run run{std::move(*plan)};
        if (Result<void> r = ready(run); !r) return r.error();
        return run;
    }
}

// Pipelines, and a workspace that is large enough.
Result<void> DeviceTiles::ready(Run& run) {
    run.info = run.plan.info();
    Diag diag;
    if (foveaCompilePlan(device_.context(), run.plan.get(), &diag) != FOVEA_OK) return diag.error();
    if (run.info.workspace_bytes <= workspace_.size_bytes()) return {};
    Result<GpuBuffer> made = GpuBuffer::create(device_, run.info.workspace_bytes);
    if (!made) return made.error();
    old_buffers_.emplace_back(frame_, std::exchange(workspace_, std::move(*made)));
    return {};
}

Result<void> DeviceTiles::record_slices(VkCommandBuffer cmd, Slot& slot, Run& run,
                                        const FoveaBuffer* bindings, double flops_left) {
    const uint64_t sets = std::max(run.info.dispatches_per_slice, 1u);
    const double fitting =
        std::clamp(flops_left / std::max(run.slice_flops(), 1.0), 1.0, double(kSetsAFrame));
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
                                   std::max<uint64_t>(slot.sets_left / sets, 1)});
    record.arena.pool = slot.pool;
    full_barrier(cmd);
    if (run.info.slice_count > 0) {
        Diag diag;
        if (foveaCmdRun(run.plan.get(), &record, &diag) != FOVEA_OK) return diag.error();
    }
    run.next_slice += record.slice_count;
    slot.flops += run.slice_flops() * double(record.slice_count);
    slot.sets_left -= uint32_t(std::min<uint64_t>(slot.sets_left, sets * record.slice_count));
    return {};
}

std::string DeviceTiles::where() const {
    char text[64];
    std::snprintf(text, sizeof text, ", %.1f ms of a frame", 1e3 * last_seconds_);
    return device_.name() + (last_seconds_ > 0 ? text : "");
}

}  // namespace

Result<std::unique_ptr<TileMaker>> make_device_tiles(GpuDevice& device, const LongHead& head) {
    auto tiles = std::make_unique<DeviceTiles>(device, head);
    if (Result<void> r = tiles->prepare(); !r) return r.error();
    return std::unique_ptr<TileMaker>(std::move(tiles));
}

}  // namespace fovea::visualizer

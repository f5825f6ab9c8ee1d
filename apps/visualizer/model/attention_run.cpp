#include "model/attention_run.hpp"

#include <fovea/inspect.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace fovea::visualizer {
namespace {

// Scores, masked scores and weights are each kept whole up to here.
constexpr uint64_t kMostCells = 24u << 20;
constexpr uint64_t kMostTimedSlices = 1024;
constexpr uint32_t kOutputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_MASKED |
                              FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS;

Result<void> put(GpuDevice& device, GpuBuffer& buffer, std::span<const std::byte> bytes) {
    Result<GpuBuffer> made = GpuBuffer::create(device, (bytes.size() + 3) / 4 * 4);
    if (!made) return made.error();
    buffer = std::move(*made);
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    buffer.flush();
    return {};
}

const char* output_name(FoveaBinding binding) {
    switch (binding) {
        case FOVEA_BIND_SCORES:
            return "scores";
        case FOVEA_BIND_MASKED:
            return "masked scores";
        case FOVEA_BIND_WEIGHTS:
            return "weights";
        default:
            return "results";
    }
}

// The slope that ALiBi gives head h of n, for n a power of two: 2^(-8 (h + 1) / n).
std::vector<float> alibi_slopes(uint32_t heads) {
    std::vector<float> slopes(heads);
    for (uint32_t h = 0; h < heads; ++h) slopes[h] = float(std::exp2(-8.0 * (h + 1) / heads));
    return slopes;
}

}  // namespace

bool fits_matrices(const Projected& p) { return p.q.shape[1] * p.q.shape[2] * p.k.shape[2] <= kMostCells; }

Result<std::unique_ptr<AttentionRun>> AttentionRun::create(GpuDevice& device, const Projected& projected,
                                                           const Settings& settings, bool on_cpu) {
    std::unique_ptr<AttentionRun> run(new AttentionRun(device));
    run->on_cpu_ = on_cpu;
    if (Result<void> r = run->upload(projected, settings); !r) return r.error();
    if (Result<void> r = run->make_plan(on_cpu); !r) return r.error();
    if (Result<void> r = run->allocate(); !r) return r.error();
    return run;
}

AttentionRun::~AttentionRun() {
    if (queries_) vkDestroyQueryPool(device_.device(), queries_, nullptr);
    if (arena_) vkDestroyDescriptorPool(device_.device(), arena_, nullptr);
}

Result<void> AttentionRun::upload(const Projected& p, const Settings& s) {
    const Shape &q = p.q.shape, &k = p.k.shape;
    if (const uint64_t cells = q[1] * q[2] * k[2]; cells > kMostCells)
        return Error{FOVEA_UNSUPPORTED, "length",
                     std::to_string(q[1]) + " heads of " + format_count(q[2]) + " x " + format_count(k[2]) +
                         " weights are above the " + format_count(kMostCells) + " that are kept as matrices"};
    desc_.batch = 1;
    desc_.heads_q = uint32_t(q[1]), desc_.heads_kv = uint32_t(k[1]);
    desc_.len_q = q[2], desc_.len_kv = k[2];
    desc_.dim_qk = uint32_t(q[3]), desc_.dim_v = uint32_t(p.v.shape[3]);
    desc_.outputs = kOutputs;
    desc_.scale = 1 / (p.divisor * s.temperature);
    desc_.softcap = s.softcap;
    if (s.causal) desc_.flags |= FOVEA_FLAG_CAUSAL;
    if (s.windowed) {
        desc_.flags |= FOVEA_FLAG_WINDOW;
        desc_.window_left = s.window_left, desc_.window_right = s.window_right;
    }
    for (const auto& [binding, tensor] :
         {std::pair{FOVEA_BIND_Q, &p.q}, {FOVEA_BIND_K, &p.k}, {FOVEA_BIND_V, &p.v}})
        if (Result<void> r = put(device_, buffers_[binding], std::as_bytes(std::span(tensor->values))); !r)
            return r;
    if (s.alibi) {
        desc_.flags |= FOVEA_FLAG_ALIBI;
        const std::vector<float> slopes = alibi_slopes(desc_.heads_q);
        if (Result<void> r = put(device_, buffers_[FOVEA_BIND_ALIBI], std::as_bytes(std::span(slopes))); !r)
            return r;
    }
    if (const std::vector<uint8_t> cells = mask_cells(s, q[2], k[2]); !cells.empty()) {
        desc_.mask.present = 1;
        desc_.mask.type = FOVEA_U8;
        if (Result<void> r = put(device_, buffers_[FOVEA_BIND_MASK], std::as_bytes(std::span(cells))); !r)
            return r;
    }
    if (s.dropout && s.dropout_p > 0) {
        // The mask that PyTorch's native dropout draws after manual_seed: the digits of the reader's
        // notebook.
        desc_.dropout_p = s.dropout_p;
        std::vector<uint8_t> keep(q[1] * q[2] * k[2]);
        TorchGenerator random(s.dropout_seed);
        random.keep_mask_native(keep, s.dropout_p);
        desc_.keep.present = 1;
        desc_.keep.type = FOVEA_U8;
        desc_.keep.heads = desc_.heads_q;
        if (Result<void> r = put(device_, buffers_[FOVEA_BIND_KEEP], std::as_bytes(std::span(keep))); !r)
            return r;
    }
    return {};
}

Result<void> AttentionRun::make_plan(bool on_cpu) {
    const Result<FoveaDeviceFacts> cpu = cpu_facts(1);
    if (!cpu) return cpu.error();
    Result<Plan> plan = plan_attention(on_cpu ? *cpu : device_.facts(), desc_);
    if (!plan) return plan.error();
    plan_ = std::move(*plan);
    info_ = plan_.info();
    Diag diag;
    if (!on_cpu && foveaCompilePlan(device_.context(), plan_.get(), &diag) != FOVEA_OK) return diag.error();
    return {};
}

Result<void> AttentionRun::allocate() {
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info_.output_mask >> i & 1)) continue;
        Result<GpuBuffer> made =
            GpuBuffer::create(device_, info_.binding_bytes[i], output_name(FoveaBinding(i)));
        if (!made) return made.error();
        buffers_[i] = std::move(*made);
    }
    if (on_cpu_) {
        cpu_workspace_.resize(info_.workspace_bytes + info_.workspace_alignment);
        return {};
    }
    if (info_.workspace_bytes) {
        Result<GpuBuffer> made = GpuBuffer::create(device_, info_.workspace_bytes, "workspace");
        if (!made) return made.error();
        workspace_ = std::move(*made);
    }
    if (device_.has_timestamps()) {
        VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
        queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
        queries.queryCount = uint32_t(2 * std::min(info_.slice_count, kMostTimedSlices));
        if (VkResult r = vkCreateQueryPool(device_.device(), &queries, nullptr, &queries_))
            return vulkan_error("vkCreateQueryPool", r);
    }
    if (device_.facts().features & FOVEA_FEATURE_PUSH_DESCRIPTORS) return {};
    const auto sets = uint32_t(info_.slice_count * info_.dispatches_per_slice);
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = sets;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    if (VkResult r = vkCreateDescriptorPool(device_.device(), &pool, nullptr, &arena_))
        return vulkan_error("vkCreateDescriptorPool", r);
    return {};
}

Result<bool> AttentionRun::advance(VkCommandBuffer cmd, double flops) {
    if (finished()) return false;
    if (on_cpu_) {
        if (Result<void> r = run_on_cpu(); !r) return r.error();
        return true;
    }
    FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (buffers_[i].handle()) bindings[i] = {buffers_[i].handle(), 0, buffers_[i].size_bytes()};
    FoveaRecord record{};
    record.struct_size = sizeof record;
    record.cmd = cmd;
    record.bindings = bindings;
    record.binding_count = FOVEA_BIND_COUNT;
    if (workspace_.handle()) record.workspace = {workspace_.handle(), 0, workspace_.size_bytes()};
    record.first_slice = next_slice_;
    const double fitting = std::max(1.0, std::floor(flops / std::max(1.0, info_.max_slice_flops)));
    record.slice_count = std::min(info_.slice_count - next_slice_, uint64_t(std::min(fitting, 1e9)));
    record.arena.pool = arena_;
    if (queries_ && next_slice_ < kMostTimedSlices) {
        record.slice_count = std::min(record.slice_count, kMostTimedSlices - next_slice_);
        record.timestamps = queries_;
        record.first_query = uint32_t(2 * next_slice_);
        vkCmdResetQueryPool(cmd, queries_, record.first_query, uint32_t(2 * record.slice_count));
    }
    // Slices of an earlier frame may still use the workspace.
    foveaCmdSliceBarrier(plan_.get(), cmd);
    Diag diag;
    if (foveaCmdRun(plan_.get(), &record, &diag) != FOVEA_OK) return diag.error();
    next_slice_ += record.slice_count;
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier,
                         0, nullptr, 0, nullptr);
    return true;
}

Result<void> AttentionRun::run_on_cpu() {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (buffers_[i].data()) bindings[i] = {buffers_[i].data(), buffers_[i].size_bytes()};
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.bindings = bindings;
    run.binding_count = FOVEA_BIND_COUNT;
    void* aligned = cpu_workspace_.data();
    size_t room = cpu_workspace_.size();
    if (info_.workspace_bytes)
        run.workspace = {std::align(info_.workspace_alignment, info_.workspace_bytes, aligned, room),
                         info_.workspace_bytes};
    const auto begin = std::chrono::steady_clock::now();
    if (Result<void> r = plan_.run_cpu(run); !r) return r;
    times_.busy_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    next_slice_ = info_.slice_count;
    for (const GpuBuffer& buffer : buffers_)
        if (buffer.data()) buffer.flush();
    return {};
}

std::vector<FoveaHostBuffer> AttentionRun::host_bindings() const {
    std::vector<FoveaHostBuffer> bindings(FOVEA_BIND_COUNT);
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (buffers_[i].data()) bindings[i] = {buffers_[i].data(), buffers_[i].size_bytes()};
    return bindings;
}

const RunTimes& AttentionRun::times() const {
    if (!queries_ || on_cpu_ || times_.busy_s > 0 || !finished()) return times_;
    const size_t timed = size_t(std::min(info_.slice_count, kMostTimedSlices));
    std::vector<uint64_t> ticks(2 * timed);
    if (vkGetQueryPoolResults(device_.device(), queries_, 0, uint32_t(ticks.size()), ticks.size() * 8,
                              ticks.data(), 8, VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
        return times_;
    const double tick_s = double(device_.timestamp_period_ns()) * 1e-9;
    for (size_t i = 0; i < timed; ++i) {
        const SliceTime slice{double(ticks[2 * i] - ticks[0]) * tick_s,
                              double(ticks[2 * i + 1] - ticks[0]) * tick_s};
        times_.slices.push_back(slice);
        times_.busy_s += slice.end_s - slice.begin_s;
    }
    // Of a longer run the first slices stand for all.
    times_.busy_s *= double(info_.slice_count) / double(timed);
    return times_;
}

double AttentionRun::useful_flops() const {
    return 2.0 * desc_.batch * desc_.heads_q * double(desc_.len_q) * double(desc_.len_kv) *
           (desc_.dim_qk + desc_.dim_v);
}

uint64_t AttentionRun::input_bytes() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (!(info_.output_mask >> i & 1)) sum += buffers_[i].size_bytes();
    return sum;
}

uint64_t AttentionRun::output_bytes() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (info_.output_mask >> i & 1) sum += buffers_[i].size_bytes();
    return sum;
}

std::span<const float> AttentionRun::values(FoveaBinding binding) const {
    const GpuBuffer& buffer = buffers_[binding];
    if (!buffer.data()) return {};
    buffer.invalidate();
    return {reinterpret_cast<const float*>(buffer.data()), size_t(info_.binding_bytes[binding] / 4)};
}

}  // namespace fovea::visualizer

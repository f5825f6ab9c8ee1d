#include "document/attention_run.hpp"

#include <fovea/inspect.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

namespace fovea::visualizer {
namespace {

// Work that the CPU may do in its part of a frame.
constexpr double kMaxStandInFlops = 1e8;
constexpr uint64_t kMaxTimedSlices = 256;
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

}  // namespace

Result<std::unique_ptr<AttentionRun>> AttentionRun::create(GpuDevice& device,
                                                           const PreparedAttention& prepared,
                                                           Precision precision, ComputeOn place,
                                                           const std::function<void()>& wake) {
    std::unique_ptr<AttentionRun> run(new AttentionRun(device));
    run->on_cpu_ = place == ComputeOn::processor;
    const bool products_of_halves = precision == Precision::f16_inputs;
    if (Result<void> r = run->upload(prepared); !r) return r.error();
    if (place == ComputeOn::first_processor && !products_of_halves) run->stand_in(wake);
    if (Result<void> r = run->make_plans(products_of_halves); !r) return r.error();
    if (Result<void> r = run->allocate(); !r) return r.error();
    return run;
}

AttentionRun::~AttentionRun() {
    if (queries_) vkDestroyQueryPool(device_.device(), queries_, nullptr);
    if (descriptor_pool_) vkDestroyDescriptorPool(device_.device(), descriptor_pool_, nullptr);
}

Result<void> AttentionRun::upload(const PreparedAttention& prepared) {
    desc_ = prepared.call;
    desc_.outputs = kOutputs;
    for (size_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (!prepared.inputs[i].empty())
            if (Result<void> r = put(device_, buffers_[i], prepared.inputs[i]); !r) return r;
    return {};
}

// Runs first on the CPU if the problem is small and the device's kernels are not compiled yet. make_plans()
// reports calls that cannot be planned.
void AttentionRun::stand_in(const std::function<void()>& wake) {
    if (useful_flops() > kMaxStandInFlops) return;
    Result<Plan> plan = plan_attention(device_.properties(), desc_),
                 same = plan_attention(device_.properties(), desc_);
    if (!plan || !same || device_.warmer()->ready(*plan)) return;
    device_plan_ = std::move(*plan);
    device_.warmer()->warm(std::move(*same), wake);
    on_cpu_ = true;
}

Result<void> AttentionRun::add_call(const FoveaDeviceProperties& properties, const FoveaAttentionDesc& desc) {
    Result<Plan> plan = plan_attention(properties, desc);
    if (!plan) return plan.error();
    Diag diag;
    if (!on_cpu_ && foveaCompilePlan(device_.context(), plan->get(), &diag) != FOVEA_OK) return diag.error();
    calls_.push_back({std::move(*plan)});
    calls_.back().info = calls_.back().plan.info();
    return {};
}

// Kernels that round their inputs give no weights: the context comes from them, and every other stage is
// computed from the same stored values with float32 products.
Result<void> AttentionRun::make_plans(bool products_of_halves) {
    const Result<FoveaDeviceProperties> cpu = cpu_properties(1);
    if (!cpu) return cpu.error();
    const FoveaDeviceProperties& properties = on_cpu_ ? *cpu : device_.properties();
    FoveaAttentionDesc stages = desc_;
    if (products_of_halves) stages.outputs &= ~uint32_t(FOVEA_OUTPUT_O);
    if (Result<void> r = add_call(properties, stages); !r) return r;
    if (!products_of_halves) return {};
    FoveaAttentionDesc context = desc_;
    context.outputs = FOVEA_OUTPUT_O;
    context.precision = FOVEA_PRECISION_F16_INPUTS;
    // Tries the planner's own choice first; it does not choose these kernels if they bring no gain.
    std::string why;
    for (const FoveaKernel kernel : {FOVEA_KERNEL_AUTO, FOVEA_KERNEL_FLASH_COOPMAT}) {
        context.kernel = kernel;
        if (Result<void> r = add_call(properties, context); !r) {
            why = r.error().text;
            continue;
        }
        const FoveaKernel chosen = calls_[1].info.kernel;
        if (chosen == FOVEA_KERNEL_FLASH_COOPMAT || chosen == FOVEA_KERNEL_FLASH_COOPMAT2) return {};
        calls_.pop_back();
    }
    return Error{FOVEA_UNSUPPORTED, "precision",
                 "float16 inputs need a kernel with cooperative matrices, which " +
                     (on_cpu_ ? std::string("the CPU") : device_.name()) +
                     " does not have for this call: " + why};
}

uint64_t AttentionRun::slice_count() const {
    uint64_t sum = 0;
    for (const Call& call : calls_) sum += call.info.slice_count;
    return sum;
}

uint64_t AttentionRun::output_mask() const {
    uint64_t mask = 0;
    for (const Call& call : calls_) mask |= call.info.output_mask;
    return mask;
}

double AttentionRun::total_flops() const {
    double sum = 0;
    for (const Call& call : calls_) sum += call.info.max_slice_flops * double(call.info.slice_count);
    return sum;
}

Result<void> AttentionRun::allocate() {
    uint64_t workspace = 0;
    for (const Call& call : calls_) {
        workspace = std::max(workspace, call.info.workspace_bytes);
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(call.info.output_mask >> i & 1)) continue;
            Result<GpuBuffer> made =
                GpuBuffer::create(device_, call.info.binding_bytes[i], output_name(FoveaBinding(i)));
            if (!made) return made.error();
            buffers_[i] = std::move(*made);
        }
    }
    if (on_cpu_) return {};
    if (workspace) {
        Result<GpuBuffer> made = GpuBuffer::create(device_, workspace, "workspace");
        if (!made) return made.error();
        workspace_ = std::move(*made);
    }
    return create_device_parts();
}

Result<void> AttentionRun::create_device_parts() {
    if (device_.has_timestamps()) {
        VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
        queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
        for (const Call& call : calls_)
            queries.queryCount += uint32_t(std::min(call.info.slice_count, kMaxTimedSlices) *
                                           (uint64_t{call.info.dispatches_per_slice} + 1));
        if (VkResult r = vkCreateQueryPool(device_.device(), &queries, nullptr, &queries_))
            return vulkan_error("vkCreateQueryPool", r);
    }
    if (device_.properties().features & FOVEA_FEATURE_PUSH_DESCRIPTORS) return {};
    uint32_t sets = 0;
    for (const Call& call : calls_) sets += uint32_t(call.info.slice_count * call.info.dispatches_per_slice);
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = sets;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    if (VkResult r = vkCreateDescriptorPool(device_.device(), &pool, nullptr, &descriptor_pool_))
        return vulkan_error("vkCreateDescriptorPool", r);
    return {};
}

Result<bool> AttentionRun::advance(VkCommandBuffer cmd, double flops) {
    if (finished()) return false;
    if (on_cpu_) {
        if (Result<void> r = run_on_cpu(); !r) return r.error();
        return true;
    }
    // Slices of the calls before count, too.
    size_t at = 0;
    uint64_t first = 0;
    while (next_slice_ >= first + calls_[at].info.slice_count) first += calls_[at++].info.slice_count;
    const Call& call = calls_[at];
    FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (buffers_[i].handle() && call.info.binding_mask >> i & 1)
            bindings[i] = {buffers_[i].handle(), 0, buffers_[i].size_bytes()};
    FoveaRecord record{};
    record.struct_size = sizeof record;
    record.cmd = cmd;
    record.bindings = bindings;
    record.binding_count = FOVEA_BIND_COUNT;
    if (workspace_.handle()) record.workspace = {workspace_.handle(), 0, workspace_.size_bytes()};
    record.first_slice = next_slice_ - first;
    const double fitting = std::max(1.0, std::floor(flops / std::max(1.0, call.info.max_slice_flops)));
    record.slice_count =
        std::min(call.info.slice_count - record.first_slice, uint64_t(std::min(fitting, 1e9)));
    record.descriptor_pool.pool = descriptor_pool_;
    if (queries_ && next_slice_ < kMaxTimedSlices)
        if (Result<void> r = time_slices(call, record); !r) return r.error();
    // Slices of an earlier frame or call may still use the workspace.
    foveaCmdSliceBarrier(call.plan.get(), cmd);
    Diag diag;
    if (foveaCmdRun(call.plan.get(), &record, &diag) != FOVEA_OK) return diag.error();
    next_slice_ += record.slice_count;
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier,
                         0, nullptr, 0, nullptr);
    return true;
}

// Timestamps around each dispatch of these slices, and what each of them is.
Result<void> AttentionRun::time_slices(const Call& call, FoveaRecord& record) {
    record.slice_count = std::min(record.slice_count, kMaxTimedSlices - next_slice_);
    record.timestamps = queries_;
    record.dispatch_timestamps = 1;
    record.first_query = next_query_;
    std::vector<FoveaDispatch> dispatches(call.info.dispatches_per_slice);
    for (uint64_t i = 0; i < record.slice_count; ++i) {
        auto count = uint32_t(dispatches.size());
        Diag diag;
        if (foveaGetDispatches(call.plan.get(), record.first_slice + i, dispatches.data(), &count, &diag) !=
            FOVEA_OK)
            return diag.error();
        for (uint32_t n = 0; n < count; ++n) {
            const FoveaDispatch& d = dispatches[n];
            times_.dispatches.push_back({foveaShaderName(d.shader),
                                         next_slice_ + i,
                                         {d.groups[0], d.groups[1], d.groups[2]},
                                         n > 0 && d.barrier_before == 1});
            first_queries_.push_back(next_query_ + n);
        }
        next_query_ += count + 1;
    }
    vkCmdResetQueryPool(record.cmd, queries_, record.first_query, next_query_ - record.first_query);
    return {};
}

Result<void> AttentionRun::run_on_cpu() {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (buffers_[i].data() && calls_[0].info.binding_mask >> i & 1)
            bindings[i] = {buffers_[i].data(), buffers_[i].size_bytes()};
    const auto begin = std::chrono::steady_clock::now();
    if (Result<void> r = run_on_host(calls_[0].plan, bindings, cpu_workspace_); !r) return r;
    times_.busy_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    next_slice_ = slice_count();
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
    std::vector<uint64_t> ticks(next_query_);
    if (ticks.empty() || vkGetQueryPoolResults(device_.device(), queries_, 0, next_query_, ticks.size() * 8,
                                               ticks.data(), 8, VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
        return times_;
    const double tick_s = double(device_.timestamp_period_ns()) * 1e-9;
    for (size_t i = 0; i < times_.dispatches.size(); ++i) {
        DispatchTime& one = times_.dispatches[i];
        one.begin_s = double(ticks[first_queries_[i]] - ticks[0]) * tick_s;
        one.end_s = double(ticks[first_queries_[i] + 1] - ticks[0]) * tick_s;
        times_.busy_s += one.end_s - one.begin_s;
    }
    // In a longer run the first slices are extrapolated to all.
    times_.busy_s *= double(slice_count()) / double(std::min(slice_count(), kMaxTimedSlices));
    return times_;
}

double AttentionRun::useful_flops() const {
    return 2.0 * desc_.batch * desc_.heads_q * double(desc_.len_q) * double(desc_.len_kv) *
           (desc_.dim_qk + desc_.dim_v);
}

uint64_t AttentionRun::input_bytes() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (!(output_mask() >> i & 1)) sum += buffers_[i].size_bytes();
    return sum;
}

uint64_t AttentionRun::output_bytes() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (output_mask() >> i & 1) sum += buffers_[i].size_bytes();
    return sum;
}

void AttentionRun::replace(FoveaBinding binding, std::span<const float> values) {
    GpuBuffer& buffer = buffers_[binding];
    if (!buffer.data() || buffer.size_bytes() < values.size_bytes()) return;
    std::memcpy(buffer.data(), values.data(), values.size_bytes());
    buffer.flush();
}

std::span<const float> AttentionRun::values(FoveaBinding binding) const {
    const GpuBuffer& buffer = buffers_[binding];
    if (!buffer.data()) return {};
    buffer.invalidate();
    return {reinterpret_cast<const float*>(buffer.data()), buffer.size_bytes() / 4};
}

}  // namespace fovea::visualizer

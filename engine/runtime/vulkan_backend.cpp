#include "plan/vulkan/checked.hpp"
#include "plan/vulkan/costs.hpp"
#include "problem/bindings.hpp"
#include "runtime/driver_check.hpp"
#include "runtime/slice_rate.hpp"
#include "runtime/vulkan_memory.hpp"
#include "vulkan/device_query.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

namespace fovea::runtime {
namespace {

// Describes a plan in errors about a wait or a loss: "kernel staged, 3.2e+09 FLOP in 12 slices".
std::string describe(const FoveaPlanInfo& info) {
    char text[160];
    snprintf(text, sizeof text, "kernel %s, %.3g FLOP in %llu slices, Q %llu, K %llu, V %llu bytes",
             kernel_name(info.kernel), info.flops, static_cast<unsigned long long>(info.slice_count),
             static_cast<unsigned long long>(info.binding_bytes[FOVEA_BIND_Q]),
             static_cast<unsigned long long>(info.binding_bytes[FOVEA_BIND_K]),
             static_cast<unsigned long long>(info.binding_bytes[FOVEA_BIND_V]));
    return text;
}

constexpr double kWaitSeconds = 60, kSoftwareWaitSeconds = 600;  // where the caller names none
constexpr double kLastChanceSeconds = 5;  // final wait after a timeout, before the device is abandoned

// The outputs that a host may have laid out with gaps, which a run must not touch.
constexpr BindingMask kStridedOutputs = binding_bit(FOVEA_BIND_O) | binding_bit(FOVEA_BIND_Y);
// Outputs that a call may add to.
constexpr BindingMask kSums = binding_bit(FOVEA_BIND_DQ) | binding_bit(FOVEA_BIND_DK) |
                              binding_bit(FOVEA_BIND_DV) | binding_bit(FOVEA_BIND_DBIAS) |
                              binding_bit(FOVEA_BIND_DALIBI) | binding_bit(FOVEA_BIND_DSINKS);

class VulkanBackend final : public Backend {
  public:
    static Result<std::unique_ptr<Backend>> open(uint32_t number, const EngineOptions& options);
    ~VulkanBackend() override {
        if (queue_) queue_->settle(kLastChanceSeconds);
        const bool abandoned = device_ && device_->abandoned();
        workspace_.reset();
        allocator_.reset();
        queue_.reset();
        device_.reset();
        if (abandoned) static_cast<void>(instance_.release());  // the device still exists
    }

    const DeviceInfo& info() const override { return info_; }
    double measured_slice_cost() const override { return rate_.slice_cost(); }
    CheckedShaders failed_shaders() const override { return check_->failed(); }
    std::vector<std::string> check_texts() const override { return check_->texts(); }
    Result<uint32_t> check_driver() override;
    std::vector<std::string> take_messages() override { return instance_->take_messages(); }

    Result<std::unique_ptr<Memory>> allocate(uint64_t size_bytes) override {
        Result<std::unique_ptr<VulkanMemory>> memory = allocator_->allocate(size_bytes);
        if (!memory) return memory.error();
        if (Result<void> r = (*memory)->fill_zero(); !r) return r.error();
        return std::unique_ptr<Memory>(std::move(*memory));
    }

    Result<RunReport> run(const Plan& plan, std::span<Memory* const> buffers,
                          const RunOptions& options) override {
        const auto start = std::chrono::steady_clock::now();
        FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
        bind(buffers, bindings);
        Result<RunReport> report = run_bound(plan, bindings, options);
        if (!report) return report;
        report->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return report;
    }

    Result<RunReport> run_all(std::span<const Bound> runs, const RunOptions& options) override;
    Result<RunReport> run_on_host(const Plan& plan, const HostBindings& bindings,
                                  const RunOptions& options) override;

  private:
    struct HostCopies {
        std::unique_ptr<VulkanMemory> memory[FOVEA_BIND_COUNT];
        FoveaBuffer bound[FOVEA_BIND_COUNT] = {};
        uint64_t bytes = 0;
    };
    static void bind(std::span<Memory* const> buffers, FoveaBuffer (&bindings)[FOVEA_BIND_COUNT]) {
        for (size_t i = 0; i < buffers.size() && i < FOVEA_BIND_COUNT; ++i)
            if (const auto* memory = static_cast<const VulkanMemory*>(buffers[i]))
                bindings[i] = {memory->buffer(), 0, memory->size_bytes()};
    }
    double timeout_of(const RunOptions& options) const {
        if (options.timeout_seconds > 0) return options.timeout_seconds;
        return info_.properties.device_class == FOVEA_CLASS_CPU ? kSoftwareWaitSeconds : kWaitSeconds;
    }
    FoveaRecord record_of(const FoveaPlanInfo& info, const FoveaBuffer (&bindings)[FOVEA_BIND_COUNT]) const;
    // Whatever way a call ends, nothing may be under way that uses its callback or its caller's buffers.
    struct Drain {
        VulkanQueue& queue;
        double timeout;
        ~Drain() {
            static_cast<void>(queue.finish(timeout));
            queue.drop_callbacks();
        }
    };
    Result<void> check_host(const Plan& plan, const FoveaPlanInfo& info, const HostBindings& bindings) const;
    Result<void> upload(const FoveaPlanInfo& info, const HostBindings& bindings, HostCopies& copies);
    Result<void> reserve_workspace(uint64_t size_bytes);
    Result<FoveaCheckReport> check(const CheckedShaders& shaders);
    // Compiles the plan. `ready` is the plan, or, where a kernel fails its check, a new one that `again`
    // owns.
    Result<void> prepare(const Plan& plan, Plan& again, const Plan*& ready);
    Result<RunReport> run_bound(const Plan& plan, const FoveaBuffer (&bindings)[FOVEA_BIND_COUNT],
                                const RunOptions& options);
    Result<void> record_slice(const Plan& plan, const FoveaPlanInfo& info, FoveaRecord& record,
                              const Submission& submission, bool is_first);
    bool has_timestamps() const { return (info_.properties.features & FOVEA_FEATURE_TIMESTAMPS) != 0; }

    // In the order of construction; gone in the reverse order.
    std::unique_ptr<Instance> instance_;
    std::unique_ptr<VulkanDevice> device_;
    std::unique_ptr<VulkanQueue> queue_;
    std::unique_ptr<VulkanAllocator> allocator_;
    std::unique_ptr<VulkanMemory> workspace_;
    DeviceInfo info_;
    SliceRate rate_;
    std::optional<DriverCheck> check_;
    bool checks_ = false;  // each kernel at its first plan
};

// Describes a device without opening it. Usable means that it meets the minimum requirements.
DeviceInfo describe_device(const Instance& instance, VkPhysicalDevice physical_device, uint32_t number) {
    VkPhysicalDeviceProperties properties;
    instance.vk().vkGetPhysicalDeviceProperties(physical_device, &properties);
    DeviceInfo info;
    info.number = number;
    info.name = properties.deviceName;
    info.properties.struct_size = sizeof info.properties;
    info.properties.backend = FOVEA_BACKEND_VULKAN;
    info.properties.device_class = vulkan::device_class_of(properties.deviceType);
    info.properties.vendor_id = properties.vendorID;
    FoveaRecommendedFeatures recommended{};
    recommended.struct_size = sizeof recommended;
    Diag diag;
    info.usable =
        foveaQueryRecommendedFeatures(instance.get_proc(), instance.handle(), instance.api_version(),
                                      physical_device, nullptr, &recommended, &diag) == FOVEA_OK;
    if (!info.usable) info.refusal = diag.text;
    for (uint32_t i = 0; i < recommended.count; ++i) {
        const FoveaRecommendedFeature& item = recommended.items[i];
        if (!item.available)
            info.notes.push_back(std::string("no ") + (item.feature ? item.feature : item.extension) +
                                 ": without " + item.benefit);
    }
    return info;
}

void describe_open_device(const VulkanDevice& device, DeviceInfo& info) {
    info.driver = device.driver();
    info.properties = device.properties();
}

Result<std::unique_ptr<Backend>> VulkanBackend::open(uint32_t number, const EngineOptions& options) {
    Result<std::unique_ptr<Instance>> instance = Instance::create(options.validation);
    if (!instance) return instance.error();
    const std::vector<VkPhysicalDevice>& all = (*instance)->physical_devices();
    if (number == 0 || number > all.size())
        return Error{FOVEA_INVALID_ARGUMENT, "device",
                     "device is " + std::to_string(number) + "; this machine has Vulkan devices 1 to " +
                         std::to_string(all.size())};
    std::unique_ptr<VulkanBackend> backend(new VulkanBackend);
    backend->instance_ = std::move(*instance);
    DeviceWishes wishes;
    wishes.push_descriptors = options.push_descriptors;
    Result<std::unique_ptr<VulkanDevice>> device =
        VulkanDevice::open(*backend->instance_, all[number - 1], wishes);
    if (!device) return device.error();
    backend->device_ = std::move(*device);
    Result<std::unique_ptr<VulkanQueue>> queue = VulkanQueue::create(*backend->device_);
    if (!queue) return queue.error();
    backend->queue_ = std::move(*queue);
    Result<std::unique_ptr<VulkanAllocator>> allocator =
        VulkanAllocator::create(*backend->device_, *backend->queue_);
    if (!allocator) return allocator.error();
    backend->allocator_ = std::move(*allocator);
    backend->info_ = describe_device(*backend->instance_, all[number - 1], number);
    describe_open_device(*backend->device_, backend->info_);
    backend->check_.emplace(backend->device_->vulkan_properties(), options.check_folder);
    const bool is_software = backend->info_.properties.device_class == FOVEA_CLASS_CPU;
    backend->checks_ = options.driver_checks == DriverChecks::all ||
                       (options.driver_checks == DriverChecks::hardware && !is_software);
    return std::unique_ptr<Backend>(std::move(backend));
}

// ---- the driver's check ----

Result<FoveaCheckReport> VulkanBackend::check(const CheckedShaders& shaders) {
    const auto seed = uint32_t(std::chrono::steady_clock::now().time_since_epoch().count());
    Result<FoveaCheckReport> report =
        check_device(device_->context(), *allocator_, shaders, seed, timeout_of(RunOptions()));
    if (report) check_->add(*report, shaders);
    return report;
}

Result<uint32_t> VulkanBackend::check_driver() {
    const Result<FoveaCheckReport> report = check({});
    if (!report) return report.error();
    return report->problem_count;
}

// A plan made before a kernel failed is made again, by the same call, until its kernel has passed.
Result<void> VulkanBackend::prepare(const Plan& plan, Plan& again, const Plan*& ready) {
    Diag diag;
    for (ready = &plan; checks_; ready = &again) {
        const FoveaPlan_T& made = *ready->get();
        const uint32_t type = check_class(made), shader = uint32_t(main_shader(made));
        if (!check_->knows(type, shader)) {
            CheckedShaders asked{};
            asked[type] = uint64_t{1} << shader;
            if (const Result<FoveaCheckReport> report = check(asked); !report) return report.error();
        }
        if (!(check_->failed()[type] >> shader & 1)) break;
        uint64_t failed[FOVEA_CHECK_CLASS_COUNT];
        std::copy_n(check_->failed().begin(), FOVEA_CHECK_CLASS_COUNT, failed);
        FoveaPlan handle = nullptr;
        if (plan_again(made, failed, &handle, &diag) != FOVEA_OK) return diag.error();
        again = Plan(handle);
    }
    if (foveaCompilePlan(device_->context(), ready->get(), &diag) != FOVEA_OK) return diag.error();
    return {};
}

// ---- runs ----

Result<void> VulkanBackend::reserve_workspace(uint64_t size_bytes) {
    if (workspace_ && size_bytes <= workspace_->size_bytes()) return {};
    workspace_.reset();
    if (size_bytes == 0) return {};
    Result<std::unique_ptr<VulkanMemory>> made = allocator_->allocate(size_bytes);
    if (!made) return made.error();
    workspace_ = std::move(*made);
    return {};
}

Result<void> VulkanBackend::record_slice(const Plan& plan, const FoveaPlanInfo& info, FoveaRecord& record,
                                         const Submission& submission, bool is_first) {
    record.cmd = submission.cmd;
    record.descriptor_pool.pool = submission.sets;
    record.timestamps = has_timestamps() ? submission.timestamps : VK_NULL_HANDLE;
    if (is_first)
        queue_->cmd_full_barrier(submission.cmd);
    else if (info.slices_share_workspace)
        foveaCmdSliceBarrier(plan.get(), submission.cmd);
    Diag diag;
    if (foveaCmdRun(plan.get(), &record, &diag) != FOVEA_OK) return diag.error();
    return {};
}

FoveaRecord VulkanBackend::record_of(const FoveaPlanInfo& info,
                                     const FoveaBuffer (&bindings)[FOVEA_BIND_COUNT]) const {
    FoveaRecord record{};
    record.struct_size = sizeof record;
    record.binding_count = FOVEA_BIND_COUNT;
    record.bindings = bindings;
    if (info.workspace_bytes) record.workspace = {workspace_->buffer(), 0, workspace_->size_bytes()};
    record.slice_count = 1;
    return record;
}

// Slices go into one command buffer until they cost as much together as one may, or have as many dispatches
// as there are descriptor sets.
Result<RunReport> VulkanBackend::run_all(std::span<const Bound> runs, const RunOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    RunReport report;
    uint64_t workspace = 0;
    Diag diag;
    std::vector<Plan> again(runs.size());
    std::vector<const Plan*> plans(runs.size());
    for (size_t n = 0; n < runs.size(); ++n) {
        if (Result<void> r = prepare(*runs[n].plan, again[n], plans[n]); !r) return r.error();
        workspace = std::max(workspace, plans[n]->info().workspace_bytes);
    }
    if (Result<void> r = reserve_workspace(workspace); !r) return r.error();
    const double timeout = timeout_of(options);
    const Drain drain{*queue_, timeout};
    std::optional<Submission> open;
    double cost = 0;
    uint64_t dispatches = 0;
    std::string last;
    const auto submit = [&]() -> Result<void> {
        if (!open) return {};
        queue_->cmd_full_barrier(open->cmd);
        open.reset();
        ++report.submissions;
        return queue_->submit("a submission of several plans, the last of " + last, false, nullptr);
    };
    for (size_t n = 0; n < runs.size(); ++n) {
        const FoveaPlan plan = plans[n]->get();
        const FoveaPlanInfo info = plans[n]->info();
        FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
        bind(runs[n].buffers, bindings);
        FoveaRecord record = record_of(info, bindings);
        const uint64_t slices = report.slices;
        report.slices = slices + info.slice_count;
        for (uint64_t slice = 0; slice < info.slice_count; ++slice) {
            if (open && (cost + info.max_slice_flops > slice_cost(*plan) ||
                         dispatches + info.dispatches_per_slice > FOVEA_MAX_DESCRIPTOR_SETS))
                if (Result<void> r = submit(); !r) return r.error();
            if (!open) {
                Result<Submission> submission = queue_->begin(timeout);
                if (!submission) return submission.error();
                open = *submission, cost = 0, dispatches = 0;
            }
            last = describe(info);
            record.cmd = open->cmd, record.descriptor_pool.pool = open->sets, record.first_slice = slice;
            queue_->cmd_full_barrier(open->cmd);
            if (foveaCmdRun(plan, &record, &diag) != FOVEA_OK) return diag.error();
            cost += info.max_slice_flops, dispatches += info.dispatches_per_slice;
        }
    }
    if (Result<void> r = submit(); !r) return r.error();
    if (Result<void> r = queue_->finish(timeout); !r) return r.error();
    report.backend = FOVEA_BACKEND_VULKAN, report.device = info_.name, report.workspace_bytes = workspace;
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
}

Result<RunReport> VulkanBackend::run_bound(const Plan& given, const FoveaBuffer (&bindings)[FOVEA_BIND_COUNT],
                                           const RunOptions& options) {
    Plan again;
    const Plan* ready = nullptr;
    if (Result<void> r = prepare(given, again, ready); !r) return r.error();
    const Plan& plan = *ready;
    const FoveaPlanInfo info = plan.info();
    RunReport report = report_of(info, info_);
    if (Result<void> r = reserve_workspace(info.workspace_bytes); !r) return r.error();
    FoveaRecord record = record_of(info, bindings);
    const std::string what = describe(info);
    const double timeout = timeout_of(options);
    const double slice_flops = info.slice_count ? info.flops / double(info.slice_count) : 0;
    uint64_t submitted = 0, finished = 0;
    double longest = 0;
    const Drain drain{*queue_, timeout};
    const auto on_done = [&](double seconds) {
        ++finished;
        report.device_seconds += seconds;
        longest = std::max(longest, seconds);
    };
    for (const uint64_t slice : slice_order(info.slice_count, options.slice_shuffle_seed)) {
        Result<Submission> submission = queue_->begin(timeout);
        if (!submission) return submission.error();
        if (options.progress && !options.progress(double(finished) / double(info.slice_count))) {
            return Error{FOVEA_CANCELLED, "progress",
                         "cancelled after " + std::to_string(finished) + " of " +
                             std::to_string(info.slice_count) + " slices"};
        }
        record.first_slice = slice;
        if (Result<void> r = record_slice(plan, info, record, *submission, submitted == 0); !r)
            return r.error();
        if (++submitted == info.slice_count) queue_->cmd_full_barrier(submission->cmd);
        Result<void> r = queue_->submit("slice " + std::to_string(slice) + " of " + what,
                                        record.timestamps != VK_NULL_HANDLE, on_done);
        if (!r) return r.error();
    }
    if (Result<void> r = queue_->finish(timeout); !r) return r.error();
    report.submissions = submitted;
    if (options.progress) options.progress(1);
    // The first run of a pipeline may compile it on some drivers, so the slowest slice is what counts only
    // against the average of several.
    if (info.slice_count > 1 && report.device_seconds > 0)
        rate_.add(info.kernel, slice_flops, (report.device_seconds - longest) / double(info.slice_count - 1));
    return report;
}

Result<void> VulkanBackend::check_host(const Plan& plan, const FoveaPlanInfo& info,
                                       const HostBindings& bindings) const {
    BindingRange ranges[FOVEA_BIND_COUNT];
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        ranges[i] = {bindings[i].data != nullptr, 0, reinterpret_cast<uintptr_t>(bindings[i].data),
                     bindings[i].size_bytes};
    FoveaPlanInfo on_host = info;
    on_host.workspace_bytes = 0;  // it is not the host's
    memcpy(on_host.binding_bytes, info.tensor_bytes, sizeof info.tensor_bytes);
    Diag diag;
    const BindingRules rules{1, works_in_place(*plan.get()), {}, true};
    if (check_bindings(on_host, rules, ranges, &diag) != FOVEA_OK) return diag.error();
    return {};
}

Result<void> VulkanBackend::upload(const FoveaPlanInfo& info, const HostBindings& bindings,
                                   HostCopies& copies) {
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (info.binding_mask >> i & 1) copies.bytes += info.binding_bytes[i];
    }
    // Together, so that the message has the whole sum; each buffer is checked again when it is made.
    if (Result<void> r = allocator_->check_budget(copies.bytes + info.workspace_bytes); !r) return r;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1) || info.binding_bytes[i] == 0) continue;
        Result<std::unique_ptr<VulkanMemory>> made = allocator_->allocate(info.binding_bytes[i]);
        if (!made) return made.error();
        copies.memory[i] = std::move(*made);
        copies.bound[i] = {copies.memory[i]->buffer(), 0, info.binding_bytes[i]};
        if ((info.output_mask & ~(kStridedOutputs | kSums)) >> i & 1) continue;
        const std::span<const std::byte> bytes(static_cast<const std::byte*>(bindings[i].data),
                                               static_cast<size_t>(info.tensor_bytes[i]));
        if (Result<void> r = copies.memory[i]->upload(bytes, 0); !r) return r;
    }
    return {};
}

Result<RunReport> VulkanBackend::run_on_host(const Plan& plan, const HostBindings& bindings,
                                             const RunOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    const FoveaPlanInfo info = plan.info();
    HostCopies copies;
    if (Result<void> r = check_host(plan, info, bindings); !r) return r.error();
    if (Result<void> r = upload(info, bindings, copies); !r) return r.error();
    Result<RunReport> report = run_bound(plan, copies.bound, options);
    if (!report) return report;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.output_mask >> i & 1) || !copies.memory[i]) continue;
        const std::span<std::byte> bytes(static_cast<std::byte*>(bindings[i].data),
                                         static_cast<size_t>(info.tensor_bytes[i]));
        if (Result<void> r = copies.memory[i]->download(bytes, 0); !r) return r.error();
    }
    report->device_bytes = copies.bytes + info.workspace_bytes;
    report->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
}

}  // namespace

std::vector<DeviceInfo> list_vulkan_devices(Detail detail, const std::string& check_folder,
                                            std::string& note) {
    Result<std::unique_ptr<Instance>> instance = Instance::create(false);
    if (!instance) {
        note = instance.error().text;
        return {};
    }
    std::vector<DeviceInfo> list;
    for (VkPhysicalDevice physical_device : (*instance)->physical_devices()) {
        DeviceInfo info =
            describe_device(**instance, physical_device, static_cast<uint32_t>(list.size()) + 1);
        if (detail == Detail::all && info.usable) {
            Result<std::unique_ptr<VulkanDevice>> device = VulkanDevice::open(**instance, physical_device);
            if (device) {
                describe_open_device(**device, info);
                const DriverCheck check((*device)->vulkan_properties(), check_folder);
                std::copy(check.failed().begin(), check.failed().end(), info.properties.failed_shaders);
                info.notes.insert(info.notes.end(), check.texts().begin(), check.texts().end());
            } else {
                info.refusal = device.error().text;
            }
            info.usable = device.has_value();
        }
        list.push_back(std::move(info));
    }
    return list;
}

Result<std::unique_ptr<Backend>> open_vulkan_backend(uint32_t number, const EngineOptions& options) {
    return VulkanBackend::open(number, options);
}

}  // namespace fovea::runtime

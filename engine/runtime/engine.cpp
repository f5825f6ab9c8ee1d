#include "runtime/backend.hpp"

#include <algorithm>
#include <random>

namespace fovea {

using runtime::Backend;
using runtime::Memory;

struct Engine::State {
    std::unique_ptr<Backend> backend;
    DeviceInfo device;  // the backend's, tuned
    std::string reason;
};

struct DeviceBuffer::State {
    std::unique_ptr<Memory> memory;
};

namespace runtime {

std::vector<uint64_t> slice_order(uint64_t count, uint64_t shuffle_seed) {
    std::vector<uint64_t> order(count);
    for (uint64_t i = 0; i < count; ++i) order[i] = i;
    if (shuffle_seed == 0) return order;
    std::mt19937_64 random(shuffle_seed);
    for (uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    return order;
}

Result<RunReport> Backend::run_all(std::span<const Bound> runs, const RunOptions& options) {
    RunReport all;
    for (const Bound& bound : runs) {
        Result<RunReport> one = run(*bound.plan, bound.buffers, options);
        if (!one) return one;
        one->slices += all.slices, one->seconds += all.seconds, one->device_seconds += all.device_seconds;
        all = std::move(*one);
    }
    return all;
}

RunReport report_of(const FoveaPlanInfo& info, const DeviceInfo& device) {
    RunReport report;
    report.backend = info.backend;
    report.kernel = info.kernel;
    report.device = device.name;
    report.reason = info.reason;
    report.slices = info.slice_count;
    report.workspace_bytes = info.workspace_bytes;
    return report;
}

namespace {

std::vector<DeviceInfo> all_devices(uint32_t cpu_threads, Detail detail, const std::string& check_folder,
                                    std::string& vulkan_note) {
    std::vector<DeviceInfo> devices{cpu_device_info(cpu_threads)};
    for (DeviceInfo& d : list_vulkan_devices(detail, check_folder, vulkan_note))
        devices.push_back(std::move(d));
    return devices;
}

// Only the CPU is asked for: do not wake the drivers.
bool needs_vulkan_list(const EngineOptions& options) {
    if (options.device > 0 || !options.device_name.empty()) return true;
    return options.device < 0 &&
           (options.backend == BackendChoice::automatic || options.backend == BackendChoice::vulkan);
}

Error foreign_range(uint64_t offset, uint64_t bytes, uint64_t size) {
    return Error{FOVEA_INVALID_ARGUMENT, "offset",
                 "offset " + std::to_string(offset) + " and size " + std::to_string(bytes) +
                     " run past the end of a buffer of " + std::to_string(size) + " bytes"};
}

}  // namespace
}  // namespace runtime

std::vector<DeviceInfo> list_devices(uint32_t cpu_threads, const std::string& check_folder) {
    std::string note;
    std::vector<DeviceInfo> devices =
        runtime::all_devices(cpu_threads, runtime::Detail::all, check_folder, note);
    if (!note.empty()) devices[0].notes.push_back(note);
    return devices;
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::open(const EngineOptions& options) {
    std::string note;
    const std::vector<DeviceInfo> devices =
        runtime::needs_vulkan_list(options)
            ? runtime::all_devices(options.cpu_threads, runtime::Detail::to_choose, {}, note)
            : std::vector<DeviceInfo>{runtime::cpu_device_info(options.cpu_threads)};
    Result<runtime::DeviceChoice> choice = runtime::choose_device(devices, note, options);
    if (!choice) return choice.error();
    Result<std::unique_ptr<Backend>> backend = choice->number == 0
                                                   ? runtime::open_cpu_backend(options.cpu_threads)
                                                   : runtime::open_vulkan_backend(choice->number, options);
    if (!backend) return backend.error();
    auto state = std::make_unique<State>();
    state->backend = std::move(*backend);
    state->device = state->backend->info();
    if (!options.tuning_file.empty())
        if (Result<void> r = runtime::tune_from_file(options.tuning_file, state->device); !r)
            return r.error();
    state->reason = std::move(choice->reason);
    if (options.backend == BackendChoice::reference)
        state->device.properties.forced_kernel = FOVEA_KERNEL_REFERENCE;
    return Engine(std::move(state));
}

const DeviceInfo& Engine::device() const {
    state_->device.properties.slice_cost = state_->backend->measured_slice_cost();
    const runtime::CheckedShaders failed = state_->backend->failed_shaders();
    if (!std::equal(failed.begin(), failed.end(), state_->device.properties.failed_shaders)) {
        std::copy(failed.begin(), failed.end(), state_->device.properties.failed_shaders);
        state_->device.notes = state_->backend->info().notes;
        for (const std::string& text : state_->backend->check_texts()) state_->device.notes.push_back(text);
    }
    return state_->device;
}
const std::string& Engine::reason() const { return state_->reason; }
const FoveaDeviceProperties& Engine::properties() const { return device().properties; }
bool Engine::is_vulkan() const { return properties().backend == FOVEA_BACKEND_VULKAN; }
Result<std::vector<std::string>> Engine::check_driver(uint32_t* problems) {
    const Result<uint32_t> count = state_->backend->check_driver();
    if (!count) return count.error();
    if (problems) *problems = *count;
    return state_->backend->check_texts();
}
std::vector<std::string> Engine::take_messages() { return state_->backend->take_messages(); }

Result<DeviceBuffer> Engine::buffer(uint64_t size_bytes) {
    Result<std::unique_ptr<Memory>> memory = state_->backend->allocate(size_bytes);
    if (!memory) return memory.error();
    auto state = std::make_unique<DeviceBuffer::State>();
    state->memory = std::move(*memory);
    return DeviceBuffer(std::move(state));
}

Result<RunReport> Engine::run(const Plan& plan, std::span<DeviceBuffer* const> buffers,
                              const RunOptions& options) {
    Memory* memory[FOVEA_BIND_COUNT] = {};
    for (size_t i = 0; i < buffers.size() && i < FOVEA_BIND_COUNT; ++i) {
        if (buffers[i]) memory[i] = buffers[i]->state_->memory.get();
    }
    return state_->backend->run(plan, memory, options);
}

Result<RunReport> Engine::run(std::span<const BoundPlan> plans, const RunOptions& options) {
    std::vector<Backend::Bound> runs;
    for (const BoundPlan& one : plans) {
        Backend::Bound bound{one.plan.get(), {}};
        for (size_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            if (one.buffers[i]) bound.buffers[i] = one.buffers[i]->state_->memory.get();
        runs.push_back(bound);
    }
    return state_->backend->run_all(runs, options);
}

Result<RunReport> Engine::run_on_host(const Plan& plan, const HostBindings& bindings,
                                      const RunOptions& options) {
    return state_->backend->run_on_host(plan, bindings, options);
}

Result<RunReport> Engine::run_on_host(const Result<Plan>& plan, const HostBindings& bindings,
                                      const RunOptions& options) {
    if (!plan) return plan.error();
    return run_on_host(*plan, bindings, options);
}

DeviceBuffer::DeviceBuffer(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceBuffer::DeviceBuffer(DeviceBuffer&&) noexcept = default;
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&&) noexcept = default;
DeviceBuffer::~DeviceBuffer() = default;

uint64_t DeviceBuffer::size_bytes() const { return state_->memory->size_bytes(); }

Result<void> DeviceBuffer::upload(std::span<const std::byte> bytes, uint64_t offset) {
    if (offset > size_bytes() || bytes.size() > size_bytes() - offset)
        return runtime::foreign_range(offset, bytes.size(), size_bytes());
    return state_->memory->upload(bytes, offset);
}

Result<void> DeviceBuffer::download(std::span<std::byte> bytes, uint64_t offset) const {
    if (offset > size_bytes() || bytes.size() > size_bytes() - offset)
        return runtime::foreign_range(offset, bytes.size(), size_bytes());
    return state_->memory->download(bytes, offset);
}

}  // namespace fovea

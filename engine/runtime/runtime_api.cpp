// The C boundary of the runtime, <fovea/fovea_runtime.h>, over <fovea/runtime.hpp>.
#include "problem/abi_struct.hpp"
#include "runtime/c_boundary.hpp"

#include <fovea/fovea_runtime.h>
#include <fovea/runtime.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace fovea {
FOVEA_FIELDS(FoveaDeviceInfo, struct_size, number, usable, backend, name, driver, refusal, notes);
FOVEA_FIELDS(FoveaEngineOptions, struct_size, backend, has_device, device, device_name, tuning_file,
             cpu_threads, validation, check_folder, driver_checks, reserved0);
FOVEA_FIELDS(FoveaRun, struct_size, binding_count, host, buffers, progress, user, slice_shuffle_seed,
             timeout_seconds);
FOVEA_FIELDS(FoveaRunReport, struct_size, backend, kernel, reserved0, slices, workspace_bytes, device_bytes,
             seconds, device_seconds);
}  // namespace fovea

using namespace fovea;

namespace {

// A device with its notes as one text.
struct Described {
    DeviceInfo info;
    std::string notes;

    explicit Described(DeviceInfo device) : info(std::move(device)) {
        for (const std::string& note : info.notes) notes += note + "\n";
    }
};

FoveaResult write_device(const Described& device, const FoveaDeviceProperties& of, FoveaDeviceInfo* info,
                         FoveaDeviceProperties* properties, FoveaDiag* diag) {
    FoveaDeviceInfo out = foveaDeviceInfo();
    out.number = device.info.number;
    out.usable = device.info.usable;
    out.backend = device.info.properties.backend;
    out.name = device.info.name.c_str();
    out.driver = device.info.driver.c_str();
    out.refusal = device.info.refusal.c_str();
    out.notes = device.notes.c_str();
    if (FoveaResult r = write_struct(out, info, "info", diag); r != FOVEA_OK) return r;
    return properties ? write_struct(of, properties, "properties", diag) : FOVEA_OK;
}

FoveaResult null_refused(FoveaDiag* diag, const char* name) {
    return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is null", name);
}

}  // namespace

struct FoveaDeviceList_T {
    std::vector<Described> devices;
};
struct FoveaEngine_T {
    Engine engine;
    Described device;
    std::string messages;

    explicit FoveaEngine_T(Engine opened) : engine(std::move(opened)), device(engine.device()) {}
};
struct FoveaEngineBuffer_T {
    DeviceBuffer buffer;
};

FoveaResult fovea::read_options(const FoveaEngineOptions* given, EngineOptions& to, FoveaDiag* diag) {
    FoveaEngineOptions options = foveaEngineOptions();
    if (given)
        if (FoveaResult r = read_struct(given, options, "options", diag); r != FOVEA_OK) return r;
    const int backend = enum_number(options.backend);
    constexpr BackendChoice kChoices[] = {BackendChoice::automatic, BackendChoice::cpu, BackendChoice::vulkan,
                                          BackendChoice::reference};
    if (backend < 0 || size_t(backend) >= std::size(kChoices))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "backend", "backend is %d; it must be 0 to %zu", backend,
                    std::size(kChoices) - 1);
    const std::pair<const char*, uint32_t> switches[] = {{"has_device", options.has_device},
                                                         {"validation", options.validation}};
    for (const auto& [name, value] : switches)
        if (value > 1)
            return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is %u; it must be 0 or 1", name, value);
    if (!options.has_device && options.device != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "device",
                    "device is %u, but has_device is 0; set has_device to 1, or device to 0", options.device);
    constexpr uint32_t kMaxDevices = 1u << 16;
    if (options.device > kMaxDevices)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "device",
                    "device is %u; foveaListDevices lists the devices of this machine", options.device);
    const int checks = enum_number(options.driver_checks);
    constexpr DriverChecks kChecks[] = {DriverChecks::hardware, DriverChecks::all, DriverChecks::none};
    if (checks < 0 || size_t(checks) >= std::size(kChecks))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "driver_checks", "driver_checks is %d; it must be 0 to %zu",
                    checks, std::size(kChecks) - 1);
    if (options.reserved0 != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "reserved0", "reserved0 is %u; it must be 0",
                    options.reserved0);
    to.driver_checks = kChecks[checks];
    if (options.check_folder) to.check_folder = options.check_folder;
    to.backend = kChoices[backend];
    to.device = options.has_device ? int(options.device) : -1;
    if (options.device_name) to.device_name = options.device_name;
    if (options.tuning_file) to.tuning_file = options.tuning_file;
    to.cpu_threads = options.cpu_threads;
    to.validation = options.validation != 0;
    return FOVEA_OK;
}

namespace {

FoveaResult run_on(Engine& engine, FoveaPlan plan, const FoveaRun& run, RunReport& report, FoveaDiag* diag) {
    RunOptions options;
    if (run.progress) options.progress = [&run](double done) { return run.progress(run.user, done) != 0; };
    options.slice_shuffle_seed = run.slice_shuffle_seed;
    options.timeout_seconds = run.timeout_seconds;
    const BorrowedPlan borrowed(plan);
    Result<RunReport> ran = [&] {
        if (run.host) {
            HostBindings bindings = {};
            memcpy(bindings, run.host, run.binding_count * sizeof *run.host);
            return engine.run_on_host(borrowed.plan, bindings, options);
        }
        DeviceBuffer* buffers[FOVEA_BIND_COUNT] = {};
        for (uint32_t i = 0; i < run.binding_count; ++i)
            if (run.buffers[i]) buffers[i] = &run.buffers[i]->buffer;
        return engine.run(borrowed.plan, buffers, options);
    }();
    if (!ran) return fail_with(diag, ran.error());
    report = std::move(*ran);
    return FOVEA_OK;
}

}  // namespace

FoveaResult foveaListDevices(uint32_t cpu_threads, FoveaDeviceList* out, FoveaDiag* diag) {
    if (!out) return null_refused(diag, "out");
    *out = nullptr;
    return without_exceptions(diag, [&] {
        auto list = std::make_unique<FoveaDeviceList_T>();
        for (DeviceInfo& device : list_devices(cpu_threads)) list->devices.emplace_back(std::move(device));
        *out = list.release();
        return FOVEA_OK;
    });
}

uint32_t foveaDeviceCount(FoveaDeviceList list) { return list ? uint32_t(list->devices.size()) : 0; }

FoveaResult foveaGetDevice(FoveaDeviceList list, uint32_t index, FoveaDeviceInfo* info,
                           FoveaDeviceProperties* properties, FoveaDiag* diag) {
    if (!list) return null_refused(diag, "list");
    if (index >= list->devices.size())
        return fail(diag, FOVEA_INVALID_ARGUMENT, "index", "index is %u; the list has %zu devices", index,
                    list->devices.size());
    const Described& device = list->devices[index];
    return write_device(device, device.info.properties, info, properties, diag);
}

void foveaDestroyDeviceList(FoveaDeviceList list) { delete list; }

FoveaResult foveaOpenEngine(const FoveaEngineOptions* given, FoveaEngine* out, FoveaDiag* diag) {
    if (!out) return null_refused(diag, "out");
    *out = nullptr;
    return without_exceptions(diag, [&]() -> FoveaResult {
        EngineOptions options;
        if (FoveaResult r = read_options(given, options, diag); r != FOVEA_OK) return r;
        Result<Engine> engine = Engine::open(options);
        if (!engine) return fail_with(diag, engine.error());
        *out = new FoveaEngine_T(std::move(*engine));
        return FOVEA_OK;
    });
}

void foveaCloseEngine(FoveaEngine engine) { delete engine; }

FoveaResult foveaEngineDevice(FoveaEngine engine, FoveaDeviceInfo* info, FoveaDeviceProperties* properties,
                              FoveaDiag* diag) {
    if (!engine) return null_refused(diag, "engine");
    return write_device(engine->device, engine->engine.properties(), info, properties, diag);
}

const FoveaDeviceProperties* foveaEngineProperties(FoveaEngine engine) {
    return engine ? &engine->engine.properties() : nullptr;
}

const char* foveaEngineReason(FoveaEngine engine) { return engine ? engine->engine.reason().c_str() : ""; }

const char* foveaEngineMessages(FoveaEngine engine) {
    if (!engine) return "";
    const FoveaResult taken = without_exceptions(nullptr, [&] {
        engine->messages.clear();
        for (const std::string& line : engine->engine.take_messages()) engine->messages += line + "\n";
        return FOVEA_OK;
    });
    return taken == FOVEA_OK ? engine->messages.c_str() : "no memory for the messages\n";
}

FoveaResult foveaCreateBuffer(FoveaEngine engine, uint64_t size_bytes, FoveaEngineBuffer* out,
                              FoveaDiag* diag) {
    if (!out) return null_refused(diag, "out");
    *out = nullptr;
    if (!engine) return null_refused(diag, "engine");
    return without_exceptions(diag, [&]() -> FoveaResult {
        Result<DeviceBuffer> buffer = engine->engine.buffer(size_bytes);
        if (!buffer) return fail_with(diag, buffer.error());
        *out = new FoveaEngineBuffer_T{std::move(*buffer)};
        return FOVEA_OK;
    });
}

void foveaDestroyBuffer(FoveaEngineBuffer buffer) { delete buffer; }

uint64_t foveaBufferSize(FoveaEngineBuffer buffer) { return buffer ? buffer->buffer.size_bytes() : 0; }

FoveaResult foveaUpload(FoveaEngineBuffer buffer, const void* data, uint64_t size_bytes, uint64_t offset,
                        FoveaDiag* diag) {
    if (!buffer) return null_refused(diag, "buffer");
    if (!data && size_bytes > 0) return null_refused(diag, "data");
    return without_exceptions(diag, [&]() -> FoveaResult {
        const Result<void> done =
            buffer->buffer.upload({static_cast<const std::byte*>(data), size_t(size_bytes)}, offset);
        return done ? FOVEA_OK : fail_with(diag, done.error());
    });
}

FoveaResult foveaDownload(FoveaEngineBuffer buffer, void* data, uint64_t size_bytes, uint64_t offset,
                          FoveaDiag* diag) {
    if (!buffer) return null_refused(diag, "buffer");
    if (!data && size_bytes > 0) return null_refused(diag, "data");
    return without_exceptions(diag, [&]() -> FoveaResult {
        const Result<void> done =
            buffer->buffer.download({static_cast<std::byte*>(data), size_t(size_bytes)}, offset);
        return done ? FOVEA_OK : fail_with(diag, done.error());
    });
}

FoveaResult foveaRun(FoveaEngine engine, FoveaPlan plan, const FoveaRun* given, FoveaRunReport* report,
                     FoveaDiag* diag) {
    if (!engine) return null_refused(diag, "engine");
    if (!plan) return null_refused(diag, "plan");
    FoveaRun run = foveaRunDesc();
    if (FoveaResult r = read_struct(given, run, "run", diag); r != FOVEA_OK) return r;
    if (!run.host == !run.buffers)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "host",
                    "host and buffers are %s; one of them must be given",
                    run.host ? "both given" : "both null");
    if (run.binding_count > FOVEA_BIND_COUNT)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "binding_count", "binding_count is %u; the limit is %d",
                    run.binding_count, int(FOVEA_BIND_COUNT));
    if (!(run.timeout_seconds >= 0))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "timeout_seconds",
                    "timeout_seconds is %g; it must be at least 0", run.timeout_seconds);
    return without_exceptions(diag, [&]() -> FoveaResult {
        RunReport ran;
        if (FoveaResult r = run_on(engine->engine, plan, run, ran, diag); r != FOVEA_OK) return r;
        if (!report) return FOVEA_OK;
        FoveaRunReport out = foveaRunReport();
        out.backend = ran.backend;
        out.kernel = ran.kernel;
        out.slices = ran.slices;
        out.workspace_bytes = ran.workspace_bytes;
        out.device_bytes = ran.device_bytes;
        out.seconds = ran.seconds;
        out.device_seconds = ran.device_seconds;
        return write_struct(out, report, "report", diag);
    });
}

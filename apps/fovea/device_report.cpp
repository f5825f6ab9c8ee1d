#include "device_report.hpp"

#include "engine_options.hpp"

#include <algorithm>
#include <chrono>

namespace fovea::app {
namespace {

struct FeatureName {
    uint32_t bit;
    const char* name;
};
constexpr FeatureName kFeatures[] = {
    {FOVEA_FEATURE_F16_STORAGE, "f16 storage"},
    {FOVEA_FEATURE_F16_ARITHMETIC, "f16 arithmetic"},
    {FOVEA_FEATURE_SUBGROUP_ARITHMETIC, "subgroup arithmetic"},
    {FOVEA_FEATURE_SUBGROUP_SHUFFLE, "subgroup shuffle"},
    {FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL, "subgroup size control"},
    {FOVEA_FEATURE_COOPMAT, "cooperative matrix"},
    {FOVEA_FEATURE_BF16_INPUTS, "bfloat16 inputs"},
    {FOVEA_FEATURE_COOPMAT2, "cooperative matrix 2"},
    {FOVEA_FEATURE_PUSH_DESCRIPTORS, "push descriptors"},
    {FOVEA_FEATURE_TIMESTAMPS, "timestamps"},
    {FOVEA_FEATURE_DEVICE_ATOMICS, "device-scope atomics"},
};

DriverCheck check_driver(const DeviceInfo& device) {
    DriverCheck check;
    if (!device.usable || device.properties.backend == FOVEA_BACKEND_CPU) return check;
    check.done = true;
    EngineOptions options;
    options.device = int(device.number);
    options.check_folder = driver_check_folder();
    Result<Engine> engine = Engine::open(options);
    if (!engine) return check.error = engine.error().text, check;
    std::fprintf(stderr, "fovea: checking the driver of %s ...\n", device.name.c_str());
    const auto start = std::chrono::steady_clock::now();
    Result<std::vector<std::string>> off = engine->check_driver(&check.problems);
    if (!off) return check.error = off.error().text, check;
    check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    check.off = std::move(*off);
    return check;
}

void print_check(std::FILE* out, const DriverCheck& check) {
    if (!check.done) return;
    if (!check.error.empty()) {
        std::fprintf(out, "     check: not possible: %s\n", check.error.c_str());
        return;
    }
    std::fprintf(out, "     check: %u problems in %.1f s, %s\n", check.problems, check.seconds,
                 check.off.empty() ? "all right" : "these kernels are off:");
    for (const std::string& line : check.off) std::fprintf(out, "       %s\n", line.c_str());
}

void print_device(std::FILE* out, const DeviceInfo& d, bool is_default, const std::string& reason) {
    std::fprintf(out, "%u  %s  [%s]%s\n", d.number, d.name.c_str(), class_name(d.properties),
                 is_default ? "  <- default" : "");
    if (is_default) std::fprintf(out, "     why: %s\n", reason.c_str());
    if (!d.driver.empty()) std::fprintf(out, "     driver: %s\n", d.driver.c_str());
    if (!d.usable) {
        std::fprintf(out, "     not usable: %s\n", d.refusal.c_str());
        return;
    }
    if (d.properties.backend == FOVEA_BACKEND_CPU) {
        std::fprintf(out, "     threads: %u\n", d.properties.cpu_threads);
    } else {
        std::string features;
        for (const char* name : feature_names(d.properties.features))
            features += (features.empty() ? "" : ", ") + std::string(name);
        std::fprintf(out, "     features: %s\n",
                     features.empty() ? "none beyond Vulkan 1.1" : features.c_str());
        std::fprintf(out, "     workgroup: %u invocations, %u bytes shared; subgroup %u (%u-%u)\n",
                     d.properties.max_workgroup_invocations, d.properties.max_shared_bytes,
                     d.properties.subgroup_size, d.properties.min_subgroup_size,
                     d.properties.max_subgroup_size);
        std::fprintf(out, "     storage binding: up to %.0f MiB\n",
                     double(d.properties.max_storage_range) / (1 << 20));
    }
    for (const std::string& note : d.notes) std::fprintf(out, "     note: %s\n", note.c_str());
}

}  // namespace

const char* class_name(const FoveaDeviceProperties& properties) {
    if (properties.backend == FOVEA_BACKEND_CPU) return "CPU";
    switch (properties.device_class) {
        case FOVEA_CLASS_INTEGRATED:
            return "integrated GPU";
        case FOVEA_CLASS_DISCRETE:
            return "discrete GPU";
        case FOVEA_CLASS_VIRTUAL:
            return "virtual GPU";
        case FOVEA_CLASS_CPU:
            break;
    }
    return "software Vulkan";
}

std::vector<const char*> feature_names(uint32_t features) {
    std::vector<const char*> names;
    for (const FeatureName& f : kFeatures)
        if (features & f.bit) names.push_back(f.name);
    return names;
}

bool Devices::all_right() const {
    return std::all_of(checks.begin(), checks.end(),
                       [](const DriverCheck& c) { return c.off.empty() && c.error.empty(); });
}

Devices find_devices(bool check) {
    Devices found;
    found.list = list_devices(0, driver_check_folder());
    found.checks.resize(found.list.size());
    if (check) std::transform(found.list.begin(), found.list.end(), found.checks.begin(), check_driver);
    if (const Result<Engine> engine = Engine::open()) {
        found.default_number = int(engine->device().number);
        found.reason = engine->reason();
    } else {
        found.reason = engine.error().text;
    }
    return found;
}

void print_devices(std::FILE* out, const Devices& devices) {
    for (size_t n = 0; n < devices.list.size(); ++n) {
        const DeviceInfo& device = devices.list[n];
        print_device(out, device, int(device.number) == devices.default_number, devices.reason);
        print_check(out, devices.checks[n]);
    }
}

}  // namespace fovea::app

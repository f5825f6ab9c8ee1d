#include "arguments.hpp"
#include "commands.hpp"
#include "engine_options.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>
#include <fovea/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace fovea::app {
namespace {

constexpr OptionSpec kDevicesOptions[] = {
    {"--check", "", "check that each Vulkan driver computes right values"},
    {"--json", "", "machine-readable output"},
    {"--help", "", "this text"}};

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

// The result of --check.
struct Check {
    bool done = false;
    uint32_t problems = 0;
    double seconds = 0;
    std::vector<std::string> off;  // a line for each kernel that is off
};

Result<Check> check_driver(const DeviceInfo& device) {
    Check check;
    if (!device.usable || device.properties.backend == FOVEA_BACKEND_CPU) return check;
    EngineOptions options;
    options.device = int(device.number);
    options.check_folder = driver_check_folder();
    Result<Engine> engine = Engine::open(options);
    if (!engine) return engine.error();
    const auto start = std::chrono::steady_clock::now();
    Result<std::vector<std::string>> off = engine->check_driver(&check.problems);
    if (!off) return off.error();
    check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    check.off = std::move(*off);
    check.done = true;
    return check;
}

void print_check(const Check& check) {
    if (!check.done) return;
    std::printf("     check: %u problems in %.1f s, %s\n", check.problems, check.seconds,
                check.off.empty() ? "all right" : "these kernels are off:");
    for (const std::string& line : check.off) std::printf("       %s\n", line.c_str());
}

void print_device(const DeviceInfo& d, bool is_default, const std::string& reason) {
    std::printf("%u  %s  [%s]%s\n", d.number, d.name.c_str(), class_name(d.properties),
                is_default ? "  <- default" : "");
    if (is_default) std::printf("     why: %s\n", reason.c_str());
    if (!d.driver.empty()) std::printf("     driver: %s\n", d.driver.c_str());
    if (!d.usable) {
        std::printf("     not usable: %s\n", d.refusal.c_str());
        return;
    }
    if (d.properties.backend == FOVEA_BACKEND_CPU) {
        std::printf("     threads: %u\n", d.properties.cpu_threads);
    } else {
        std::string features;
        for (const FeatureName& f : kFeatures)
            if (d.properties.features & f.bit)
                features += (features.empty() ? "" : ", ") + std::string(f.name);
        std::printf("     features: %s\n", features.empty() ? "none beyond Vulkan 1.1" : features.c_str());
        std::printf("     workgroup: %u invocations, %u bytes shared; subgroup %u (%u-%u)\n",
                    d.properties.max_workgroup_invocations, d.properties.max_shared_bytes,
                    d.properties.subgroup_size, d.properties.min_subgroup_size,
                    d.properties.max_subgroup_size);
        std::printf("     storage binding: up to %.0f MiB\n",
                    double(d.properties.max_storage_range) / (1 << 20));
    }
    for (const std::string& note : d.notes) std::printf("     note: %s\n", note.c_str());
}

void print_json(const std::vector<DeviceInfo>& devices, const std::vector<Check>& checks, int default_number,
                const std::string& reason) {
    std::printf("{\"default\": %d, \"reason\": %s, \"devices\": [", default_number,
                json_string(reason).c_str());
    for (size_t i = 0; i < devices.size(); ++i) {
        const DeviceInfo& d = devices[i];
        std::printf(
            "%s\n  {\"number\": %u, \"name\": %s, \"class\": %s, \"driver\": %s, \"usable\": %s, "
            "\"refusal\": %s, \"features\": [",
            i ? "," : "", d.number, json_string(d.name).c_str(),
            json_string(class_name(d.properties)).c_str(), json_string(d.driver).c_str(),
            d.usable ? "true" : "false", json_string(d.refusal).c_str());
        bool first = true;
        for (const FeatureName& f : kFeatures) {
            if (!(d.properties.features & f.bit)) continue;
            std::printf("%s%s", first ? "" : ", ", json_string(f.name).c_str());
            first = false;
        }
        std::printf("]");
        if (const Check& check = checks[i]; check.done) {
            std::printf(", \"check\": {\"problems\": %u, \"seconds\": %.3f, \"off\": [", check.problems,
                        check.seconds);
            for (size_t n = 0; n < check.off.size(); ++n)
                std::printf("%s%s", n ? ", " : "", json_string(check.off[n]).c_str());
            std::printf("]}");
        }
        std::printf("}");
    }
    std::printf("\n]}\n");
}

Result<int> devices(const Arguments& a) {
    if (!a.positional().empty())
        return Error{
            FOVEA_INVALID_ARGUMENT, std::string(a.positional()[0]),
            "devices takes no argument, but '" + printable_name(a.positional()[0], 40) + "' is given"};
    const std::vector<DeviceInfo> devices = list_devices(0, driver_check_folder());
    std::vector<Check> checks(devices.size());
    for (size_t n = 0; n < devices.size() && a.has("--check"); ++n) {
        Result<Check> check = check_driver(devices[n]);
        if (!check) return check.error();
        checks[n] = std::move(*check);
    }
    int default_number = -1;
    std::string reason;
    if (const Result<Engine> engine = Engine::open()) {
        default_number = int(engine->device().number);
        reason = engine->reason();
    } else {
        reason = engine.error().text;
    }
    if (a.has("--json")) {
        print_json(devices, checks, default_number, reason);
    } else {
        for (size_t n = 0; n < devices.size(); ++n) {
            print_device(devices[n], int(devices[n].number) == default_number, reason);
            print_check(checks[n]);
        }
    }
    return std::any_of(checks.begin(), checks.end(), [](const Check& c) { return !c.off.empty(); });
}

void print_devices_help() {
    std::printf(
        "usage: fovea devices [--check] [--json]\n\nBackends and devices, what each can do, which is the "
        "default "
        "and why.\n\n");
    print_options(kDevicesOptions);
}

}  // namespace

int devices_command(Words words) { return run_command(words, kDevicesOptions, print_devices_help, devices); }

}  // namespace fovea::app

#include "arguments.hpp"
#include "commands.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>
#include <fovea/runtime.hpp>

#include <cstdio>

namespace fovea::app {
namespace {

constexpr OptionSpec kDevicesOptions[] = {{"--json", "", "machine-readable output"},
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

void print_json(const std::vector<DeviceInfo>& devices, int default_number, const std::string& reason) {
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
        std::printf("]}");
    }
    std::printf("\n]}\n");
}

Result<int> devices(const Arguments& a) {
    if (!a.positional().empty())
        return Error{
            FOVEA_INVALID_ARGUMENT, std::string(a.positional()[0]),
            "devices takes no argument, but '" + printable_name(a.positional()[0], 40) + "' is given"};
    const std::vector<DeviceInfo> devices = list_devices();
    int default_number = -1;
    std::string reason;
    if (const Result<Engine> engine = Engine::open()) {
        default_number = int(engine->device().number);
        reason = engine->reason();
    } else {
        reason = engine.error().text;
    }
    if (a.has("--json")) {
        print_json(devices, default_number, reason);
        return 0;
    }
    for (const DeviceInfo& d : devices) print_device(d, int(d.number) == default_number, reason);
    return 0;
}

void print_devices_help() {
    std::printf(
        "usage: fovea devices [--json]\n\nBackends and devices, what each can do, which is the default and "
        "why.\n\n");
    print_options(kDevicesOptions);
}

}  // namespace

int devices_command(Words words) { return run_command(words, kDevicesOptions, print_devices_help, devices); }

}  // namespace fovea::app

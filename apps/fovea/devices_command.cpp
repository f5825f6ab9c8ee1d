#include "arguments.hpp"
#include "commands.hpp"
#include "device_report.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>

#include <cstdio>

namespace fovea::app {
namespace {

constexpr OptionSpec kDevicesOptions[] = {
    {"--check", "", "check that each Vulkan driver computes right values"},
    {"--json", "", "machine-readable output"},
    {"--help", "", "this text"}};

void print_json(const Devices& devices) {
    std::printf("{\"default\": %d, \"reason\": %s, \"devices\": [", devices.default_number,
                json_string(devices.reason).c_str());
    for (size_t i = 0; i < devices.list.size(); ++i) {
        const DeviceInfo& d = devices.list[i];
        std::printf(
            "%s\n  {\"number\": %u, \"name\": %s, \"class\": %s, \"driver\": %s, \"usable\": %s, "
            "\"refusal\": %s, \"features\": [",
            i ? "," : "", d.number, json_string(d.name).c_str(),
            json_string(class_name(d.properties)).c_str(), json_string(d.driver).c_str(),
            d.usable ? "true" : "false", json_string(d.refusal).c_str());
        bool first = true;
        for (const char* name : feature_names(d.properties.features)) {
            std::printf("%s%s", first ? "" : ", ", json_string(name).c_str());
            first = false;
        }
        std::printf("]");
        if (const DriverCheck& check = devices.checks[i]; check.done) {
            std::printf(", \"check\": {\"problems\": %u, \"seconds\": %.3f, \"off\": [", check.problems,
                        check.seconds);
            for (size_t n = 0; n < check.off.size(); ++n)
                std::printf("%s%s", n ? ", " : "", json_string(check.off[n]).c_str());
            std::printf("], \"error\": %s}", json_string(check.error).c_str());
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
    const Devices devices = find_devices(a.has("--check"));
    if (a.has("--json"))
        print_json(devices);
    else
        print_devices(stdout, devices);
    return devices.all_right() ? 0 : 1;
}

void print_devices_help() {
    std::printf(
        "usage: fovea devices [--check] [--json]\n\n"
        "Backends and devices, what each can do, which is the default and why.\n\n");
    print_options(kDevicesOptions);
}

}  // namespace

int devices_command(Words words) { return run_command(words, kDevicesOptions, print_devices_help, devices); }

}  // namespace fovea::app

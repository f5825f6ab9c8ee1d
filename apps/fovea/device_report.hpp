#pragma once
// The report about the devices of this machine, for `fovea devices` and `fovea doctor`.
#include <fovea/runtime.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace fovea::app {

// The result of a check of a Vulkan driver.
struct DriverCheck {
    bool done = false;  // not on the CPU, and not on a device that cannot be used
    uint32_t problems = 0;
    double seconds = 0;
    std::vector<std::string> off;  // a line for each kernel that is off
    std::string error;             // why the device could not be checked
};

// The devices in the order of DeviceInfo::number, a check for each, and which of them is the default.
struct Devices {
    std::vector<DeviceInfo> list;
    std::vector<DriverCheck> checks;
    int default_number = -1;  // -1: none can be used
    std::string reason;       // why it is the default, or why there is none

    bool all_right() const;  // no check found a fault
};

// Without `check` no check is done.
Devices find_devices(bool check);
const char* class_name(const FoveaDeviceProperties& properties);
std::vector<const char*> feature_names(uint32_t features);
void print_devices(std::FILE* out, const Devices& devices);

}  // namespace fovea::app

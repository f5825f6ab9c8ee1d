// Which device a program gets that asked for none by number. A pure function of the list.
#pragma once

#include <fovea/runtime.hpp>

#include <span>

namespace fovea::runtime {

struct DeviceChoice {
    uint32_t number = 0;  // DeviceInfo::number
    std::string reason;
};

// Chooses one of `devices`, as returned by list_devices. `vulkan_note` is the reason if there is no Vulkan
// device.
Result<DeviceChoice> choose_device(std::span<const DeviceInfo> devices, const std::string& vulkan_note,
                                   const EngineOptions& options);

}  // namespace fovea::runtime

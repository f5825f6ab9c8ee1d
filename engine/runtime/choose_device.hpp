// Which device a program gets that asked for none by number. A pure function of the list.
#pragma once

#include <fovea/runtime.hpp>

#include <span>

namespace fovea::runtime {

struct DeviceChoice {
    uint32_t number = 0;  // DeviceInfo::number
    std::string reason;
};

// `devices` as from list_devices; `vulkan_note` says why there is no Vulkan device, if so.
Result<DeviceChoice> choose_device(std::span<const DeviceInfo> devices, const std::string& vulkan_note,
                                   const EngineOptions& options);

}  // namespace fovea::runtime

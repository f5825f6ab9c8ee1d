// In place of the vulkan_* files where this build found no volk or no VMA.
#include "runtime/backend.hpp"

namespace fovea::runtime {

std::vector<DeviceInfo> list_vulkan_devices(Detail, const std::string&, std::string& note) {
    note = "this build has no Vulkan backend";
    return {};
}

Result<std::unique_ptr<Backend>> open_vulkan_backend(uint32_t, const EngineOptions&) {
    return Error{FOVEA_UNSUPPORTED, "backend", "this build has no Vulkan backend"};
}

}  // namespace fovea::runtime

#include "runtime/backend.hpp"

namespace fovea::runtime {
namespace {

bool is_software(const DeviceInfo& d) { return d.properties.device_class == FOVEA_CLASS_CPU; }

// Higher is better; 0: not to be taken.
int rank(const DeviceInfo& d) {
    if (!d.usable || d.properties.backend != FOVEA_BACKEND_VULKAN) return 0;
    switch (d.properties.device_class) {
        case FOVEA_CLASS_DISCRETE:
            return 4;
        case FOVEA_CLASS_INTEGRATED:
            return 3;
        case FOVEA_CLASS_VIRTUAL:
            return 2;
        case FOVEA_CLASS_CPU:
            return 1;
    }
    return 0;
}

const DeviceInfo* best_vulkan(std::span<const DeviceInfo> devices) {
    const DeviceInfo* best = nullptr;
    for (const DeviceInfo& d : devices) {
        if (rank(d) > (best ? rank(*best) : 0)) best = &d;
    }
    return best;
}

const char* class_word(const DeviceInfo& d) {
    switch (d.properties.device_class) {
        case FOVEA_CLASS_DISCRETE:
            return "a discrete GPU";
        case FOVEA_CLASS_INTEGRATED:
            return "an integrated GPU";
        case FOVEA_CLASS_VIRTUAL:
            return "a virtual GPU";
        case FOVEA_CLASS_CPU:
            break;
    }
    return "a software driver";
}

// Describes why Vulkan is not available: the loader's error, or each device's.
std::string why_no_vulkan(std::span<const DeviceInfo> devices, const std::string& vulkan_note) {
    if (!vulkan_note.empty()) return vulkan_note;
    std::string text = "no usable Vulkan device";
    for (const DeviceInfo& d : devices) {
        if (d.properties.backend == FOVEA_BACKEND_VULKAN && !d.usable)
            text += "; " + d.name + ": " + d.refusal;
    }
    return text;
}

std::string lower(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

// A device that was asked for must be usable, and by the backend that was asked for.
Result<DeviceChoice> take(const DeviceInfo& device, const EngineOptions& options, const char* how) {
    const bool is_vulkan = device.properties.backend == FOVEA_BACKEND_VULKAN;
    const bool wants_cpu =
        options.backend == BackendChoice::cpu || options.backend == BackendChoice::reference;
    if (is_vulkan ? wants_cpu : options.backend == BackendChoice::vulkan)
        return Error{FOVEA_INVALID_ARGUMENT, "device",
                     "device " + std::to_string(device.number) + " is " + device.name +
                         ", which the backend " + (is_vulkan ? "cpu" : "vulkan") +
                         " cannot use; choose another device, or leave the backend out"};
    if (!device.usable) return Error{FOVEA_UNSUPPORTED, "device", device.refusal};
    return DeviceChoice{device.number, how};
}

Result<DeviceChoice> by_number(std::span<const DeviceInfo> devices, const std::string& vulkan_note,
                               const EngineOptions& options) {
    for (const DeviceInfo& d : devices) {
        if (int64_t{d.number} == options.device) return take(d, options, "asked for by number");
    }
    return Error{FOVEA_INVALID_ARGUMENT, "device",
                 "device is " + std::to_string(options.device) + "; this machine has " +
                     (devices.size() == 1 ? "only device 0, the CPU"
                                          : "devices 0 to " + std::to_string(devices.size() - 1)) +
                     (vulkan_note.empty() ? "" : " (" + vulkan_note + ")")};
}

Result<DeviceChoice> by_name(std::span<const DeviceInfo> devices, const EngineOptions& options) {
    const DeviceInfo* found = nullptr;
    std::string names;
    for (const DeviceInfo& d : devices) {
        names += (names.empty() ? "" : ", ") + d.name;
        if (lower(d.name).find(lower(options.device_name)) == std::string::npos) continue;
        if (found)
            return Error{FOVEA_INVALID_ARGUMENT, "device",
                         "device '" + options.device_name + "' fits both " + found->name + " and " + d.name +
                             "; give more of the name, or the number"};
        found = &d;
    }
    if (!found)
        return Error{FOVEA_INVALID_ARGUMENT, "device",
                     "no device is called '" + options.device_name + "'; there are " + names};
    return take(*found, options, "asked for by name");
}

}  // namespace

Result<DeviceChoice> choose_device(std::span<const DeviceInfo> devices, const std::string& vulkan_note,
                                   const EngineOptions& options) {
    if (options.device >= 0) return by_number(devices, vulkan_note, options);
    if (!options.device_name.empty()) return by_name(devices, options);
    if (options.backend == BackendChoice::cpu) return DeviceChoice{0, "asked for by name"};
    if (options.backend == BackendChoice::reference)
        return DeviceChoice{0, "asked for by name; loops in float64"};
    const DeviceInfo* best = best_vulkan(devices);
    if (options.backend == BackendChoice::vulkan) {
        if (!best) return Error{FOVEA_UNSUPPORTED, "backend", why_no_vulkan(devices, vulkan_note)};
        return DeviceChoice{best->number,
                            std::string("asked for Vulkan; the best device is ") + class_word(*best)};
    }
    if (best && !is_software(*best)) return DeviceChoice{best->number, class_word(*best)};
    if (best)
        return DeviceChoice{0,
                            "no hardware Vulkan device; " + best->name +
                                " is a software driver, slower than the CPU kernels, and taken only by name"};
    return DeviceChoice{0, why_no_vulkan(devices, vulkan_note)};
}

}  // namespace fovea::runtime

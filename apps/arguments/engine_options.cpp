#include "engine_options.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace fovea::app {
namespace {

constexpr OptionSpec kEngineOptions[] = {
    {"--backend", "auto|cpu|vulkan|reference", "auto: Vulkan on a hardware device, else the CPU"},
    {"--device", "N|NAME", "a device by its number in `fovea devices`, or by a part of its name"},
    {"--threads", "N", "CPU threads; default one for each processor"},
    {"--tuning", "FILE", "what `./dev bench tune` measured on this Vulkan device"},
};

}  // namespace

std::string driver_check_folder() {
    for (const auto& [variable, below] :
         {std::pair{"XDG_CACHE_HOME", ""}, {"HOME", ".cache"}, {"LOCALAPPDATA", ""}}) {
        const char* folder = std::getenv(variable);
        if (folder && *folder) return (std::filesystem::path(folder) / below / "fovea").string();
    }
    return {};
}

std::span<const OptionSpec> engine_option_specs() { return kEngineOptions; }

Result<EngineOptions> engine_options(const Arguments& a) {
    EngineOptions options;
    const std::string_view backend = a.text("--backend");
    if (backend == "cpu")
        options.backend = BackendChoice::cpu;
    else if (backend == "vulkan")
        options.backend = BackendChoice::vulkan;
    else if (backend == "reference")
        options.backend = BackendChoice::reference;
    else if (!backend.empty() && backend != "auto")
        return bad("--backend", "'" + std::string(backend) + "' is not auto, cpu, vulkan or reference");
    const std::string_view device = a.text("--device");
    if (device.find_first_not_of("0123456789") != std::string_view::npos) {
        options.device_name = device;
    } else if (!device.empty()) {
        const Result<int64_t> number = a.integer("--device", -1);
        if (!number) return number.error();
        options.device = int(std::min<int64_t>(*number, INT32_MAX));
    }
    const Result<uint64_t> threads = a.unsigned_integer("--threads", 0);
    if (!threads) return threads.error();
    if (*threads > 4096)
        return bad("--threads", "--threads is " + std::to_string(*threads) + "; it must be at most 4096");
    options.cpu_threads = uint32_t(*threads);
    options.tuning_file = a.text("--tuning");
    options.check_folder = driver_check_folder();
    // The layer checks its shaders' accesses against the buffers of a later descriptor push to the same
    // command buffer (seen with layer 1.4.309). It handles sets of a pool correctly.
    options.push_descriptors = !std::getenv("VK_KHRONOS_VALIDATION_GPUAV_ENABLE");
    return options;
}

}  // namespace fovea::app

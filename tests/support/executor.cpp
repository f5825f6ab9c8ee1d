#include "support/executor.hpp"

#include "support/cpu_executor.hpp"
#include "support/vulkan_executor.hpp"

#include <utility>

namespace fovea::test {
namespace {

constexpr std::pair<std::string_view, FoveaKernel> kKernels[] = {
    {"auto", FOVEA_KERNEL_AUTO},
    {"staged", FOVEA_KERNEL_STAGED},
    {"flash", FOVEA_KERNEL_FLASH},
    {"flash_coopmat", FOVEA_KERNEL_FLASH_COOPMAT},
    {"flash_coopmat2", FOVEA_KERNEL_FLASH_COOPMAT2},
    {"decode", FOVEA_KERNEL_DECODE},
    {"plain", FOVEA_KERNEL_PLAIN},
    {"reference", FOVEA_KERNEL_REFERENCE},
};

bool kernel_of(std::string_view name, FoveaKernel& kernel) {
    for (const auto& [text, value] : kKernels) {
        if (text != name) continue;
        kernel = value;
        return true;
    }
    return false;
}

bool target_of(std::string_view name, uint32_t& target) {
    for (uint32_t id = 1; id < 32; ++id) {
        if (name != foveaCpuTargetName(id)) continue;
        target = id;
        return true;
    }
    return false;
}

}  // namespace

std::unique_ptr<Executor> make_executor(std::string_view name, std::string& error) {
    if (name == "reference" || name == "plain") {
        const FoveaKernel kernel = name == "plain" ? FOVEA_KERNEL_PLAIN : FOVEA_KERNEL_REFERENCE;
        return make_cpu_executor(std::string(name), CpuChoice{kernel, false, 0});
    }
    std::string_view rest = name, target, kernel;
    if (const size_t at = rest.find('@'); at != rest.npos)
        target = rest.substr(at + 1), rest = rest.substr(0, at);
    if (const size_t at = rest.find(':'); at != rest.npos)
        kernel = rest.substr(at + 1), rest = rest.substr(0, at);
    CpuChoice choice;
    if (!kernel.empty() && !kernel_of(kernel, choice.kernel)) {
        error = "no kernel is called " + std::string(kernel);
        return nullptr;
    }
    if (rest == "vulkan") return make_vulkan_executor(std::string(name), choice.kernel, target, error);
    if (!target.empty() && !(choice.force_target = target_of(target, choice.target))) {
        error = "no instruction set is called " + std::string(target);
        return nullptr;
    }
    if (rest == "cpu") return make_cpu_executor(std::string(name), choice);
    error = "no executor is called " + std::string(name);
    return nullptr;
}

}  // namespace fovea::test

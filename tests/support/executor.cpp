#include "support/executor.hpp"

#include "support/cpu_executor.hpp"
#include "support/vulkan_executor.hpp"
#include "support/webgpu_executor.hpp"

#include <fovea/runtime.hpp>

namespace fovea::test {
namespace {

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
    if (!kernel.empty()) {
        const Result<FoveaKernel> found = kernel_from_name(kernel);
        if (!found) {
            error = found.error().text;
            return nullptr;
        }
        choice.kernel = *found;
    }
    if (rest == "webgpu" || rest == "dawn")
        return make_webgpu_executor(std::string(name), rest == "dawn", choice.kernel, target, error);
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

#pragma once

#include "support/executor.hpp"

#include <fovea/runtime.hpp>

namespace fovea::test {

// The first Vulkan device that the loader shows, without the runtime's check: the tests compare its results
// themselves. A simulated GPU computes nothing, so the check would switch every kernel off.
inline EngineOptions unchecked_vulkan(bool validation) {
    EngineOptions options;
    options.backend = BackendChoice::vulkan;
    options.driver_checks = DriverChecks::none;
    options.validation = validation;
    return options;
}

// Runs on the first Vulkan device that the loader shows, with the validation layers on: a message breaks the
// case. With `as` "discrete" plans are made for a discrete GPU, so that a software driver runs the kernels of
// one. Null with the reason in `error` if there is no device.
std::unique_ptr<Executor> make_vulkan_executor(std::string name, FoveaKernel kernel, std::string_view as,
                                               std::string& error);

}  // namespace fovea::test

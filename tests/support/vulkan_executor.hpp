#pragma once

#include "support/executor.hpp"

namespace fovea::test {

// Runs on the first Vulkan device that the loader shows, with the validation layers on: a message breaks the
// case. Null with the reason in `error` where there is no device.
std::unique_ptr<Executor> make_vulkan_executor(std::string name, FoveaKernel kernel, std::string& error);

}  // namespace fovea::test

#pragma once

#include "support/executor.hpp"

namespace fovea::test {

// Runs on the first Vulkan device that the loader shows, with the validation layers on: a message breaks the
// case. With `as` "discrete" it is planned for as a discrete GPU, whatever it is, so that a software driver
// runs the kernels of one. Null with the reason in `error` where there is no device.
std::unique_ptr<Executor> make_vulkan_executor(std::string name, FoveaKernel kernel, std::string_view as,
                                               std::string& error);

}  // namespace fovea::test

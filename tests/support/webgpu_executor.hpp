#pragma once

#include "support/executor.hpp"

namespace fovea::test {

// Runs on a WebGPU in software: plans are made here, with the facts of its adapter, and played by the page's
// own script (web/tests/gpu_player.mjs, which node runs), in Chromium or, `dawn`, in node by npm's package of
// Dawn. `buffers`: storage buffers a kernel that the device is asked for; empty: as many as it has. Null with
// the reason in `error` where node, Chromium, the package or an adapter is missing.
std::unique_ptr<Executor> make_webgpu_executor(std::string name, bool dawn, FoveaKernel kernel,
                                               std::string_view buffers, std::string& error);

}  // namespace fovea::test

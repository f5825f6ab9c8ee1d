#pragma once

#include "support/executor.hpp"

namespace fovea::test {

// Runs on a browser's WebGPU, in software: plans are made here, with the facts of its adapter, and played by
// the page's own script in Chromium (web/tests/gpu_player.mjs, which node runs). `buffers`: storage buffers a
// kernel that the device is asked for; empty: as many as it has. Null with the reason in `error` where node,
// Chromium or an adapter is missing.
std::unique_ptr<Executor> make_webgpu_executor(std::string name, FoveaKernel kernel, std::string_view buffers,
                                               std::string& error);

}  // namespace fovea::test

// A plan of the CPU backend run once, with a workspace of its own.
#pragma once

#include <fovea/fovea.hpp>

namespace fovea::visualizer {

// `bindings` has FOVEA_BIND_COUNT entries; `parallel` null: on this thread.
Result<void> run_on_host(const Plan& plan, const FoveaHostBuffer* bindings,
                         const FoveaParallel* parallel = nullptr);

}  // namespace fovea::visualizer

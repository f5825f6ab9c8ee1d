// Runs a plan of the CPU backend once on the calling thread, with a workspace of its own.
#pragma once

#include <fovea/fovea.hpp>

namespace fovea::visualizer {

// `bindings` has FOVEA_BIND_COUNT entries.
inline Result<void> run_on_host(const Plan& plan, const FoveaHostBuffer* bindings) {
    Workspace workspace;
    return fovea::run_on_host(plan, bindings, workspace);
}

}  // namespace fovea::visualizer

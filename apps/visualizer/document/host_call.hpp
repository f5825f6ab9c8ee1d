// A plan of the CPU backend run once, with a workspace of its own.
#pragma once

#include <fovea/fovea.hpp>

#include <atomic>

namespace fovea::visualizer {

// `bindings` has FOVEA_BIND_COUNT entries; `parallel` null: on this thread. Given up between two slices, some
// hundredths of a second of work, once `cancelled` is true: then it is an error, and nobody's fault.
Result<void> run_on_host(const Plan& plan, const FoveaHostBuffer* bindings,
                         const FoveaParallel* parallel = nullptr,
                         const std::atomic<bool>* cancelled = nullptr);

}  // namespace fovea::visualizer

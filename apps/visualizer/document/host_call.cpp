#include "document/host_call.hpp"

namespace fovea::visualizer {

Result<void> run_on_host(const Plan& plan, const FoveaHostBuffer* bindings, const FoveaParallel* parallel,
                         const std::atomic<bool>* cancelled) {
    Workspace workspace;
    const uint64_t slices = plan.info().slice_count;
    for (uint64_t slice = 0; slice < slices; ++slice) {
        if (cancelled && *cancelled) return Error{FOVEA_UNSUPPORTED, "run", "given up"};
        if (Result<void> r = fovea::run_on_host(plan, bindings, workspace, parallel, slice, 1); !r) return r;
    }
    return {};
}

}  // namespace fovea::visualizer

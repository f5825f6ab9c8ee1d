#include "model/host_call.hpp"

#include <memory>
#include <vector>

namespace fovea::visualizer {

Result<void> run_on_host(const Plan& plan, const FoveaHostBuffer* bindings, const FoveaParallel* parallel,
                         const std::atomic<bool>* cancelled) {
    const FoveaPlanInfo info = plan.info();
    std::vector<std::byte> workspace(info.workspace_bytes + info.workspace_alignment);
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.bindings = bindings;
    run.binding_count = FOVEA_BIND_COUNT;
    run.parallel = parallel;
    void* aligned = workspace.data();
    size_t room = workspace.size();
    if (info.workspace_bytes)
        run.workspace = {std::align(info.workspace_alignment, info.workspace_bytes, aligned, room),
                         info.workspace_bytes};
    run.slice_count = 1;
    for (; run.first_slice < info.slice_count; ++run.first_slice) {
        if (cancelled && *cancelled) return Error{FOVEA_UNSUPPORTED, "run", "given up"};
        if (Result<void> r = plan.run_cpu(run); !r) return r;
    }
    return {};
}

}  // namespace fovea::visualizer

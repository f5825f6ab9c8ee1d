#include "model/host_call.hpp"

#include <memory>
#include <vector>

namespace fovea::visualizer {

Result<void> run_on_host(const Plan& plan, const FoveaHostBuffer* bindings, const FoveaParallel* parallel) {
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
    return plan.run_cpu(run);
}

}  // namespace fovea::visualizer

#include "cpu/run.hpp"

#include "cpu/plain.hpp"
#include "plan/plan.hpp"
#include "reference/reference.hpp"

namespace fovea {

void run_cpu(const FoveaPlan_T& plan, const CpuRun& run) {
    const CpuPlan& cpu = plan.cpu;
    const reference::RowRun rows{run.bindings,
                                 run.workspace,
                                 run.parallel,
                                 run.slice_begin * cpu.rows_per_slice,
                                 std::min(run.slice_end * cpu.rows_per_slice, cpu.rows),
                                 cpu.rows_per_task};
    switch (plan.operation) {
        case Operation::attention:
            return plan.info.kernel == FOVEA_KERNEL_REFERENCE ? reference::attention(plan.problem, rows)
                                                              : plain::attention(plan.problem, rows);
        case Operation::rope:
            return plain::rope(plan.rope, rows);
        case Operation::linear:
            return plain::linear(plan.linear, rows);
        case Operation::append:
            return plain::append(plan.append, rows);
    }
}

}  // namespace fovea

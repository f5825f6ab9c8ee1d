// Which kernel runs an attention call on the CPU.
#include "plan/kernel_choice.hpp"

#include "cpu/target.hpp"
#include "plan/cpu/plan.hpp"

#include <algorithm>

namespace fovea {
namespace {

const char* only_if_asked(const FoveaPlan_T&) {
    return "a reference implementation, which runs only when it is asked for";
}

const char* matrix_obstacle(const FoveaPlan_T& plan) {
    if (wants_matrix(plan.problem)) return "it does not support matrix outputs, and one is requested";
    if (wants(plan.problem, FOVEA_OUTPUT_ROW_STATS))
        return "it does not support row statistics, and they are requested";
    return nullptr;
}

// Query rows that see the same keys.
uint64_t rows_of_group(const Problem& p) { return uint64_t(p.len_q) * p.group; }

const char* decode_obstacle(const FoveaPlan_T& plan) {
    // A target that this CPU cannot run has no kernels here, and its plan is the same everywhere.
    if (plan.cpu.kernels.flash && !plan.cpu.kernels.decode) return "this build does not contain it";
    if (const char* reason = matrix_obstacle(plan)) return reason;
    const bool fits = rows_of_group(plan.problem) <= cpu::target_shape(plan.cpu.target).panel();
    return fits ? nullptr : "a group has more queries than its one panel holds";
}

// Measured on AVX-512, AVX2, SSE4 and the scalar target, heads of 2 to 128 and 6 to 8192 keys: up to how many
// rows of a group decode is faster. Flash computes a whole vector of rows at least; decode needs whole
// vectors of a head's elements, and adds up lanes for each product.
uint64_t most_decode_rows(uint32_t lanes, uint32_t dim) {
    if (dim < 16) return 0;
    if (lanes == 1) return 1;
    if (lanes == 4) return dim < 32 ? 1 : 4;
    return dim < 32 ? 4 : 12;
}
constexpr int64_t kMinDecodeKeys = 16;

const char* decode_drawback(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const uint64_t most =
        most_decode_rows(cpu::target_shape(plan.cpu.target).lanes, std::min(p.dim_qk, p.dim_v));
    if (most == 0) return "it is made for wider heads";
    if (rows_of_group(p) > most) return "it is made for fewer queries in a group";
    if (p.len_kv < kMinDecodeKeys) return "it is made for more keys";
    return nullptr;
}

const char* staged_drawback(const FoveaPlan_T& plan) {
    return matrix_obstacle(plan) ? nullptr : "no matrix output is requested";
}

// The best first. Plain and reference run everything.
constexpr Candidate kAttentionCandidates[] = {
    {FOVEA_KERNEL_DECODE, decode_obstacle, decode_drawback, cut_cpu_decode,
     "few queries: the rows of a group share each load of K and V, and the keys are split"},
    {FOVEA_KERNEL_FLASH, matrix_obstacle, no_reason, cut_cpu_flash,
     "one pass with an online softmax in register tiles, memory linear in length"},
    {FOVEA_KERNEL_STAGED, no_reason, staged_drawback, cut_cpu_flash,
     "o in one pass with an online softmax, then the scores once more for the matrices or statistics"},
    {FOVEA_KERNEL_PLAIN, no_reason, only_if_asked, cut_cpu_rows, "float32 plain loops"},
    {FOVEA_KERNEL_REFERENCE, no_reason, only_if_asked, cut_cpu_rows, "float64 plain loops"},
};

}  // namespace

FoveaResult plan_cpu_attention(FoveaPlan_T& plan, FoveaDiag* diag) {
    return choose(kAttentionCandidates, plan.problem.kernel, "the CPU", plan, diag);
}

}  // namespace fovea

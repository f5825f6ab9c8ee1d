#include "plan/cpu_kernel_choice.hpp"

#include "problem/status.hpp"

#include <cstdio>

namespace fovea {
namespace {

struct Candidate {
    FoveaKernel kernel;
    const char* name;
    const char* (*obstacle)(const Problem& p);  // why it cannot or should not run this, or null
    const char* merit;
};

const char* none(const Problem&) { return nullptr; }
const char* only_by_name(const Problem&) { return "only by name"; }
const char* flash_obstacle(const Problem& p) {
    if (wants_matrix(p)) return "it never holds the matrices that are asked for";
    if (wants(p, FOVEA_OUTPUT_ROW_STATS)) return "it never holds the weights that row statistics are made of";
    return nullptr;
}

// The best first.
constexpr Candidate kCandidates[] = {
    {FOVEA_KERNEL_FLASH, "flash", flash_obstacle,
     "one pass with an online softmax in register tiles, memory linear in length"},
    {FOVEA_KERNEL_STAGED, "staged", none,
     "o in one pass with an online softmax, then the scores once more for the matrices or statistics"},
    {FOVEA_KERNEL_PLAIN, "plain", none, "float32 plain loops"},
    {FOVEA_KERNEL_REFERENCE, "reference", only_by_name, "float64 plain loops"},
};

}  // namespace

FoveaResult choose_cpu_kernel(FoveaPlan_T& plan, FoveaDiag* diag) {
    const FoveaKernel wanted = plan.problem.kernel;
    const Candidate* skipped = nullptr;
    for (const Candidate& candidate : kCandidates) {
        const bool named = candidate.kernel == wanted;
        if (wanted != FOVEA_KERNEL_AUTO && !named) continue;
        const char* obstacle = candidate.obstacle(plan.problem);
        if (obstacle && named && candidate.obstacle != only_by_name)
            return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %s cannot run this: %s", candidate.name,
                        obstacle);
        if (obstacle && !named) {
            if (!skipped) skipped = &candidate;
            continue;
        }
        plan.info.kernel = candidate.kernel;
        const char* by = named ? " (asked for by name)" : "";
        if (skipped)
            snprintf(plan.info.reason, sizeof plan.info.reason, "%s%s: %s; not %s: %s", candidate.name, by,
                     candidate.merit, skipped->name, skipped->obstacle(plan.problem));
        else
            snprintf(plan.info.reason, sizeof plan.info.reason, "%s%s: %s", candidate.name, by,
                     candidate.merit);
        return FOVEA_OK;
    }
    return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %d is not one of the CPU backend's", int(wanted));
}

}  // namespace fovea

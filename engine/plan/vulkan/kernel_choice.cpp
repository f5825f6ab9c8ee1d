#include "plan/vulkan/kernel_choice.hpp"

#include "plan/vulkan/coopmat.hpp"
#include "plan/vulkan/flash.hpp"
#include "plan/vulkan/staged.hpp"
#include "problem/status.hpp"

#include <cstdio>
#include <iterator>

namespace fovea {
namespace {

// A kernel of the Vulkan backend. `obstacle` says why it cannot run this problem, or returns null; `make`
// plans it and may find that a limit is too small for it.
struct Candidate {
    FoveaKernel kernel;
    const char* (*obstacle)(const FoveaPlan_T& plan);
    FoveaResult (*make)(FoveaPlan_T& plan, FoveaDiag* diag);
    const char* merit;
};

const char* no_obstacle(const FoveaPlan_T&) { return nullptr; }

// The best first.
constexpr Candidate kCandidates[] = {
    {FOVEA_KERNEL_FLASH_COOPMAT2, flash_coopmat2_obstacle, plan_flash_coopmat2,
     "one pass on flexible matrices, factors in float16, sums in float32"},
    {FOVEA_KERNEL_FLASH_COOPMAT, flash_coopmat_obstacle, plan_flash_coopmat,
     "one pass on the device's matrix units, factors in float16, sums in float32"},
    {FOVEA_KERNEL_FLASH, flash_obstacle, plan_flash,
     "one pass with an online softmax; memory does not grow with the lengths"},
    {FOVEA_KERNEL_STAGED, no_obstacle, plan_staged,
     "scores, softmax and weighted sum by turns; every intermediate can be had"},
};

// Whether AUTO may go on to the next kernel.
bool is_no_fit(FoveaResult result) {
    return result == FOVEA_UNSUPPORTED || result == FOVEA_LIMIT_EXCEEDED || result == FOVEA_SIZE_OVERFLOW;
}

void write_reason(FoveaPlanInfo& info, const Candidate& chosen, bool by_name, const Candidate* skipped,
                  const char* skipped_why) {
    info.kernel = chosen.kernel;
    const char* by = by_name ? " (asked for by name)" : "";
    if (skipped)
        snprintf(info.reason, sizeof info.reason, "%s%s: %s; not %s: %s", foveaKernelName(chosen.kernel), by,
                 chosen.merit, foveaKernelName(skipped->kernel), skipped_why);
    else
        snprintf(info.reason, sizeof info.reason, "%s%s: %s", foveaKernelName(chosen.kernel), by,
                 chosen.merit);
}

}  // namespace

FoveaResult plan_vulkan_kernel(FoveaPlan_T& plan, FoveaDiag* diag) {
    const FoveaKernel wanted = plan.problem.kernel;
    const bool by_name = wanted != FOVEA_KERNEL_AUTO;
    const Candidate* skipped = nullptr;
    char skipped_why[sizeof FoveaDiag::text] = "it is not one of this build's Vulkan kernels";
    for (const Candidate& candidate : kCandidates) {
        if (by_name && candidate.kernel != wanted) continue;
        FoveaDiag refusal{};
        refusal.struct_size = sizeof refusal;
        const char* why = candidate.obstacle(plan);
        if (!why) {
            const bool last = by_name || &candidate == std::end(kCandidates) - 1;
            const FoveaResult made = candidate.make(plan, last ? diag : &refusal);
            if (made == FOVEA_OK) {
                write_reason(plan.info, candidate, by_name, skipped, skipped_why);
                return FOVEA_OK;
            }
            if (last) return made;
            if (!is_no_fit(made)) return fail(diag, made, refusal.field, "%s", refusal.text);
            why = refusal.text;
        }
        // The last one skipped is the next best: its reason is what the caller wants to know.
        snprintf(skipped_why, sizeof skipped_why, "%s", why), skipped = &candidate;
    }
    return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %s cannot run this on Vulkan: %s",
                foveaKernelName(wanted), skipped_why);
}

}  // namespace fovea

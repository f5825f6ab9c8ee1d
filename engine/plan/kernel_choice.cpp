#include "plan/kernel_choice.hpp"

#include "plan/vulkan_flash.hpp"
#include "problem/status.hpp"

#include <cstdio>

namespace fovea {
namespace {

// A kernel of the Vulkan backend. `obstacle` says why it cannot run this plan, or returns null.
struct Candidate {
    FoveaKernel kernel;
    const char* (*obstacle)(const FoveaPlan_T& plan);
    const char* merit;
};

const char* name_of(FoveaKernel kernel) {
    switch (kernel) {
        case FOVEA_KERNEL_AUTO:
            return "auto";
        case FOVEA_KERNEL_STAGED:
            return "staged";
        case FOVEA_KERNEL_FLASH:
            return "flash";
        case FOVEA_KERNEL_FLASH_COOPMAT:
            return "flash_coopmat";
        case FOVEA_KERNEL_FLASH_COOPMAT2:
            return "flash_coopmat2";
        case FOVEA_KERNEL_DECODE:
            return "decode";
        case FOVEA_KERNEL_PLAIN:
            return "plain";
        case FOVEA_KERNEL_REFERENCE:
            return "reference";
    }
    return "unknown";
}

const char* no_obstacle(const FoveaPlan_T&) { return nullptr; }

// The best first.
constexpr Candidate kCandidates[] = {
    {FOVEA_KERNEL_FLASH, flash_obstacle,
     "one pass with an online softmax; memory does not grow with the lengths"},
    {FOVEA_KERNEL_STAGED, no_obstacle,
     "scores, softmax and weighted sum by turns; every intermediate can be had"},
};

}  // namespace

FoveaResult choose_vulkan_kernel(FoveaPlan_T& plan, FoveaDiag* diag) {
    const FoveaKernel wanted = plan.problem.kernel;
    const Candidate* chosen = nullptr;
    const char *refusal = nullptr, *skipped = nullptr, *skipped_why = nullptr;
    for (const Candidate& candidate : kCandidates) {
        if (wanted != FOVEA_KERNEL_AUTO && candidate.kernel != wanted) continue;
        const char* obstacle = candidate.obstacle(plan);
        if (!obstacle) {
            chosen = &candidate;
            break;
        }
        refusal = obstacle;
        if (!skipped) skipped = name_of(candidate.kernel), skipped_why = obstacle;
    }
    if (!chosen)
        return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %s cannot run this on Vulkan: %s",
                    name_of(wanted), refusal ? refusal : "it is not one of this build's Vulkan kernels");
    plan.info.kernel = chosen->kernel;
    const char* by = wanted == FOVEA_KERNEL_AUTO ? "" : " (asked for by name)";
    if (skipped)
        snprintf(plan.info.reason, sizeof plan.info.reason, "%s%s: %s; not %s: %s", name_of(chosen->kernel),
                 by, chosen->merit, skipped, skipped_why);
    else
        snprintf(plan.info.reason, sizeof plan.info.reason, "%s%s: %s", name_of(chosen->kernel), by,
                 chosen->merit);
    return FOVEA_OK;
}

}  // namespace fovea

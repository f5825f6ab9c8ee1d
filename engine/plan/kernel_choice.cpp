#include "plan/kernel_choice.hpp"

#include "problem/status.hpp"

#include <cstdio>

namespace fovea {
namespace {

// True if AUTO may try the next kernel, because the failure is a limit of this one.
bool is_no_fit(FoveaResult result) { return result == FOVEA_UNSUPPORTED || result == FOVEA_LIMIT_EXCEEDED; }

struct PassedOver {
    const Candidate* candidate = nullptr;
    char why[sizeof FoveaDiag::text] = "";

    void note(const Candidate& c, const char* reason) {
        candidate = &c;
        snprintf(why, sizeof why, "%s", reason);
    }
};

const char* name_of(const Candidate& c) {
    return c.kernel == FOVEA_KERNEL_AUTO ? "linear" : foveaKernelName(c.kernel);
}

void write_reason(FoveaPlanInfo& info, const Candidate& chosen, bool by_name, const PassedOver& other) {
    const char* by = by_name ? " (asked for by name)" : "";
    if (other.candidate)
        snprintf(info.reason, sizeof info.reason, "%s%s: %s; not %s: %s", name_of(chosen), by, chosen.merit,
                 name_of(*other.candidate), other.why);
    else
        snprintf(info.reason, sizeof info.reason, "%s%s: %s", name_of(chosen), by, chosen.merit);
}

}  // namespace

FoveaResult choose(const Candidate* table, size_t count, FoveaKernel wanted, const char* backend,
                   FoveaPlan_T& plan, FoveaDiag* diag) {
    const bool by_name = wanted != FOVEA_KERNEL_AUTO;
    const FoveaPlan_T before = plan;  // a kernel that fails must leave the plan unchanged
    PassedOver passed;
    FoveaDiag refusal{};
    FoveaResult refused = FOVEA_OK;
    for (const Candidate* c = table; c < table + count; ++c) {
        if (by_name && c->kernel != wanted) continue;
        const char* against = c->obstacle(plan);
        if (!against && !by_name) against = c->drawback(plan);
        if (!against) {
            plan.info.kernel = c->kernel;
            refusal = {};
            refusal.struct_size = sizeof refusal;
            refused = c->make(plan, &refusal);
            if (refused == FOVEA_OK) {
                write_reason(plan.info, *c, by_name, passed);
                return FOVEA_OK;
            }
            plan = before;
            if (!is_no_fit(refused)) break;
            against = refusal.text;
        }
        passed.note(*c, against);
    }
    if (refused != FOVEA_OK) return fail(diag, refused, refusal.field, "%s", refusal.text);
    if (passed.candidate)
        return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %s cannot run this call on %s: %s",
                    foveaKernelName(wanted), backend, passed.why);
    char known[128] = "auto";
    for (size_t n = 0, length = 4; n < count && length < sizeof known; ++n) {
        const int written = snprintf(known + length, sizeof known - length, "%s%s",
                                     n + 1 < count ? ", " : " and ", foveaKernelName(table[n].kernel));
        if (written > 0) length += size_t(written);
    }
    return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %s is not available on %s, which has %s",
                foveaKernelName(wanted), backend, known);
}

}  // namespace fovea

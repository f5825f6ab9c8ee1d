// How a kernel is chosen, on every backend alike: a table of candidates, the best first, and one rule.
#pragma once

#include "plan/plan.hpp"

#include <cstddef>

namespace fovea {

// Each function that gives a reason returns null where it has none.
struct Candidate {
    FoveaKernel kernel;  // AUTO: one without a name, linear's for any number of rows
    const char* (*obstacle)(const FoveaPlan_T& plan);  // why it cannot run this call
    const char* (*drawback)(const FoveaPlan_T& plan);  // why AUTO passes it over although it could
    // Plans the call with it: fills the backend's part of the plan, workspace, slices and costs. It may find
    // that a limit is too small for it.
    FoveaResult (*make)(FoveaPlan_T& plan, FoveaDiag* diag);
    const char* merit;
};

inline const char* no_reason(const FoveaPlan_T&) { return nullptr; }

// Plans plan's call with the kernel `wanted` or, with AUTO, with the first candidate that has no obstacle and
// whose `make` succeeds; sets plan.info.kernel and plan.info.reason. The reason's "not X: why" is about the
// last candidate before that, which is the next better one. On failure the error explains why the last
// candidate could not run.
FoveaResult choose(const Candidate* table, size_t count, FoveaKernel wanted, const char* backend,
                   FoveaPlan_T& plan, FoveaDiag* diag);

template <size_t count>
FoveaResult choose(const Candidate (&table)[count], FoveaKernel wanted, const char* backend,
                   FoveaPlan_T& plan, FoveaDiag* diag) {
    return choose(table, count, wanted, backend, plan, diag);
}

}  // namespace fovea

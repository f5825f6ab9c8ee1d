// One case on one executor, judged: inputs poisoned, outputs guarded, results against the oracle.
#pragma once

#include "support/executor.hpp"
#include "support/verdict.hpp"

#include <functional>

namespace fovea::test {

struct CaseReport {
    enum class Kind { passed, refused, failed } kind = Kind::failed;
    std::string text;             // why refused, or what was wrong, with the replay command
    FoveaResult code = FOVEA_OK;  // code of the error
    double worst_share = 0;
    FoveaKernel kernel = FOVEA_KERNEL_AUTO;
};

// Everything about a case that does not depend on the executor.
struct PreparedCase {
    Case c;
    Tensors clean, poisoned;  // the same numbers, with zeros or poison in the unused slots
    Oracle oracle;
};
Result<PreparedCase> prepare(Case c);

// Runs the poisoned inputs whole or in shuffled slices, as the case says, and judges. A share of the cases,
// chosen by the seed, runs on the clean inputs too and must give the same bits.
CaseReport run_case(Executor& executor, const PreparedCase& prepared);

// Runs a case: outputs of its own description, with slices of at most `budget`.
using RunInputs = std::function<Outcome(const Tensors& inputs, const ExecuteOptions& options, double budget)>;
// The same where something else than the one call gives the results; `replay` is the command to run it again.
CaseReport run_case_by(const PreparedCase& prepared, const RunInputs& run, const std::string& replay);

// The first byte in which two runs differ, as "O byte 12"; empty if there is none.
std::string first_difference(const Tensors& a, const Tensors& b);

}  // namespace fovea::test

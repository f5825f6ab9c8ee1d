// Shared by the programs of seeded cases for replaying one by hand: --case SEED --on EXECUTOR.
#pragma once

#include "support/run_case.hpp"

namespace fovea::test {

// Returns the word after `name` on the command line, or null.
const char* option(int argc, char** argv, const char* name);

// The executor that --on names, `plain` without it. Null if there is none of that name, which standard error
// says.
std::unique_ptr<Executor> executor_asked_for(int argc, char** argv);

// Prints the case and what became of it. Returns the program's exit status.
int print_report(const std::string& description, Executor& executor, const CaseReport& report);

}  // namespace fovea::test

// The executors that the tests of this program run on: every one of the CPU, or the one named by --on.
#pragma once

#include "support/run_case.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace fovea::test {

// Names of executors; set once by main.
std::vector<std::string>& names_under_test();

// True if every instruction set draws as many random calls as the widest; set once by main (--whole).
bool& draws_whole_sweeps();

// Returns how many of `count` random calls an executor draws: the widest instruction set draws all of them,
// and so does the only executor of a test.
uint64_t share_of_draws(const Executor& executor, uint64_t count);

// The float64 and float32 loops, and the CPU's own choice of kernel on every instruction set that this build
// has and this CPU runs; the others are printed as skipped.
std::vector<std::string> cpu_names();

// Calls body for each executor under test. Reports a name that means nothing as a failure.
void on_each_executor(const std::function<void(Executor&)>& body);

// Ends the devices before the process does: drivers do not survive their own static data.
void close_executors();

// Runs and judges a case on each executor under test. An error is a failure, unless it is float16 storage
// that the device lacks: that is printed as a skip.
void expect_right(Case c);

// True for the one error that is a property of some devices.
bool is_lack_of_float16(FoveaResult code, const std::string& text);

// Runs `desc` and expects it to run, with the same exception; ask Outcome::ran.
Outcome run_or_fail(Executor& executor, const FoveaAttentionDesc& desc, const Tensors& inputs,
                    const ExecuteOptions& options = {});

}  // namespace fovea::test

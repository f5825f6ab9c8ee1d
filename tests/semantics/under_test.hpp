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

// Calls body for each executor under test. Reports a name that means nothing as a failure.
void on_each_executor(const std::function<void(Executor&)>& body);

// Runs and judges a case on each executor under test; a refusal is a failure.
void expect_right(Case c);

// Runs `desc` and expects it to run.
Outcome run_or_fail(Executor& executor, const FoveaAttentionDesc& desc, const Tensors& inputs,
                    const ExecuteOptions& options = {});

}  // namespace fovea::test

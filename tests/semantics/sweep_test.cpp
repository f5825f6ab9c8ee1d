// The differential sweep over every feature of fovea.h.
#include "semantics/sweep.hpp"

#include <gtest/gtest.h>

namespace fovea::test {
namespace {

SweepResult run_sweep(const char* name, const SweepOptions& options) {
    std::string error;
    const std::unique_ptr<Executor> executor = make_executor(name, error);
    EXPECT_NE(executor, nullptr) << error;
    if (!executor) return {};
    SweepResult result = sweep(*executor, options);
    printf("%s: %s", name, result.summary().c_str());
    EXPECT_TRUE(result.failures.empty());
    return result;
}

TEST(Sweep, reference_does_not_depend_on_poison_slices_or_workers) {
    SweepOptions options;
    options.count = 500;
    const SweepResult result = run_sweep("reference", options);
    EXPECT_EQ(result.passed, options.count);
}

TEST(Sweep, plain_float32_against_reference) {
    SweepOptions options;
    const SweepResult result = run_sweep("plain", options);
    EXPECT_EQ(result.passed, options.count);
    for (const std::string& pair : result.missing_pairs()) ADD_FAILURE() << "no case had " << pair;
}

}  // namespace
}  // namespace fovea::test

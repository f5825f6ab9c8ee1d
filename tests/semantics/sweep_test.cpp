// The differential sweep over every feature of fovea.h.
#include "semantics/sweep.hpp"
#include "semantics/under_test.hpp"

#include <cstdio>

namespace fovea::test {
namespace {

void print_summary(const Executor& executor, const SweepResult& result) {
    printf("%s: %s", executor.name().c_str(), result.summary().c_str());
    fflush(stdout);
}

TEST(Sweep, every_feature_against_the_reference) {
    on_each_executor([](Executor& executor) {
        SweepOptions options;
        options.limits.compressed = reads_compressed(executor.name());
        options.count = share_of_draws(executor, options.count);  // the widest meets every pair of features
        const SweepResult result = sweep(executor, options);
        print_summary(executor, result);
        EXPECT_TRUE(result.failures.empty());
        EXPECT_EQ(result.passed + result.refused, options.count);
        for (const auto& [reason, count] : result.refusals)
            EXPECT_TRUE(is_lack_of_float16(FOVEA_UNSUPPORTED, reason)) << count << " refused: " << reason;
        if (result.refused > 0 || options.count < 3000) return;
        for (const std::string& pair : result.missing_pairs()) ADD_FAILURE() << "no case had " << pair;
    });
}

}  // namespace
}  // namespace fovea::test

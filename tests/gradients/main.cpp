// Runs the tests, or with --case or --sweep a part of the space by hand:
//
//   fovea_test_gradients [--on EXECUTOR] [--gtest_...]
//   fovea_test_gradients --case SEED --on EXECUTOR
//   fovea_test_gradients --sweep SEED --on EXECUTOR [--count N]
#include "gradients/gradient_sweep.hpp"
#include "support/by_hand.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace fovea::test {
namespace {

int run_by_hand(int argc, char** argv) {
    const std::unique_ptr<Executor> executor = executor_asked_for(argc, argv);
    if (!executor) return 2;
    if (const char* text = option(argc, argv, "--case")) {
        const uint64_t seed = strtoull(text, nullptr, 0);
        const Result<GradientCase> g = prepare_gradients(seed);
        if (!g) return fprintf(stderr, "no oracle: %s\n", g.error().text.c_str()), 1;
        return print_report(describe_gradients(*g), *executor,
                            run_gradients(*executor, *g, gradient_replay(seed, executor->name())));
    }
    const char* count = option(argc, argv, "--count");
    const GradientSweep result =
        sweep_gradients(*executor, strtoull(option(argc, argv, "--sweep"), nullptr, 0),
                        count ? strtoull(count, nullptr, 0) : 1000);
    printf("%s: %s", executor->name().c_str(), result.summary().c_str());
    return result.failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace fovea::test

int main(int argc, char** argv) {
    using namespace fovea::test;
    if (option(argc, argv, "--case") || option(argc, argv, "--sweep")) return run_by_hand(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}

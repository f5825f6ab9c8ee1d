// Runs the tests, or with --case or --sweep a part of the space by hand:
//
//   fovea_test_semantics [--on EXECUTOR] [--whole] [--gtest_...]
//   fovea_test_semantics --case SEED --on EXECUTOR [--flops LIMIT] [--precision P-products]
//   fovea_test_semantics --sweep SEED --on EXECUTOR [--count N] [--seconds S] [--first N] [--flops LIMIT]
//                        [--precision P-products]    P: f16 or bf16
#include "semantics/sweep.hpp"
#include "semantics/under_test.hpp"
#include "support/by_hand.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace fovea::test {
namespace {

int run_one(Executor& executor, uint64_t seed, const SweepOptions& options) {
    Result<PreparedCase> prepared = prepare(generate_composed(options.of, seed, options.limits));
    if (!prepared) {
        printf("no oracle: %s\n", prepared.error().text.c_str());
        return 1;
    }
    return print_report(describe(prepared->c), executor, run_composed(executor, options.of, *prepared));
}

// One-pass kernels by name: a case that asks for what they never hold would be rejected and prove nothing.
bool refuses_matrices(const std::string& executor) {
    return executor.find(":flash") != executor.npos || executor.find(":decode") != executor.npos;
}

int run_by_hand(int argc, char** argv, const char* seed, bool whole_sweep) {
    const std::unique_ptr<Executor> executor = executor_asked_for(argc, argv);
    if (!executor) return 2;
    SweepOptions options;
    options.limits.results_only = refuses_matrices(executor->name());
    options.limits.compressed = reads_compressed(executor->name());
    options.limits.row_stats = has_row_stats(executor->name());
    if (const char* flops = option(argc, argv, "--flops")) options.limits.flops = strtod(flops, nullptr);
    if (const char* precision = option(argc, argv, "--precision")) {
        if (strcmp(precision, "f16-inputs") == 0)
            options.limits.precision = FOVEA_PRECISION_F16_INPUTS;
        else if (strcmp(precision, "bf16-inputs") == 0)
            options.limits.precision = FOVEA_PRECISION_BF16_INPUTS;
        else {
            fprintf(stderr, "--precision: '%s' is not f16-inputs or bf16-inputs\n", precision);
            return 2;
        }
    }
    if (const char* of = option(argc, argv, "--of"); of && !composition_from_name(of, options.of)) {
        fprintf(stderr, "--of: '%s' is not tail-masks or key-lists\n", of);
        return 2;
    }
    if (!whole_sweep) return run_one(*executor, strtoull(seed, nullptr, 0), options);
    options.seed = strtoull(seed, nullptr, 0);
    if (const char* count = option(argc, argv, "--count")) options.count = strtoull(count, nullptr, 0);
    if (const char* first = option(argc, argv, "--first")) options.first = strtoull(first, nullptr, 0);
    if (const char* seconds = option(argc, argv, "--seconds")) {
        options.seconds = strtod(seconds, nullptr);
        options.count = UINT64_MAX - options.first;
    }
    const SweepResult result = sweep(*executor, options);
    printf("%s: %s", executor->name().c_str(), result.summary().c_str());
    return result.failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace fovea::test

int main(int argc, char** argv) {
    using namespace fovea::test;
    if (const char* seed = option(argc, argv, "--case")) return run_by_hand(argc, argv, seed, false);
    if (const char* seed = option(argc, argv, "--sweep")) return run_by_hand(argc, argv, seed, true);
    const char* name = option(argc, argv, "--on");
    names_under_test() = name ? std::vector<std::string>{name} : cpu_names();
    draws_whole_sweeps() = std::find(argv, argv + argc, std::string_view("--whole")) != argv + argc;
    testing::InitGoogleTest(&argc, argv);
    const int result = RUN_ALL_TESTS();
    close_executors();
    return result;
}

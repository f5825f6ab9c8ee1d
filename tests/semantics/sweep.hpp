// Many cases on one executor: what failed, how many were rejected and why, and how often each feature was
// met.
#pragma once

#include "support/composed.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace fovea::test {

struct SweepOptions {
    uint64_t seed = 1, first = 0, count = 3000;
    double seconds = 0;         // > 0: stop after that long
    uint32_t max_failures = 5;  // stop after so many
    CaseLimits limits;
    Composition of = Composition::none;
};

struct SweepResult {
    uint64_t passed = 0, refused = 0;
    std::vector<std::string> failures;
    std::map<std::string, uint64_t> refusals;  // by reason
    std::map<FoveaKernel, uint64_t> kernels;
    std::map<FoveaDtype, uint64_t> key_types, value_types;  // counts of passed cases
    // Passed cases by level, and by pairs of levels of two features.
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> levels;
    std::map<std::array<uint32_t, 4>, uint64_t> pairs;
    double worst_share = 0, seconds = 0;

    std::string summary() const;
    // Pairs of levels that no passed case had, as text; `possible` decides which pairs can occur.
    std::vector<std::string> missing_pairs() const;
};

SweepResult sweep(Executor& executor, const SweepOptions& options);

// Vulkan's one-pass kernels that have row statistics.
inline bool has_row_stats(const std::string& executor) {
    return executor.starts_with("vulkan:flash") && executor.find("coopmat2") == executor.npos;
}

// True if quantized keys and values are drawn for the executor of this name: on Vulkan the one-pass kernels
// read them.
inline bool reads_compressed(const std::string& executor) {
    return !executor.starts_with("vulkan") || executor.starts_with("vulkan:flash");
}

}  // namespace fovea::test

// Rope, linear and append on the CPU: random descriptions, buffers with guards, runs on any instruction set.
#pragma once

#include "support/cpu_device.hpp"
#include "support/random_operation.hpp"

#include <fovea/fovea.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace fovea::test {

using Bytes = std::vector<std::byte>;
using Buffers = std::array<Bytes, FOVEA_BIND_COUNT>;

// Instruction sets that this build has and this machine runs.
std::vector<uint32_t> runnable_targets();

template <class Desc>
Plan plan_of(FoveaResult (*make)(const FoveaDeviceProperties*, const Desc*, const FoveaHostAllocator*,
                                 FoveaPlan*, FoveaDiag*),
             const Desc& desc, const FoveaDeviceProperties& properties) {
    FoveaPlan plan = nullptr;
    Diag diag;
    EXPECT_EQ(make(&properties, &desc, nullptr, &plan, &diag), FOVEA_OK) << diag.text;
    return Plan(plan);
}

// Inputs for a plan's bindings: numbers near normal, small integers where integers belong. Y is full of NaN.
Buffers random_buffers(Random& random, const FoveaPlanInfo& info, FoveaDtype x_type, FoveaDtype w_type);

// Runs the whole plan on one thread, in place.
Result<void> run_in_place(const Plan& plan, Buffers& buffers);

// Runs the plan on copies of `given` between guards and returns Y. `shuffle_seed` not 0: slices in another
// order, some of them twice. Fails the test where a guard or an input was written.
Bytes run(const Plan& plan, const Buffers& given, uint32_t workers, uint64_t shuffle_seed = 0);

double element(const Bytes& bytes, FoveaDtype type, uint64_t index);

// Calls body(random, seed) for each of `count` cases, or for the one that FOVEA_TEST_SEED names.
void for_cases(uint64_t count, const std::function<void(Random&)>& body);

}  // namespace fovea::test

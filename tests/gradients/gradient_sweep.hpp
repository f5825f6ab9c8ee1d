// Many seeded backward calls on one executor.
#pragma once

#include "gradients/gradient_case.hpp"

#include <map>
#include <string>
#include <vector>

namespace fovea::test {

struct GradientSweep {
    uint64_t passed = 0, refused = 0;
    double worst_share = 0;
    std::map<std::string, uint64_t> refusals, kernels;
    std::vector<std::string> failures;

    std::string summary() const;
};

// Cases `count` from the first of `seed` on; stops at the fifth failure.
GradientSweep sweep_gradients(Executor& executor, uint64_t seed, uint64_t count);

}  // namespace fovea::test

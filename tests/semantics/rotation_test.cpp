// Rotated KV caches of random calls against float64, with guards, on each executor. Few of the sweep's cases
// on a software driver have such a cache.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

namespace fovea::test {
namespace {

TEST(Rotation, of_caches_in_random_calls_against_the_reference) {
    CaseLimits limits;
    limits.compressed = limits.results_only = true;  // no kernel of a device reads blocks and gives matrices
    limits.flops = 2e6;
    uint32_t ran = 0;
    for (uint64_t n = 0; ran < 12; ++n) {
        const Case c = generate_case(case_seed(71, n), limits);
        if (!(c.desc.flags & FOVEA_FLAG_ROTATED_CACHE)) continue;
        ++ran;
        SCOPED_TRACE(describe(c));
        expect_right(c);
    }
}

}  // namespace
}  // namespace fovea::test

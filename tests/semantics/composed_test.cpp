// Masks over the last keys and lists of keys, made as in the samples draft_tree.c and key_lists.c, drawn at
// random and checked against the equivalent single call.
#include "semantics/sweep.hpp"
#include "semantics/under_test.hpp"

#include <cstdio>

namespace fovea::test {
namespace {

void expect_composed(Composition composition, uint64_t on_processor) {
    on_each_executor([&](Executor& executor) {
        SweepOptions options;
        options.seed = 20;
        options.of = composition;
        options.limits.results_only = true;
        options.limits.compressed = reads_compressed(executor.name());
        // A software driver takes a second or more for each pipeline.
        options.count = executor.name().starts_with("vulkan") ? 12 : share_of_draws(executor, on_processor);
        const SweepResult result = sweep(executor, options);
        printf("%s, %s: %s", composition_name(composition), executor.name().c_str(),
               result.summary().c_str());
        EXPECT_TRUE(result.failures.empty());
        EXPECT_EQ(result.passed + result.refused, options.count);
        for (const auto& [reason, count] : result.refusals)
            EXPECT_TRUE(is_lack_of_float16(FOVEA_UNSUPPORTED, reason)) << count << " refused: " << reason;
    });
}

TEST(Composed, masks_of_the_last_keys_give_what_a_mask_of_all_keys_gives) {
    expect_composed(Composition::tail_mask, 300);
}
TEST(Composed, lists_of_keys_give_what_a_mask_that_hides_the_others_gives) {
    expect_composed(Composition::key_lists, 300);
}

}  // namespace
}  // namespace fovea::test

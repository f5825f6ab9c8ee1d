// Row statistics name the first key with the largest weight: threads and vector lanes that process keys with
// equal logits must not change which one that is. And a weight of 0 adds nothing to entropy, however far
// below the others its logit is.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

#include <cstring>
#include <limits>

namespace fovea::test {
namespace {

constexpr uint32_t kKeys = 300, kDim = 12;

uint32_t argmax_of(const Outcome& outcome, size_t row) {
    FoveaRowStats stats;
    memcpy(&stats, outcome.outputs[FOVEA_BIND_ROW_STATS].data() + row * sizeof stats, sizeof stats);
    return stats.argmax_key;
}

// Rows of a causal call: row i sees keys up to i + first.
Case tied_case(int64_t first) {
    Case c = plain_case(61, 1, 1, 1, 40, kKeys, kDim, kDim);
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_ROW_STATS;
    c.desc.flags = FOVEA_FLAG_WINDOW;
    c.desc.align = FOVEA_ALIGN_OFFSET;
    c.desc.q_offset = first;
    c.desc.window_left = 20, c.desc.window_right = 250;
    settle(c);
    return c;
}

TEST(Ties, of_all_keys_go_to_the_first_that_is_seen) {
    for (const int64_t first : {0, 31, 200}) {
        const Case c = tied_case(first);
        Result<PreparedCase> prepared = prepare(c);
        ASSERT_TRUE(prepared) << prepared.error().text;
        Tensors inputs = prepared->clean;
        for (uint32_t n = 0; n < 40 * kDim; ++n) write_float(inputs[FOVEA_BIND_Q], FOVEA_F32, n, 0);
        on_each_executor([&](Executor& executor) {
            const Outcome outcome = run_or_fail(executor, c.desc, inputs);
            if (!outcome.ran()) return;
            for (int64_t i = 0; i < 40; ++i)
                EXPECT_EQ(argmax_of(outcome, size_t(i)), std::max<int64_t>(0, i + first - 20)) << "row " << i;
        });
    }
}

// Two keys that are alike, further apart than a thread's elements, a vector and a workgroup.
TEST(Ties, of_two_keys_go_to_the_earlier_one) {
    const Case c = tied_case(20);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared) << prepared.error().text;
    for (const auto& [early, late] :
         {std::pair{59u, 60u}, {60u, 63u}, {61u, 64u}, {62u, 69u}, {59u, 130u}, {64u, 256u}}) {
        Tensors inputs = prepared->clean;
        for (uint32_t n = 0; n < 40 * kDim; ++n) write_float(inputs[FOVEA_BIND_Q], FOVEA_F32, n, 1);
        for (const uint32_t key : {early, late})
            for (uint32_t n = 0; n < kDim; ++n)
                write_float(inputs[FOVEA_BIND_K], FOVEA_F32, int64_t(key) * kDim + n, 5);
        on_each_executor([&](Executor& executor) {
            const Outcome outcome = run_or_fail(executor, c.desc, inputs);
            if (!outcome.ran()) return;
            for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(argmax_of(outcome, size_t(i)), early) << "row " << i;
        });
    }
}

// A logit further below the largest than the largest float: their difference is minus infinity, which times a
// weight of 0 must be 0.
TEST(Ties, a_logit_infinitely_far_below_adds_no_entropy) {
    Case c = plain_case(62, 1, 1, 1, 4, kKeys, kDim, kDim);
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_ROW_STATS;
    c.desc.bias = {1, FOVEA_F32, 1, 1, 1, 0, {}};
    settle(c);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared) << prepared.error().text;
    Tensors inputs = prepared->clean;
    for (uint32_t n = 0; n < 4 * kDim; ++n) write_float(inputs[FOVEA_BIND_Q], FOVEA_F32, n, 0);
    for (uint32_t j = 0; j < kKeys; ++j)
        write_float(inputs[FOVEA_BIND_BIAS], FOVEA_F32, j,
                    j == 7 ? 1e33f : std::numeric_limits<float>::lowest());
    on_each_executor([&](Executor& executor) {
        const Outcome outcome = run_or_fail(executor, c.desc, inputs);
        if (!outcome.ran()) return;
        for (size_t i = 0; i < 4; ++i) {
            FoveaRowStats stats;
            memcpy(&stats, outcome.outputs[FOVEA_BIND_ROW_STATS].data() + i * sizeof stats, sizeof stats);
            EXPECT_EQ(stats.argmax_key, 7u);
            EXPECT_NEAR(stats.entropy, 0.0f, 1e-6f) << "row " << i;
        }
    });
}

}  // namespace
}  // namespace fovea::test

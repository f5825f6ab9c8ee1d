// Fully masked rows: the same bits everywhere, at any place and with any kind of mask.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace fovea::test {
namespace {

constexpr uint32_t kAllOutputs =
    FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS;

uint32_t bits_of(const Bytes& tensor, size_t element) {
    uint32_t bits = 0;
    memcpy(&bits, tensor.data() + element * 4, 4);
    return bits;
}

// Every empty row of a dense f32 case, every output, every bit.
void expect_empty_rows(const Case& c, const Tensors& inputs, const Tensors& outputs) {
    const FoveaAttentionDesc& d = c.desc;
    size_t row = 0, found = 0;
    for (uint32_t b = 0; b < d.batch; ++b) {
        for (uint32_t h = 0; h < d.heads_q; ++h) {
            const uint32_t lse = d.flags & FOVEA_FLAG_SINKS ? bits_of(inputs[FOVEA_BIND_SINKS], h)
                                                            : std::bit_cast<uint32_t>(-INFINITY);
            for (int64_t i = 0; i < int64_t(d.len_q); ++i, ++row) {
                if (!sees_nothing(c, b, h, i)) continue;
                ++found;
                for (uint32_t n = 0; n < d.dim_v; ++n)
                    ASSERT_EQ(bits_of(outputs[FOVEA_BIND_O], row * d.dim_v + n), 0u) << "o of row " << row;
                for (size_t j = 0; j < d.len_kv; ++j) {
                    ASSERT_EQ(bits_of(outputs[FOVEA_BIND_WEIGHTS], row * d.len_kv + j), 0u) << "row " << row;
                    ASSERT_EQ(bits_of(outputs[FOVEA_BIND_MASKED], row * d.len_kv + j),
                              std::bit_cast<uint32_t>(-INFINITY))
                        << "row " << row;
                }
                ASSERT_EQ(bits_of(outputs[FOVEA_BIND_LSE], row), lse) << "lse of row " << row;
                const uint32_t stats[4] = {0, 0, 0xffffffffu, 0};
                ASSERT_EQ(memcmp(outputs[FOVEA_BIND_ROW_STATS].data() + row * 16, stats, 16), 0)
                    << "row " << row;
            }
        }
    }
    EXPECT_GT(found, 0u) << "the case has no empty row";
}

void expect_exact_empty_rows(const std::function<void(Case&)>& edit) {
    for (const bool sinks : {false, true}) {
        SCOPED_TRACE(sinks ? "with sinks" : "without sinks");
        Case c = plain_case(31, 2, 4, 2, 70, 75, 20, 12);
        c.desc.outputs = kAllOutputs;
        if (sinks) c.desc.flags |= FOVEA_FLAG_SINKS;
        edit(c);
        settle(c);
        Result<PreparedCase> prepared = prepare(c);
        ASSERT_TRUE(prepared) << prepared.error().text;
        on_each_executor([&](Executor& executor) {
            const Outcome outcome = run_or_fail(executor, c.desc, prepared->poisoned);
            if (!outcome.ran()) return;
            expect_empty_rows(c, prepared->clean, outcome.outputs);
            const Verdict verdict = judge(c, prepared->oracle, outcome);
            EXPECT_TRUE(verdict.ok) << verdict.text;
        });
    }
}

void add_mask(Case& c, MaskPattern pattern) {
    c.desc.mask = {1, FOVEA_U8, c.desc.batch, c.desc.heads_q, 0, 0, {}};
    c.mask_pattern = pattern;
}

TEST(EmptyRows, leading_rows_before_the_first_key) {
    expect_exact_empty_rows([](Case& c) {
        c.desc.flags |= FOVEA_FLAG_CAUSAL;
        c.desc.align = FOVEA_ALIGN_OFFSET;
        c.desc.q_offset = -37;
    });
}
TEST(EmptyRows, trailing_rows_behind_a_window) {
    expect_exact_empty_rows([](Case& c) {
        c.desc.flags |= FOVEA_FLAG_WINDOW;
        c.desc.align = FOVEA_ALIGN_OFFSET;
        c.desc.q_offset = 40;
        c.desc.window_left = 3;
        c.desc.window_right = -1;
    });
}
TEST(EmptyRows, in_the_middle_by_a_mask) {
    expect_exact_empty_rows([](Case& c) { add_mask(c, MaskPattern::every_third); });
}
TEST(EmptyRows, at_random_by_a_mask) {
    expect_exact_empty_rows([](Case& c) { add_mask(c, MaskPattern::rows); });
}
TEST(EmptyRows, by_a_bias_of_infinity) {
    expect_exact_empty_rows([](Case& c) {
        c.desc.bias = {1, FOVEA_F32, c.desc.batch, c.desc.heads_q, 0, 0, {}};
        c.bias_pattern = BiasPattern::rows_of_infinity;
    });
}
TEST(EmptyRows, whole_entries_without_keys_or_queries) {
    expect_exact_empty_rows([](Case& c) {
        c.desc.flags |= FOVEA_FLAG_VARLEN;
        c.table = {{0, 70, 0, 0}, {0, 33, 0, 75}};
    });
}
TEST(EmptyRows, a_leading_block_of_keys_is_hidden) {
    // Not empty, but the first tiles of keys are: the running maximum has nothing to start from.
    Case c = plain_case(32, 1, 2, 1, 70, 300, 20, 12);
    c.desc.outputs = kAllOutputs;
    add_mask(c, MaskPattern::leading);
    expect_right(c);
}
TEST(EmptyRows, no_keys_at_all) {
    expect_exact_empty_rows([](Case& c) { c.desc.len_kv = 0; });
}
TEST(EmptyRows, no_queries_at_all_is_a_call_without_work) {
    Case c = plain_case(33, 2, 2, 2, 0, 10, 8, 8);
    c.desc.outputs = kAllOutputs;
    expect_right(c);
}

}  // namespace
}  // namespace fovea::test

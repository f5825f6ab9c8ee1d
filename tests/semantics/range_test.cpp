// Numbers near the ends of the ranges, and the shapes that the project's own goals name.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"
#include "support/cpu_executor.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

namespace fovea::test {
namespace {

void set_types(Case& c, FoveaDtype type) {
    c.desc.q_type = c.desc.k_type = c.desc.v_type = c.desc.o_type = type;
}

TEST(Range, float16_scores_past_the_range_of_float16_give_finite_results) {
    Case c = plain_case(61, 1, 2, 2, 50, 130, 128, 16);
    set_types(c, FOVEA_F16);
    c.values = Values::large;
    c.desc.scale = 1;
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_LSE;
    settle(c);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared) << prepared.error().text;
    on_each_executor([&](Executor& executor) {
        const Outcome outcome = run_or_fail(executor, c.desc, prepared->clean);
        if (!outcome.ran()) return;
        const Verdict verdict = judge(c, prepared->oracle, outcome);
        EXPECT_TRUE(verdict.ok) << verdict.text;
        float largest = 0;
        for (int64_t n = 0; n < 2 * 50 * 130; ++n)
            largest =
                std::max(largest, std::fabs(read_float(outcome.outputs[FOVEA_BIND_SCORES], FOVEA_F32, n)));
        EXPECT_GT(largest, 65504.0f);  // else the case shows nothing
        for (int64_t n = 0; n < 2 * 50 * 16; ++n)
            ASSERT_TRUE(std::isfinite(read_float(outcome.outputs[FOVEA_BIND_O], FOVEA_F16, n))) << n;
    });
}

// Where a device has no 16-bit storage its buffers are of whole words, the host's are not.
TEST(Range, an_odd_number_of_halves_comes_back_to_just_as_much_host_memory) {
    struct Shape {
        uint32_t batch, heads;
        uint64_t len_q, len_kv;
        uint32_t dim_qk, dim_v;
    };
    for (const Shape& s : {Shape{1, 3, 5, 53, 160, 5}, Shape{3, 3, 1, 33, 33, 33}, Shape{1, 1, 1, 1, 1, 1}}) {
        Case c = plain_case(60, s.batch, s.heads, s.heads, s.len_q, s.len_kv, s.dim_qk, s.dim_v);
        set_types(c, FOVEA_F16);
        settle(c);
        Result<PreparedCase> prepared = prepare(c);
        ASSERT_TRUE(prepared) << prepared.error().text;
        ExecuteOptions options;
        options.host_memory = true;
        on_each_executor([&](Executor& executor) {
            const Outcome outcome = run_or_fail(executor, c.desc, prepared->clean, options);
            if (!outcome.ran()) return;
            EXPECT_EQ(outcome.outputs[FOVEA_BIND_O].size(), s.batch * s.heads * s.len_q * s.dim_v * 2);
            const Verdict verdict = judge(c, prepared->oracle, outcome);
            EXPECT_TRUE(verdict.ok) << verdict.text;
        });
    }
}

// A sweep whose executor kept the products from the planner would judge those of float32, and pass.
TEST(Range, products_of_bfloat16_are_what_a_sweep_judges) {
    FoveaDeviceProperties properties = foveaDeviceProperties();
    ASSERT_EQ(foveaCpuProperties(1, &properties, nullptr), FOVEA_OK);
    if (!(properties.features & FOVEA_FEATURE_BF16_INPUTS))
        GTEST_SKIP() << "no AVX512-BF16 on this processor or in this build";
    Case c = plain_case(66, 1, 1, 1, 30, 70, 16, 8);
    settle(c);
    const Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared) << prepared.error().text;
    const auto executor = make_cpu_executor("cpu:flash", {FOVEA_KERNEL_FLASH, false, 0});
    const Outcome exact = run_or_fail(*executor, c.desc, prepared->clean);
    c.desc.precision = FOVEA_PRECISION_BF16_INPUTS;
    const Outcome rounded = run_or_fail(*executor, c.desc, prepared->clean);
    EXPECT_NE(rounded.outputs[FOVEA_BIND_O], exact.outputs[FOVEA_BIND_O]);
}

TEST(Range, rows_of_the_lowest_bias_are_not_masked) {
    // As other libraries build masks: -FLT_MAX on every key is a uniform row, not an empty one.
    Case c = plain_case(62, 1, 2, 2, 20, 70, 16, 8);
    c.values = Values::low_bias;
    c.desc.bias = {1, FOVEA_F32, 1, 2, 0, 0, {}};
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_LSE;
    expect_right(c);
}

// Where float32 counts in hundreds and more, a row is its largest score's value; an exponent that is off by
// the rounding of the maximum would be infinite, or no number.
TEST(Range, scores_of_thousands_of_millions_and_more_give_finite_rows) {
    for (const float scale : {3e8f, 1e10f, 1e15f, 1e30f}) {
        for (const uint64_t rows : {1, 40}) {
            for (const uint32_t more : {0u, uint32_t(FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS)}) {
                Case c = plain_case(67, 1, 2, 2, rows, 150, 16, 8);
                c.desc.scale = scale;
                c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | more;
                settle(c);
                Result<PreparedCase> prepared = prepare(c);
                ASSERT_TRUE(prepared) << prepared.error().text;
                on_each_executor([&](Executor& executor) {
                    const Outcome outcome = run_or_fail(executor, c.desc, prepared->clean);
                    if (!outcome.ran()) return;
                    const Verdict verdict = judge(c, prepared->oracle, outcome);
                    EXPECT_TRUE(verdict.ok) << scale << " " << rows << " " << verdict.text;
                    const auto first_unlike = [&](FoveaBinding binding, int64_t count, float tolerance) {
                        for (int64_t n = 0; n < count; ++n) {
                            const float got = read_float(outcome.outputs[binding], FOVEA_F32, n),
                                        exact = read_float(prepared->oracle.exact[binding], FOVEA_F32, n);
                            if (!(std::fabs(got - exact) <= tolerance * std::fabs(exact))) return n;
                        }
                        return int64_t{-1};
                    };
                    EXPECT_EQ(first_unlike(FOVEA_BIND_O, int64_t(2 * rows * 8), 1e-5f), -1)
                        << scale << " " << rows;
                    EXPECT_EQ(first_unlike(FOVEA_BIND_LSE, int64_t(2 * rows), 1e-5f), -1)
                        << scale << " " << rows;
                });
            }
        }
    }
}

TEST(Range, scores_far_beyond_the_softcap) {
    // A thousand times the cap: the hyperbolic tangent's exponential must not leave its range.
    for (const float scale : {0.5f, 40.0f}) {
        Case c = plain_case(65, 1, 2, 1, 20, 70, 16, 8);
        c.desc.scale = scale;
        c.desc.softcap = 0.25f;
        expect_right(c);
    }
}

TEST(Range, grouped_heads_bottom_right_with_uneven_sizes) {
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16}) {
        Case c = plain_case(63, 2, 8, 2, 77, 301, 80, 48);
        set_types(c, type);
        c.desc.flags |= FOVEA_FLAG_CAUSAL;
        c.desc.align = FOVEA_ALIGN_BOTTOM_RIGHT;
        expect_right(c);
        c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_LSE;
        expect_right(c);
    }
}

// Enough rows to make packing keys worthwhile, a depth that is not a multiple of any vector, and blocks of
// keys that fewer and fewer rows attend to.
TEST(Range, many_rows_share_blocks_of_keys) {
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16}) {
        Case c = plain_case(64, 1, 48, 12, 146, 331, 40, 24);
        set_types(c, type);
        c.desc.flags |= FOVEA_FLAG_CAUSAL;
        c.desc.align = FOVEA_ALIGN_BOTTOM_RIGHT;
        expect_right(c);
    }
}

// Shapes 1..300, D 1..160, grouped heads, none or causal both ways, strided inputs.
Case random_dense_case(uint64_t seed) {
    Random random(seed);
    Case c = plain_case(seed, 1, 1, 1, uint64_t(random.between(1, 300)), uint64_t(random.between(1, 300)),
                        uint32_t(random.between(1, 160)), uint32_t(random.between(1, 160)));
    FoveaAttentionDesc& d = c.desc;
    const double pairs = double(d.len_q) * double(d.len_kv) * (d.dim_qk + d.dim_v);
    if (pairs < 4e6) {
        d.batch = uint32_t(random.between(1, 2));
        d.heads_kv = uint32_t(random.between(1, 2));
        d.heads_q = d.heads_kv * uint32_t(random.between(1, 3));
    }
    set_types(c, random.chance(0.3) ? FOVEA_F16 : FOVEA_F32);
    if (random.chance(0.67)) {
        d.flags |= FOVEA_FLAG_CAUSAL;
        d.align = random.chance(0.5) ? FOVEA_ALIGN_TOP_LEFT : FOVEA_ALIGN_BOTTOM_RIGHT;
    }
    const auto spread = [&](uint32_t heads, uint64_t rows, uint32_t columns) {
        const int64_t row = int64_t(columns) + random.between(0, 7);
        if (random.chance(0.5)) return FoveaStrides{int64_t(rows) * heads * row, row, heads * row};
        const int64_t head = int64_t(rows) * row + random.between(0, 7);
        return FoveaStrides{heads * head, head, row};
    };
    if (random.chance(0.6)) {
        d.q_strides = spread(d.heads_q, d.len_q, d.dim_qk);
        d.k_strides = spread(d.heads_kv, d.len_kv, d.dim_qk);
        d.v_strides = spread(d.heads_kv, d.len_kv, d.dim_v);
        d.o_strides = spread(d.heads_q, d.len_q, d.dim_v);
    }
    c.values = Values(random.below(5));
    settle(c);
    return c;
}

// Problems may be left out only because the device lacks float16 storage: those are counted, and must not
// exceed half of the draws.
TEST(Range, five_hundred_dense_problems) {
    constexpr uint64_t kProblems = 500;
    std::map<std::string, uint64_t> drawn, passed;
    std::map<std::string, std::map<std::string, uint64_t>> refused;
    for (uint64_t n = 0; n < kProblems && !HasFailure(); ++n) {
        Result<PreparedCase> prepared = prepare(random_dense_case(case_seed(500, n)));
        ASSERT_TRUE(prepared) << prepared.error().text;
        on_each_executor([&](Executor& executor) {
            if (executor.name() == "reference") return;  // it is what the others are judged by
            if (n >= share_of_draws(executor, kProblems)) return;
            ++drawn[executor.name()];
            const CaseReport report = run_case(executor, *prepared);
            const bool lacks_float16 =
                report.kind == CaseReport::Kind::refused && is_lack_of_float16(report.code, report.text);
            if (lacks_float16) {
                ++refused[executor.name()][report.text];
                return;
            }
            EXPECT_EQ(report.kind, CaseReport::Kind::passed) << "problem " << n << ": " << report.text;
            ++passed[executor.name()];
        });
    }
    for (const auto& [name, count] : passed) {
        uint64_t left_out = 0;
        for (const auto& [reason, times] : refused[name]) {
            printf("%s: skipped %llu: %s\n", name.c_str(), static_cast<unsigned long long>(times),
                   reason.c_str());
            left_out += times;
        }
        printf("%s: %llu of %llu dense problems passed\n", name.c_str(),
               static_cast<unsigned long long>(count), static_cast<unsigned long long>(drawn[name]));
        EXPECT_TRUE(HasFailure() || count + left_out == drawn[name]) << name;
        EXPECT_LE(left_out, drawn[name] / 2) << name;
    }
}

}  // namespace
}  // namespace fovea::test

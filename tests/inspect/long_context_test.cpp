// The planted patterns are in the weights that the engine computes.
#include <fovea/inspect/long_context.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace fovea {
namespace {

double logit(const LongContext& c, size_t i, size_t j) {
    double sum = 0;
    for (size_t n = 0; n < kLongContextDim; ++n)
        sum += double(c.q[i * kLongContextDim + n]) * c.k[j * kLongContextDim + n];
    return sum / std::sqrt(double(kLongContextDim));
}

std::vector<double> weights_of_row(const LongContext& c, size_t i) {
    std::vector<double> w(i + 1);
    double sum = 0;
    for (size_t j = 0; j <= i; ++j) sum += w[j] = std::exp(logit(c, i, j));
    for (double& x : w) x /= sum;
    return w;
}

TEST(LongContext, patterns_stand_out) {
    const Result<LongContext> made = long_context("32k");
    ASSERT_TRUE(made);
    const LongContext& c = *made;
    ASSERT_EQ(c.call.len_q, 32768u);
    double sink = 0, local = 0, induction = 0;
    int rows = 0;
    for (size_t i = 3 * size_t(c.period); i < 32768; i += 997, ++rows) {
        const std::vector<double> w = weights_of_row(c, i);
        sink += w[0];
        for (size_t j = i - 8; j <= i; ++j) local += w[j];
        for (size_t n = 1; n * c.period <= i; ++n) induction += w[i - n * c.period + 1];
    }
    EXPECT_GT(sink / rows, 0.05);
    EXPECT_GT(local / rows, 0.05);
    EXPECT_GT(induction / rows, 0.02);
    EXPECT_LT((sink + local + induction) / rows, 0.98);
}

TEST(LongContext, is_the_same_every_time) {
    const Result<LongContext> a = long_context(300), b = long_context(300);
    ASSERT_TRUE(a);
    ASSERT_TRUE(b);
    EXPECT_EQ(a->q, b->q);
    EXPECT_EQ(a->k, b->k);
}

TEST(LongContext, refuses_what_it_has_not) {
    EXPECT_EQ(long_context(0u).error().field, "tokens");
    EXPECT_EQ(long_context((1u << 20) + 1).error().field, "tokens");
    EXPECT_EQ(long_context("2m").error().field, "preset");
    EXPECT_NE(long_context("2m").error().text.find("128k"), std::string::npos);
}

}  // namespace
}  // namespace fovea

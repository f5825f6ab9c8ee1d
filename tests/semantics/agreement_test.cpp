// The outputs of one call agree with each other, however large its scores: float32 counts scores of 1e8 in
// steps of 8, but what is made of them is made of the same ones.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

#include <cmath>
#include <cstring>

namespace fovea::test {
namespace {

constexpr int64_t kRows = 9, kKeys = 11;
constexpr uint32_t kDim = 5, kDimV = 3;

class Rows {
  public:
    Rows(const Tensors& inputs, const Outcome& outcome) : inputs_(inputs), outcome_(outcome) {}

    void expect_agreement(int64_t i) const {
        FoveaRowStats stats;
        memcpy(&stats, outcome_.outputs[FOVEA_BIND_ROW_STATS].data() + size_t(i) * sizeof stats,
               sizeof stats);
        double sum = 0, largest = 0, top = -INFINITY, exact = 0;
        for (int64_t j = 0; j < kKeys; ++j) {
            ASSERT_EQ(cell(FOVEA_BIND_SCORES, i, j), cell(FOVEA_BIND_MASKED, i, j));
            sum += cell(FOVEA_BIND_WEIGHTS, i, j);
            largest = std::max(largest, cell(FOVEA_BIND_WEIGHTS, i, j));
            top = std::max(top, cell(FOVEA_BIND_MASKED, i, j));
        }
        for (int64_t j = 0; j < kKeys; ++j) exact += std::exp(cell(FOVEA_BIND_MASKED, i, j) - top);
        EXPECT_NEAR(sum, 1, 1e-5) << "row " << i;
        EXPECT_LE(stats.max_weight, 1.0f) << "row " << i;
        EXPECT_NEAR(stats.max_weight, largest, 4 * 0x1p-24) << "row " << i;
        EXPECT_NEAR(cell(FOVEA_BIND_WEIGHTS, i, stats.argmax_key), largest, 4 * 0x1p-24) << "row " << i;
        EXPECT_EQ(stats.visible_keys, uint32_t(kKeys));
        // A few roundings of the scores and of lse.
        const double lse = at(outcome_.outputs[FOVEA_BIND_LSE], i);
        EXPECT_NEAR(lse, top + std::log(exact), 1e-5 + std::fabs(top) * 0x1p-21) << "row " << i;
        for (uint32_t d = 0; d < kDimV; ++d) {
            double o = 0;
            for (int64_t j = 0; j < kKeys; ++j)
                o += cell(FOVEA_BIND_WEIGHTS, i, j) * at(inputs_[FOVEA_BIND_V], j * kDimV + d);
            EXPECT_NEAR(at(outcome_.outputs[FOVEA_BIND_O], i * kDimV + d), o, 2e-5) << "row " << i;
        }
    }

  private:
    static double at(const std::vector<std::byte>& tensor, int64_t element) {
        return double(read_float(tensor, FOVEA_F32, element));
    }
    double cell(FoveaBinding matrix, int64_t i, int64_t j) const {
        return at(outcome_.outputs[matrix], i * kKeys + j);
    }

    const Tensors& inputs_;
    const Outcome& outcome_;
};

// Half of the keys are alike, so that largest weights are shared; scales that are not powers of two give
// inexact scores.
TEST(Agreement, of_all_outputs_at_scores_of_any_size) {
    for (const float scale : {1.0f, 0.37f, -0.37f, 0.0078125f})
        for (float size = 100; size <= 1e8f; size *= 10) {
            Case c = plain_case(91, 1, 1, 1, kRows, kKeys, kDim, kDimV);
            c.desc.scale = scale;
            c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_MASKED |
                             FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS;
            settle(c);
            Result<PreparedCase> prepared = prepare(c);
            ASSERT_TRUE(prepared) << prepared.error().text;
            Tensors inputs = prepared->clean;
            for (int64_t n = 0; n < kRows * int64_t(kDim); ++n)
                write_float(inputs[FOVEA_BIND_Q], FOVEA_F32, n,
                            read_float(inputs[FOVEA_BIND_Q], FOVEA_F32, n) * size / std::fabs(scale));
            for (int64_t j = 1; j < kKeys; j += 2)
                for (uint32_t d = 0; d < kDim; ++d)
                    write_float(inputs[FOVEA_BIND_K], FOVEA_F32, j * kDim + d,
                                read_float(inputs[FOVEA_BIND_K], FOVEA_F32, (j - 1) * kDim + d));
            on_each_executor([&](Executor& executor) {
                SCOPED_TRACE(testing::Message() << "scores of " << size << ", scale " << scale);
                const Outcome outcome = run_or_fail(executor, c.desc, inputs);
                if (!outcome.ran()) return;
                for (int64_t i = 0; i < kRows; ++i) Rows(inputs, outcome).expect_agreement(i);
            });
        }
}

}  // namespace
}  // namespace fovea::test

// The strict order's attention call against the float64 reference, on seeded calls of everything that it has.
#include "model/transformer_parts.hpp"
#include "support/case_generator.hpp"
#include "support/run_case.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fovea::test {
namespace {

class StrictExecutor : public Executor {
  public:
    const std::string& name() const override { return name_; }

    Outcome run(const FoveaAttentionDesc& desc, const Tensors& inputs, const ExecuteOptions&) override {
        Outcome outcome;
        const Result<FoveaPlanInfo> info = plan_info(desc);
        if (!info) return outcome.text = info.error().text, outcome;
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            const bool written = info->output_mask >> i & 1;
            if (written) outcome.outputs[i].assign(size_t(info->binding_bytes[i]), kUntouched);
            Bytes& bytes = written ? outcome.outputs[i] : const_cast<Bytes&>(inputs[i]);
            bindings[i] = {bytes.data(), bytes.size()};
        }
        const double factor = desc.scale != 0.0f ? double(desc.scale) : 1.0 / std::sqrt(double(desc.dim_qk));
        const ScoreScale scale = divides ? ScoreScale::divided_by(1.0 / factor) : ScoreScale::times(factor);
        const Result<void> result = attend_strictly(desc, bindings, scale, double(desc.dropout_p));
        outcome.kind = result ? Outcome::Kind::ran : Outcome::Kind::refused;
        if (!result) outcome.text = result.error().text;
        return outcome;
    }
    Outcome run_backward(const FoveaAttentionDesc&, const FoveaAttentionBackwardDesc&, const Tensors&,
                         const ExecuteOptions&) override {
        return {};
    }
    Outcome run_tile(const FoveaAttentionDesc&, const FoveaMapTileDesc&, const Tensors&,
                     const ExecuteOptions&) override {
        return {};
    }
    Outcome run_merge(const FoveaMergeDesc&, const Tensors&, const ExecuteOptions&) override { return {}; }

    bool divides = false;

  private:
    std::string name_ = "strict";
};

void without_strides(FoveaMatrixDesc& matrix, FoveaDtype type) {
    if (matrix.present) matrix.type = type, matrix.keys = 0, matrix.strides = {};
}

// A call of the sweep as the strict order can take it: float32 without gaps, dropout by a mask.
Case strict_case(uint64_t seed) {
    CaseLimits limits;
    limits.flops = 2e5;
    Case c = generate_case(seed, limits);
    FoveaAttentionDesc& d = c.desc;
    d.q_type = d.k_type = d.v_type = d.o_type = FOVEA_F32;
    d.q_strides = d.k_strides = d.v_strides = d.o_strides = {};
    d.flags &= ~uint32_t(FOVEA_FLAG_VARLEN);
    d.packed_rows_q = d.packed_rows_kv = 0;
    d.page_size = d.page_count = 0, d.block_table_pages = 0;
    d.outputs &= ~uint32_t(FOVEA_OUTPUT_ROW_STATS);
    without_strides(d.mask, FOVEA_U8), without_strides(d.bias, FOVEA_F32),
        without_strides(d.dropout_mask, FOVEA_U8);
    if (!d.dropout_mask.present) d.dropout_p = 0, d.first_query = d.first_key = d.first_batch_head = 0;
    c.table.clear(), c.block_table.clear();
    settle(c);
    return c;
}

TEST(StrictAttention, meets_float64_on_seeded_calls) {
    StrictExecutor executor;
    for (uint64_t n = 0; n < 400; ++n) {
        executor.divides = n % 2;
        const Result<PreparedCase> prepared = prepare(strict_case(case_seed(17, n)));
        ASSERT_TRUE(prepared) << "call " << n << ": " << prepared.error().text;
        const CaseReport report = run_case(executor, *prepared);
        ASSERT_EQ(report.kind, CaseReport::Kind::passed) << "call " << n << ": " << report.text;
    }
}

// The tutorials' digits hang on it: a score over the root of a width is divided by it.
TEST(StrictAttention, a_divisor_divides) {
    Case c = plain_case(3, 1, 1, 1, 1, 64, 1, 1);
    c.desc.outputs = FOVEA_OUTPUT_SCORES;
    std::vector<float> q{1}, k(64), v(64), scores(64);
    for (size_t j = 0; j < k.size(); ++j) k[j] = 1.0f + float(j) / 7;
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    const auto bind = [&](FoveaBinding binding, std::vector<float>& values) {
        bindings[binding] = {values.data(), values.size() * sizeof(float)};
    };
    bind(FOVEA_BIND_Q, q), bind(FOVEA_BIND_K, k), bind(FOVEA_BIND_V, v), bind(FOVEA_BIND_SCORES, scores);
    ASSERT_TRUE(attend_strictly(c.desc, bindings, ScoreScale::divided_by(3), 0));
    for (size_t j = 0; j < k.size(); ++j) EXPECT_EQ(scores[j], k[j] / 3.0f) << j;
    ASSERT_TRUE(attend_strictly(c.desc, bindings, ScoreScale::times(0.3), 0));
    for (size_t j = 0; j < k.size(); ++j) EXPECT_EQ(scores[j], k[j] * 0.3f) << j;
}

TEST(StrictAttention, refuses_by_name_what_it_does_not_have) {
    const FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    const auto refusal = [&](auto change) {
        Case c = plain_case(3, 2, 2, 1, 4, 4, 8, 8);
        change(c.desc);
        const Result<void> result = attend_strictly(c.desc, bindings, ScoreScale::times(1), c.desc.dropout_p);
        return result ? std::string() : result.error().text;
    };
    EXPECT_EQ(refusal([](auto& d) { d.k_type = FOVEA_BF16; }),
              "the strict order does not support types other than float32");
    EXPECT_EQ(refusal([](auto& d) { d.bias = {1, FOVEA_F16, 1, 1, 4, 4, {}}; }),
              "the strict order does not support a bias of a type other than float32");
    EXPECT_EQ(refusal([](auto& d) { d.packed_rows_q = 8; }),
              "the strict order does not support packed rows and paged KV caches");
    EXPECT_EQ(refusal([](auto& d) { d.page_size = 4; }),
              "the strict order does not support packed rows and paged KV caches");
    EXPECT_EQ(refusal([](auto& d) { d.flags |= FOVEA_FLAG_VARLEN; }),
              "the strict order does not support sequence lengths");
    EXPECT_EQ(refusal([](auto& d) { d.v_strides.row = 16; }), "the strict order does not support strides");
    EXPECT_EQ(refusal([](auto& d) { d.mask = {1, FOVEA_U8, 1, 1, 4, 3, {}}; }),
              "the strict order does not support matrices with strides or fewer columns than keys");
    EXPECT_EQ(refusal([](auto& d) { d.outputs = FOVEA_OUTPUT_ROW_STATS; }),
              "the strict order does not support row statistics");
    EXPECT_EQ(refusal([](auto& d) { d.dropout_p = 0.5f; }),
              "dropout without a dropout mask is not supported in the strict order; give dropout_mask");
}

}  // namespace
}  // namespace fovea::test

// Sums over a head's rows, its largest weights and the choice of its texts. The references are plain loops in
// float64 over whole matrices.
#include <fovea/inspect/head_survey.hpp>
#include <fovea/thread_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace fovea {
namespace {

constexpr uint32_t kHeads = 6, kKvHeads = 2, kWidth = 24, kTokens = 700;  // several blocks of rows

std::vector<uint32_t> random_ids(uint32_t kinds) {
    std::mt19937 random(7);
    std::vector<uint32_t> ids(kTokens);
    for (uint32_t& id : ids) id = random() % kinds;
    return ids;
}

Result<Trace> random_trace(const AttentionRules& rules, Runner& engine) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    const auto matrix = [&](uint64_t rows, uint64_t columns, float scale) {
        F32Tensor t({rows, columns});
        for (float& one : t.values) one = scale * normal(random);
        return t;
    };
    Block block;
    AttentionPart& a = block.attention;
    a.heads = kHeads, a.kv_heads = kKvHeads, a.rules = rules;
    a.query.weight = matrix(kHeads * 8, kWidth, 0.5f);
    a.key.weight = matrix(kKvHeads * 8, kWidth, 0.5f), a.value.weight = matrix(kKvHeads * 8, kWidth, 0.5f);
    auto model = std::make_shared<Model>();
    model->blocks.push_back(std::move(block));
    ModelInput input;
    input.x = matrix(kTokens, kWidth, 1);
    TraceOptions options;
    options.engine = &engine, options.arithmetic = Arithmetic::engine;
    return Trace::open(std::move(model), std::move(input), options);
}

struct Named {
    const char* name;
    AttentionRules rules;
};
std::vector<Named> all_rules() {
    std::vector<Named> all(5);
    all[0].name = "causal", all[0].rules.causal = true;
    all[1].name = "both ways";
    all[2].name = "window", all[2].rules.causal = all[2].rules.windowed = true,
    all[2].rules.window_left = 100;
    all[3].name = "alibi", all[3].rules.causal = all[3].rules.alibi = true;
    all[4].name = "window both ways", all[4].rules.windowed = true;
    all[4].rules.window_left = all[4].rules.window_right = 30, all[4].rules.softcap = 2;
    return all;
}

HeadSums expected_sums(const F32Tensor& weights, std::span<const uint32_t> ids) {
    HeadSums s;
    for (uint64_t i = 0; i < kTokens; ++i)
        for (uint64_t j = 0; j < kTokens; ++j) {
            const double w = double(weights.row(i)[j]), away = std::fabs(double(i) - double(j));
            if (w > 0) s.entropy -= w * std::log(w);
            s.distance += w * away, s.squared_distance += w * away * away;
            if (j == i) s.self += w;
            if (j + 1 == i) s.previous += w;
            if (j == 0 && i > 0) s.first += w;
            if (j > 0 && i > 0) s.largest = std::max(s.largest, w);
            if (j < i && ids[j] == ids[i]) s.same += w;
            if (j > 0 && j <= i && ids[j - 1] == ids[i]) {
                if (weights.row(i)[j] >= 0.01f) s.induction += w;
                if (j < i) s.followed += w;
            }
        }
    return s;
}

TEST(HeadSurvey, sums_are_those_of_the_whole_matrix_with_any_number_of_threads) {
    const std::unique_ptr<Runner> one = make_cpu_runner(),
                                  four = make_cpu_runner(std::make_unique<ThreadPool>(4));
    const std::vector<uint32_t> ids = random_ids(40);
    for (const Named& rules : all_rules()) {
        SCOPED_TRACE(rules.name);
        Result<Trace> trace = random_trace(rules.rules, *one);
        ASSERT_TRUE(trace) << trace.error().text;
        Result<LayerSurvey> survey = LayerSurvey::open(*trace, 0, ids, *one);
        ASSERT_TRUE(survey) << survey.error().text;
        const Result<std::vector<HeadSums>> sums = survey->sums();
        ASSERT_TRUE(sums) << sums.error().text;
        ASSERT_EQ(sums->size(), kHeads);
        const Result<std::vector<HeadSums>> again = LayerSurvey::open(*trace, 0, ids, *four)->sums();
        ASSERT_TRUE(again);
        for (uint32_t h = 0; h < kHeads; ++h) {
            const Result<F32Tensor> weights = trace->stage(StageId::weights, h);
            ASSERT_TRUE(weights);
            const HeadSums expected = expected_sums(*weights, ids);
            for (double HeadSums::*sum :
                 {&HeadSums::self, &HeadSums::previous, &HeadSums::first, &HeadSums::entropy,
                  &HeadSums::distance, &HeadSums::squared_distance, &HeadSums::induction, &HeadSums::followed,
                  &HeadSums::same, &HeadSums::largest}) {
                EXPECT_NEAR((*sums)[h].*sum, expected.*sum, 1e-6 * (1 + std::fabs(expected.*sum))) << h;
                EXPECT_EQ((*sums)[h].*sum, (*again)[h].*sum) << h;
            }
        }
    }
}

// The CPU's runner, and the most bytes of weights that a call wrote.
class MeasuredRunner : public Runner {
  public:
    std::string name() const override { return inner_->name(); }
    const FoveaDeviceProperties& properties() const override { return inner_->properties(); }
    Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) override {
        largest = std::max(largest, bindings[FOVEA_BIND_WEIGHTS].size_bytes), ++calls;
        return inner_->run(plan, bindings);
    }
    uint64_t largest = 0, calls = 0;

  private:
    std::unique_ptr<Runner> inner_ = make_cpu_runner();
};

TEST(HeadSurvey, holds_no_more_weights_than_it_says) {
    MeasuredRunner engine;
    const std::vector<uint32_t> ids = random_ids(40);
    const uint64_t most = LayerSurvey::bytes(kTokens, kHeads, kKvHeads, 0);
    ASSERT_LT(most, 4 * kHeads * kTokens * kTokens / 4);
    for (const Named& rules : all_rules()) {
        SCOPED_TRACE(rules.name);
        const std::unique_ptr<Runner> other = make_cpu_runner();
        Result<Trace> trace = random_trace(rules.rules, *other);
        ASSERT_TRUE(trace);
        engine.largest = engine.calls = 0;
        ASSERT_TRUE(LayerSurvey::open(*trace, 0, ids, engine)->sums());
        EXPECT_LE(engine.largest, most);
        EXPECT_GT(engine.largest, most / 2);  // and no smaller ones than that
        EXPECT_LT(engine.calls, 15u);
    }
}

TEST(HeadSurvey, sparse_rows_are_the_eight_largest_weights_of_each_row) {
    const std::unique_ptr<Runner> engine = make_cpu_runner();
    const std::vector<uint32_t> ids = random_ids(40);
    for (const Named& rules : all_rules()) {
        SCOPED_TRACE(rules.name);
        Result<Trace> trace = random_trace(rules.rules, *engine);
        ASSERT_TRUE(trace);
        for (const uint32_t head : {0u, 4u}) {
            const Result<F32Tensor> weights = trace->stage(StageId::weights, head);
            ASSERT_TRUE(weights);
            const Result<SparseRows> rows = LayerSurvey::open(*trace, 0, ids, *engine)->sparse_rows(head);
            ASSERT_TRUE(rows) << rows.error().text;
            ASSERT_EQ(rows->counts.size(), kTokens);
            size_t at = 0, full = 0;
            for (uint64_t i = 0; i < kTokens; ++i) {
                const auto row = weights->row(i);
                std::vector<float> order(row.begin(), row.end());
                std::sort(order.rbegin(), order.rend());
                const auto many =
                    std::count_if(order.begin(), order.end(), [](float w) { return w >= 0.005f; });
                ASSERT_NEAR(rows->counts[i], std::min<int64_t>(many, 8), many < 8 ? 1 : 0) << i;
                full += rows->counts[i] == 8;
                for (uint32_t n = 0; n < rows->counts[i]; ++n, ++at) {
                    ASSERT_TRUE(n == 0 || rows->keys[at - 1] < rows->keys[at]) << i;
                    const float weight = row[rows->keys[at]];
                    ASSERT_NEAR(rows->values[at] / 1e4, double(weight), 6e-5) << i;
                    ASSERT_GE(weight, order[7] - 1e-6f) << i;
                }
            }
            EXPECT_EQ(at, rows->keys.size());
            EXPECT_GT(full, 10u);
        }
    }
}

TEST(HeadSurvey, rejects_a_mask_of_cells) {
    const std::unique_ptr<Runner> engine = make_cpu_runner();
    AttentionRules rules;
    rules.pattern = MaskPattern::strided;
    Result<Trace> trace = random_trace(rules, *engine);
    ASSERT_TRUE(trace);
    const Result<LayerSurvey> survey = LayerSurvey::open(*trace, 0, random_ids(40), *engine);
    ASSERT_FALSE(survey);
    EXPECT_NE(survey.error().text.find("layer 0 has a mask of cells"), std::string::npos)
        << survey.error().text;
}

TEST(HeadSurvey, counts_rows_by_what_comes_before) {
    const std::vector<uint32_t> ids = {5, 5, 7, 5, 7, 8};
    const SurveyCounts counts = survey_counts(ids);
    EXPECT_EQ(counts.rows, 6u);
    EXPECT_EQ(counts.pairs, 5u);
    EXPECT_EQ(counts.repeats, 3u);   // places 1, 3 and 4
    EXPECT_EQ(counts.followed, 2u);  // place 1 has only the token before it
}

TEST(HeadSurvey, a_role_is_that_of_the_largest_score) {
    SurveyCounts counts{10, 10, 10, 10};
    HeadSums sums;
    sums.self = 4.5, sums.previous = 4.1;
    EXPECT_EQ(survey_role(head_metrics(sums, counts)), "the token itself");
    sums.previous = 5;
    EXPECT_EQ(survey_role(head_metrics(sums, counts)), "previous token");
    sums = {};
    sums.followed = 3.9;
    EXPECT_EQ(survey_role(head_metrics(sums, counts)), "no clear role");
    EXPECT_TRUE(std::isnan(head_metrics(sums, {}).entropy));
}

// 1,000 texts with random activations.
TEST(HeadSurvey, samples_are_the_highest_and_some_of_each_fifth) {
    constexpr uint64_t kTexts = 1000;
    std::mt19937 random(3);
    std::vector<float> activations(kTexts);
    for (float& one : activations) one = float(random() % 100'000) / 1e5f;
    size_t differ = 0;
    std::vector<uint64_t> before;
    for (const uint64_t head : {0u, 1u, 2u}) {
        HeadSampler sampler(head, kTexts), all(head, kTexts);
        size_t kept = 0;
        for (uint64_t n = 0; n < kTexts; ++n) {
            if (sampler.wants(n, activations[n])) sampler.add(n, activations[n]), ++kept;
            all.add(n, activations[n]);
        }
        EXPECT_LT(kept, 130u);  // a journal stores so many
        const std::vector<HeadSampler::Sample> samples = sampler.samples(activations),
                                               same = all.samples(activations);
        ASSERT_EQ(samples.size(), same.size());
        for (size_t n = 0; n < same.size(); ++n) EXPECT_EQ(samples[n].text, same[n].text);
        std::vector<float> sorted = activations;
        std::sort(sorted.begin(), sorted.end());
        std::array<uint32_t, 6> in{};
        std::vector<uint64_t> texts;
        for (const HeadSampler::Sample& one : samples) {
            ++in.at(one.interval);
            texts.push_back(one.text);
            EXPECT_EQ(one.activation, activations[one.text]);
            EXPECT_GE(one.activation, sorted[(one.interval - 1) * kTexts / 5]);
            EXPECT_TRUE(one.interval == 5 || one.activation < sorted[one.interval * kTexts / 5]) << one.text;
        }
        EXPECT_EQ(in[5], 10u);
        for (uint32_t n = 0; n < 10; ++n)
            EXPECT_EQ(samples[samples.size() - 10 + n].activation, sorted[kTexts - 1 - n]) << n;
        for (uint32_t n = 1; n < 5; ++n) EXPECT_EQ(in[n], 3u) << n;
        differ += texts != before;
        before = texts;
    }
    EXPECT_EQ(differ, 3u);
}

TEST(HeadSurvey, few_texts_are_all_candidates) {
    HeadSampler sampler(3, 4);
    for (uint64_t n = 0; n < 4; ++n) {
        ASSERT_TRUE(sampler.wants(n, 0.1f * float(n)));
        sampler.add(n, 0.1f * float(n));
    }
    EXPECT_EQ(sampler.samples({0.0f, 0.1f, 0.2f, 0.3f}).size(), 4u);
}

}  // namespace
}  // namespace fovea

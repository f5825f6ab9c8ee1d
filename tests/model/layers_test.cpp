// The attention layers that tutorials build one after the other, as blocks of one type, against float64 in
// plain loops that share nothing with the library; trace_test covers the other parts of models.
#include <fovea/model.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fovea {
namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix matrix_of(const F32Tensor& t) {
    Matrix m;
    for (uint64_t i = 0; i < t.rows(); ++i) m.emplace_back(t.row(i).begin(), t.row(i).end());
    return m;
}

Matrix project(const Matrix& x, const Linear& layer) {
    Matrix y(x.size(), std::vector<double>(layer.d_out()));
    for (size_t i = 0; i < x.size(); ++i)
        for (size_t o = 0; o < layer.d_out(); ++o) {
            y[i][o] = layer.has_bias() ? layer.bias.values[o] : 0.0;
            for (size_t d = 0; d < layer.d_in(); ++d)
                y[i][o] += x[i][d] * (layer.layout == WeightLayout::out_in ? layer.weight.row(o)[d]
                                                                           : layer.weight.row(d)[o]);
        }
    return y;
}

struct Head {
    Matrix weights, context;
};
Head attend_in_double(const Matrix& scores, const Matrix& v, bool causal) {
    Head head;
    for (size_t i = 0; i < scores.size(); ++i) {
        std::vector<double> weights(v.size(), 0.0), context(v[0].size(), 0.0);
        double sum = 0.0;
        for (size_t j = 0; j < v.size() && (!causal || j <= i); ++j)
            sum += weights[j] = std::exp(scores[i][j]);
        for (size_t j = 0; j < v.size(); ++j) {
            weights[j] /= sum;
            for (size_t d = 0; d < context.size(); ++d) context[d] += weights[j] * v[j][d];
        }
        head.weights.push_back(std::move(weights));
        head.context.push_back(std::move(context));
    }
    return head;
}

// Products of `count` columns from `at` on, divided by their square root.
Matrix scores_of(const Matrix& q, const Matrix& k, size_t at, size_t count) {
    Matrix scores(q.size(), std::vector<double>(k.size(), 0.0));
    for (size_t i = 0; i < q.size(); ++i)
        for (size_t j = 0; j < k.size(); ++j)
            for (size_t d = 0; d < count; ++d)
                scores[i][j] += q[i][at + d] * k[j][at + d] / std::sqrt(double(count));
    return scores;
}

void expect_near(const Result<F32Tensor>& actual, const Matrix& expected, const char* what,
                 size_t first_column = 0) {
    ASSERT_TRUE(actual) << actual.error().text;
    ASSERT_EQ(actual->rows(), expected.size()) << what;
    for (size_t i = 0; i < expected.size(); ++i)
        for (size_t j = 0; j < expected[i].size(); ++j)
            EXPECT_NEAR(actual->row(i)[first_column + j], expected[i][j], 1e-5)
                << what << " row " << i << " column " << j;
}

F32Tensor drawn(TorchGenerator& generator, Shape shape) {
    F32Tensor x(std::move(shape));
    generator.randn(x.values);
    return x;
}

AttentionPart random_part(TorchGenerator& generator, uint64_t d_in, uint64_t d_out, bool bias, bool causal) {
    AttentionPart part;
    for (Linear* layer : {&part.query, &part.key, &part.value})
        *layer = make_linear(generator, d_in, d_out, bias);
    part.rules.causal = causal;
    return part;
}

Result<Trace> trace_of(const AttentionPart& part, ModelInput input) {
    const auto model = std::make_shared<Model>();
    model->blocks.emplace_back().attention = part;
    return Trace::open(model, std::move(input));
}
ModelInput input_of(const F32Tensor& x) {
    ModelInput input;
    input.x = x;
    return input;
}

TEST(SelfAttention, agrees_with_float64_in_both_layouts_with_and_without_bias) {
    for (const bool bias : {false, true})
        for (const bool causal : {false, true}) {
            TorchGenerator generator(7);
            AttentionPart part = random_part(generator, 5, 4, bias, causal);
            const F32Tensor x = drawn(generator, {6, 5});
            Result<Trace> trace = trace_of(part, input_of(x));
            ASSERT_TRUE(trace) << trace.error().text;
            const Matrix rows = matrix_of(x);
            const Head head =
                attend_in_double(scores_of(project(rows, part.query), project(rows, part.key), 0, 4),
                                 project(rows, part.value), causal);
            expect_near(trace->stage(StageId::weights), head.weights, "weights");
            expect_near(trace->stage(StageId::context), head.context, "context");
            // The same weights stored the other way round.
            for (Linear* layer : {&part.query, &part.key, &part.value})
                *layer = {transposed(layer->weight), WeightLayout::in_out, layer->bias};
            EXPECT_EQ(*trace_of(part, input_of(x))->stage(StageId::context), *trace->stage(StageId::context));
        }
}

TEST(SelfAttention, renormalising_after_the_softmax_is_the_causal_mask) {
    TorchGenerator generator(7);
    AttentionPart part = random_part(generator, 4, 4, false, true);
    const F32Tensor x = drawn(generator, {6, 4});
    const F32Tensor before = *trace_of(part, input_of(x))->stage(StageId::weights);
    part.rules.route = MaskRoute::after;
    const F32Tensor after = *trace_of(part, input_of(x))->stage(StageId::weights);
    for (size_t i = 0; i < before.values.size(); ++i) EXPECT_NEAR(before.values[i], after.values[i], 2e-6);
}

TEST(SelfAttention, without_projections_the_rows_attend_to_themselves) {
    const F32Tensor x({2, 1}, {20.0f, 1.0f});  // exp(400) is beyond float32: the largest is subtracted first
    AttentionPart part;
    part.rules.scale = "none";
    EXPECT_NEAR(trace_of(part, input_of(x))->stage(StageId::context)->values[0], 20.0f, 1e-5);
}

TEST(MultiHeadAttention, splitting_is_stacking_with_joined_weights) {
    TorchGenerator generator(7);
    const AttentionPart heads[] = {random_part(generator, 5, 3, true, true),
                                   random_part(generator, 5, 3, true, true)};
    AttentionPart split = heads[0];
    split.heads = split.kv_heads = 2;
    for (const auto projection : {&AttentionPart::query, &AttentionPart::key, &AttentionPart::value}) {
        const Linear& other = heads[1].*projection;
        Linear& joined = split.*projection;
        joined.weight.shape[0] = joined.bias.shape[0] = 6;
        joined.weight.values.insert(joined.weight.values.end(), other.weight.values.begin(),
                                    other.weight.values.end());
        joined.bias.values.insert(joined.bias.values.end(), other.bias.values.begin(),
                                  other.bias.values.end());
    }
    const F32Tensor x = drawn(generator, {7, 5});
    const F32Tensor contexts[] = {*trace_of(heads[0], input_of(x))->stage(StageId::context),
                                  *trace_of(heads[1], input_of(x))->stage(StageId::context)};
    EXPECT_EQ(*trace_of(split, input_of(x))->stage(StageId::context), concat_columns(contexts));
}

TEST(MultiHeadAttention, attends_to_another_sequence) {
    TorchGenerator generator(7);
    AttentionPart part;
    part.heads = part.kv_heads = 2;
    part.query = make_linear(generator, 4, 6, false), part.key = make_linear(generator, 5, 6, false);
    part.value = make_linear(generator, 5, 4, false), part.output = make_linear(generator, 4, 3, true);
    ModelInput input = input_of(drawn(generator, {3, 4}));
    input.memory = drawn(generator, {7, 5});
    Result<Trace> trace = trace_of(part, input);
    ASSERT_TRUE(trace) << trace.error().text;
    EXPECT_EQ(trace->keys(), 7u);
    const Matrix q = project(matrix_of(input.x), part.query), m = matrix_of(input.memory);
    const Matrix k = project(m, part.key), v = project(m, part.value);
    for (uint32_t h = 0; h < 2; ++h) {
        Matrix values;
        for (const auto& row : v) values.emplace_back(row.begin() + 2 * h, row.begin() + 2 * h + 2);
        const Head head = attend_in_double(scores_of(q, k, h * 3, 3), values, false);
        expect_near(trace->stage(StageId::weights, h), head.weights, "weights");
        expect_near(trace->stage(StageId::context), head.context, "context", h * 2);
    }
    input.memory = drawn(generator, {2, 7, 5});
    EXPECT_EQ(trace_of(part, input).error().field, "memory");
    input.memory = drawn(generator, {7, 4});
    EXPECT_EQ(trace_of(part, input).error().text, "key has 5 columns; it must have 4, as its input");
}

TEST(JointProjection, is_three_in_both_layouts) {
    TorchGenerator generator(7);
    const Linear joint = make_linear(generator, 4, 12, true);
    const Linear turned{transposed(joint.weight), WeightLayout::in_out, joint.bias};
    const F32Tensor x = drawn(generator, {5, 4}), all = strict::linear(x, joint);
    for (const Linear& one : {joint, turned}) {
        const AttentionPart part = joint_projection(one);
        const Linear* parts[] = {&part.query, &part.key, &part.value};
        for (uint64_t p = 0; p < 3; ++p)
            EXPECT_EQ(strict::linear(x, *parts[p]), slice_columns(all, p * 4, 4)) << p;
    }
}

TEST(Rope, a_product_depends_on_the_distance_alone) {
    TorchGenerator generator(7);
    const F32Tensor q = drawn(generator, {1, 8}), k = drawn(generator, {1, 8});
    for (const bool interleaved : {false, true}) {
        const auto product = [&](uint64_t q_position, uint64_t k_position) {
            return strict::dot(strict::rotated(q, {100.0, interleaved, q_position}).values,
                               strict::rotated(k, {100.0, interleaved, k_position}).values);
        };
        EXPECT_NEAR(product(9, 4), product(25, 20), 1e-5);
        EXPECT_NEAR(product(0, 0), strict::dot(q.values, k.values), 1e-6);
        EXPECT_GT(std::fabs(product(9, 4) - product(9, 5)), 1e-3);
    }
}

TEST(Rope, heads_are_turned_row_by_row_from_the_first_position_on) {
    TorchGenerator generator(8);
    const F32Tensor x = drawn(generator, {2, 3, 4});
    const F32Tensor turned = strict::rotated(x, {500.0, false, 2});
    for (uint64_t row = 0; row < 6; ++row)
        for (uint64_t n = 0; n < 2; ++n) {
            const double angle = double(row % 3 + 2) * std::pow(500.0, -double(n) / 2.0);
            const double a = x.row(row)[n], b = x.row(row)[n + 2];
            EXPECT_NEAR(turned.row(row)[n], a * std::cos(angle) - b * std::sin(angle), 1e-6);
            EXPECT_NEAR(turned.row(row)[n + 2], b * std::cos(angle) + a * std::sin(angle), 1e-6);
        }
}

TEST(AdditiveAttention, agrees_with_float64) {
    TorchGenerator generator(7);
    const Linear query = make_linear(generator, 4, 6, false), key = make_linear(generator, 3, 6, true);
    const F32Tensor v = drawn(generator, {6}), x = drawn(generator, {5, 4}),
                    memory = drawn(generator, {7, 3});
    Result<ModelInput> input = additive_input(query, key, v, x, memory);
    ASSERT_TRUE(input) << input.error().text;
    AttentionPart part;
    part.rules.scale = "none";
    Result<Trace> trace = trace_of(part, std::move(*input));
    ASSERT_TRUE(trace) << trace.error().text;
    const Matrix values = matrix_of(memory), q = project(matrix_of(x), query), k = project(values, key);
    Matrix scores(5, std::vector<double>(7, 0.0));
    for (size_t i = 0; i < 5; ++i)
        for (size_t j = 0; j < 7; ++j)
            for (size_t n = 0; n < 6; ++n) scores[i][j] += v.values[n] * std::tanh(q[i][n] + k[j][n]);
    const Head head = attend_in_double(scores, values, false);
    expect_near(trace->stage(StageId::masked), scores, "scores");
    expect_near(trace->stage(StageId::weights), head.weights, "weights");
    expect_near(trace->stage(StageId::context), head.context, "context");
    const Result<ModelInput> refused = additive_input(query, key, F32Tensor(Shape{5}), x, memory);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text, "v is 5 wide; query needs 6");
}

TEST(StrictOrder, a_row_without_a_key_gives_zeros_and_hidden_values_have_no_say) {
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    ModelInput input;
    input.q = F32Tensor({1, 2, 1}, {1, 1});
    input.k = F32Tensor({1, 2, 1}, {1, std::numeric_limits<float>::quiet_NaN()});
    input.v = F32Tensor({1, 2, 1}, {3, std::numeric_limits<float>::infinity()});
    input.extras.bias_heads = 1, input.extras.bias_rows = 2;
    input.extras.bias = {0, kHidden, kHidden, kHidden};
    Result<Trace> trace = trace_of({}, input);
    ASSERT_TRUE(trace) << trace.error().text;
    EXPECT_EQ(trace->stage(StageId::context)->values, (std::vector<float>{3, 0}));
    EXPECT_EQ(trace->stage(StageId::lse)->values, (std::vector<float>{1, kHidden}));
    EXPECT_EQ(trace->stage(StageId::weights)->values, (std::vector<float>{1, 0, 0, 0}));
}

}  // namespace
}  // namespace fovea

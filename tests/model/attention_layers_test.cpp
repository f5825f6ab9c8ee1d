#include <gtest/gtest.h>
#include <fovea/model.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea {
namespace {

// A second path, in float64 and with indices instead of helpers: what one head of one batch entry should
// give.
struct Head {
    std::vector<std::vector<double>> weights, context;
};

using Matrix = std::vector<std::vector<double>>;

Matrix matrix_of(const F32Tensor& tensor, uint64_t first_row, uint64_t rows, uint64_t first_column,
                 uint64_t columns) {
    Matrix result(rows, std::vector<double>(columns));
    for (uint64_t i = 0; i < rows; ++i) {
        for (uint64_t j = 0; j < columns; ++j) result[i][j] = tensor.row(first_row + i)[first_column + j];
    }
    return result;
}

// y = x W^T + b
Matrix project(const Matrix& x, const Linear& layer) {
    Matrix y(x.size(), std::vector<double>(layer.d_out()));
    for (size_t i = 0; i < x.size(); ++i) {
        for (size_t o = 0; o < layer.d_out(); ++o) {
            y[i][o] = layer.has_bias() ? layer.bias.values[o] : 0.0;
            for (size_t d = 0; d < layer.d_in(); ++d) {
                const bool out_in = layer.layout == WeightLayout::out_in;
                y[i][o] +=
                    x[i][d] * layer.weight.values[out_in ? o * layer.d_in() + d : d * layer.d_out() + o];
            }
        }
    }
    return y;
}

Matrix columns_of(const Matrix& m, size_t first, size_t count) {
    Matrix result;
    for (const auto& row : m) result.emplace_back(row.begin() + first, row.begin() + first + count);
    return result;
}

Head attend_in_double(const Matrix& q, const Matrix& k, const Matrix& v, double scale, bool causal) {
    Head head;
    for (size_t i = 0; i < q.size(); ++i) {
        std::vector<double> weights(k.size(), 0.0);
        double sum = 0.0;
        for (size_t j = 0; j < k.size() && (!causal || j <= i); ++j) {
            double score = 0.0;
            for (size_t d = 0; d < q[i].size(); ++d) score += q[i][d] * k[j][d];
            weights[j] = std::exp(score * scale);
            sum += weights[j];
        }
        std::vector<double> context(v[0].size(), 0.0);
        for (size_t j = 0; j < k.size(); ++j) {
            weights[j] /= sum;
            for (size_t d = 0; d < context.size(); ++d) context[d] += weights[j] * v[j][d];
        }
        head.weights.push_back(std::move(weights));
        head.context.push_back(std::move(context));
    }
    return head;
}

void expect_near(std::span<const float> actual, const std::vector<double>& expected, const char* what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (size_t i = 0; i < actual.size(); ++i) {
        EXPECT_NEAR(actual[i], expected[i], 1e-5) << what << " element " << i;
    }
}

F32Tensor random_input(TorchGenerator& generator, Shape shape) {
    F32Tensor x(std::move(shape));
    generator.randn(x.values);
    return x;
}

AttentionOptions options(double divisor, bool causal) {
    AttentionOptions result;
    result.scale = ScoreScale::divided_by(divisor);
    result.causal = causal;
    return result;
}

SelfAttention random_head(TorchGenerator& generator, uint64_t d_in, uint64_t d_out, bool causal, bool bias) {
    SelfAttention layer;
    layer.query = make_linear(generator, d_in, d_out, bias);
    layer.key = make_linear(generator, d_in, d_out, bias);
    layer.value = make_linear(generator, d_in, d_out, bias);
    layer.options = options(std::sqrt(static_cast<double>(d_out)), causal);
    return layer;
}

TEST(SelfAttention, agrees_with_float64_in_both_layouts_with_and_without_bias) {
    for (const bool bias : {false, true}) {
        for (const bool causal : {false, true}) {
            TorchGenerator generator(7);
            const SelfAttention layer = random_head(generator, 5, 4, causal, bias);
            const F32Tensor x = random_input(generator, {2, 6, 5});
            StrictExecutor strict;
            LayerTrace trace = LayerTrace::everything();
            const Result<F32Tensor> context = layer.forward(strict, x, trace);
            ASSERT_TRUE(context);
            EXPECT_EQ(context->shape, (Shape{2, 6, 4}));
            for (uint64_t b = 0; b < 2; ++b) {
                const Matrix rows = matrix_of(x, b * 6, 6, 0, 5);
                const Head head = attend_in_double(project(rows, layer.query), project(rows, layer.key),
                                                   project(rows, layer.value), 0.5, causal);
                for (uint64_t i = 0; i < 6; ++i) {
                    expect_near(context->row(b * 6 + i), head.context[i], "context");
                    expect_near(trace.find("weights")->row(b * 6 + i), head.weights[i], "weights");
                }
            }
            // The same weights stored the other way round.
            SelfAttention other = layer;
            for (Linear* linear : {&other.query, &other.key, &other.value}) {
                linear->weight = transposed(linear->weight);
                linear->layout = WeightLayout::in_out;
            }
            LayerTrace nothing = LayerTrace::nothing();
            EXPECT_EQ(*other.forward(strict, x, nothing), *context);
            EXPECT_TRUE(nothing.stages().empty());
        }
    }
}

TEST(SelfAttention, names_its_stages_in_the_order_of_mask_and_scale) {
    const auto names = [](MaskOrder order, bool causal) {
        TorchGenerator generator(7);
        SelfAttention layer = random_head(generator, 3, 2, causal, false);
        layer.options.order = order;
        StrictExecutor strict;
        LayerTrace trace = LayerTrace::everything();
        EXPECT_TRUE(layer.forward(strict, random_input(generator, {4, 3}), trace));
        std::string text;
        for (const LayerStage& stage : trace.stages()) text += stage.name + " ";
        return text;
    };
    EXPECT_EQ(names(MaskOrder::scale_first, false),
              "queries keys values scores scaled_scores weights context ");
    EXPECT_EQ(names(MaskOrder::scale_first, true),
              "queries keys values scores scaled_scores masked_scores weights context ");
    EXPECT_EQ(names(MaskOrder::mask_first, true),
              "queries keys values scores masked_scores scaled_masked_scores weights context ");
}

TEST(SelfAttention, a_batch_entry_does_not_depend_on_the_others) {
    TorchGenerator generator(7);
    const SelfAttention layer = random_head(generator, 3, 2, true, false);
    const F32Tensor x = random_input(generator, {3, 5, 3});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::nothing();
    const F32Tensor all = *layer.forward(strict, x, trace);
    for (uint64_t b = 0; b < 3; ++b) {
        const auto values = std::span(x.values).subspan(b * 15, 15);
        const F32Tensor one =
            *layer.forward(strict, F32Tensor({5, 3}, {values.begin(), values.end()}), trace);
        EXPECT_EQ(one.shape, (Shape{5, 2}));
        EXPECT_TRUE(
            std::equal(one.values.begin(), one.values.end(), all.values.begin() + 10 * static_cast<long>(b)));
    }
}

TEST(SelfAttention, a_context_length_larger_than_the_input_changes_nothing_a_smaller_one_is_refused) {
    TorchGenerator generator(7);
    SelfAttention layer = random_head(generator, 3, 2, true, false);
    const F32Tensor x = random_input(generator, {5, 3});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::nothing();
    const F32Tensor free = *layer.forward(strict, x, trace);
    layer.options.context_length = 1024;
    EXPECT_EQ(*layer.forward(strict, x, trace), free);
    layer.options.context_length = 4;
    const Result<F32Tensor> refused = layer.forward(strict, x, trace);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "x");
    EXPECT_EQ(refused.error().text, "x has 5 tokens; the context length is 4");
}

TEST(SelfAttention, renormalising_after_the_softmax_is_the_causal_mask) {
    TorchGenerator generator(7);
    const SelfAttention layer = random_head(generator, 4, 4, true, false);
    const F32Tensor x = random_input(generator, {2, 6, 4});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::everything();
    const F32Tensor before = *layer.forward(strict, x, trace);
    const F32Tensor after = *layer.forward_renormalised(strict, x, trace);
    ASSERT_EQ(before.shape, after.shape);
    for (size_t i = 0; i < before.values.size(); ++i) EXPECT_NEAR(before.values[i], after.values[i], 2e-6);
}

TEST(SelfAttention, sizes_that_do_not_fit_are_refused_with_both) {
    TorchGenerator generator(7);
    SelfAttention layer = random_head(generator, 3, 2, true, false);
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::nothing();
    const auto text_for = [&](const F32Tensor& x) {
        const Result<F32Tensor> result = layer.forward(strict, x, trace);
        return result ? std::string("accepted") : result.error().text;
    };
    EXPECT_EQ(text_for(F32Tensor({5, 4})), "x is 4 wide; the layer takes 3");
    EXPECT_EQ(text_for(F32Tensor(Shape{3})),
              "x has 1 dimensions; it must be [tokens, d_in] or [batch, tokens, d_in]");
    layer.key = make_linear(generator, 3, 4, false);
    EXPECT_EQ(text_for(F32Tensor({5, 3})), "key is 4 wide; query needs 2");
    layer.key = make_linear(generator, 2, 2, false);
    EXPECT_EQ(text_for(F32Tensor({5, 3})), "key takes 2 columns; the input has 3");
}

TEST(Training, evaluation_and_p_of_zero_drop_and_draw_nothing) {
    TorchGenerator generator(7);
    SelfAttention layer = random_head(generator, 3, 2, true, false);
    const F32Tensor x = random_input(generator, {5, 3});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::everything();
    const F32Tensor plain = *layer.forward(strict, x, trace);

    layer.options.dropout_p = 0.5;
    EXPECT_EQ(*layer.forward(strict, x, trace), plain);

    layer.options.dropout_p = 0.0;
    TorchGenerator used(11);
    const Training training{.dropout = Training::Dropout::torch_native, .generator = &used};
    EXPECT_EQ(*layer.forward(strict, x, trace, training), plain);
    EXPECT_EQ(used.next_word(), TorchGenerator(11).next_word());
    EXPECT_EQ(trace.find("dropped"), nullptr);
}

TEST(Training, drops_what_the_mask_says_and_scales_the_rest) {
    TorchGenerator generator(7);
    SelfAttention layer = random_head(generator, 3, 2, false, false);
    layer.options.dropout_p = 0.5;
    const F32Tensor x = random_input(generator, {6, 3});
    StrictExecutor strict;
    for (const auto kind : {Training::Dropout::torch_native, Training::Dropout::torch_mkl}) {
        TorchGenerator drawn(123), again(123);
        LayerTrace trace = LayerTrace::everything();
        const Result<F32Tensor> context =
            layer.forward(strict, x, trace, {.dropout = kind, .generator = &drawn});
        ASSERT_TRUE(context);
        std::vector<uint8_t> mask(36);
        if (kind == Training::Dropout::torch_mkl) {
            again.keep_mask_mkl(mask, 0.5);
        } else {
            again.keep_mask_native(mask, 0.5);
        }
        const F32Tensor &weights = *trace.find("weights"), &dropped = *trace.find("dropped");
        for (size_t i = 0; i < 36; ++i) {
            EXPECT_EQ(trace.find("keep")->values[i], static_cast<float>(mask[i]));
            EXPECT_EQ(dropped.values[i], mask[i] != 0 ? weights.values[i] * 2.0f : 0.0f);
        }
    }
}

TEST(Training, a_missing_generator_is_refused) {
    TorchGenerator generator(7);
    SelfAttention layer = random_head(generator, 3, 2, false, false);
    layer.options.dropout_p = 0.5;
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::nothing();
    const F32Tensor x({6, 3});
    const Result<F32Tensor> refused =
        layer.forward(strict, x, trace, {.dropout = Training::Dropout::torch_native});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "generator");
    EXPECT_EQ(layer.forward(strict, x, trace, {.dropout = Training::Dropout::counter}).error().field,
              "dropout_p");
}

TEST(SimplifiedAttention, three_ways_to_normalise) {
    const F32Tensor x({3, 2}, {0.5f, 0.25f, 0.75f, 1.0f, 0.125f, 0.5f});
    StrictExecutor strict;
    const auto weights = [&](Normalisation normalisation) {
        LayerTrace trace = LayerTrace::everything();
        const Result<F32Tensor> context = simplified_attention(strict, x, normalisation, trace);
        EXPECT_TRUE(context);
        EXPECT_EQ(context->shape, x.shape);
        const F32Tensor w = *trace.find("weights");
        for (uint64_t i = 0; i < 3; ++i) {
            EXPECT_NEAR(strict::sum(w.row(i)), 1.0f, 1e-6);
            for (uint64_t d = 0; d < 2; ++d) {
                const float expected =
                    w.row(i)[0] * x.row(0)[d] + w.row(i)[1] * x.row(1)[d] + w.row(i)[2] * x.row(2)[d];
                EXPECT_NEAR(context->row(i)[d], expected, 1e-6);
            }
        }
        return w;
    };
    const F32Tensor softmax = weights(Normalisation::softmax), naive = weights(Normalisation::naive_softmax);
    const F32Tensor by_sum = weights(Normalisation::sum);
    for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(softmax.values[i], naive.values[i], 1e-6);
    const float scores[] = {0.3125f, 0.625f, 0.1875f};  // of the first row
    for (size_t j = 0; j < 3; ++j) EXPECT_NEAR(by_sum.values[j], scores[j] / 1.125f, 1e-6);
}

TEST(SimplifiedAttention, only_softmax_stands_large_scores) {
    const F32Tensor x({2, 1}, {20.0f, 1.0f});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::nothing();
    EXPECT_TRUE(std::isnan(simplified_attention(strict, x, Normalisation::naive_softmax, trace)->values[0]));
    EXPECT_NEAR(simplified_attention(strict, x, Normalisation::softmax, trace)->values[0], 20.0f, 1e-5);
}

TEST(MultiHeadAttention, splitting_is_stacking_with_joined_weights) {
    TorchGenerator generator(7);
    StackedHeads stacked{
        {random_head(generator, 5, 3, true, true), random_head(generator, 5, 3, true, true)}};
    MultiHeadAttention split;
    split.head_count = 2;
    split.options = stacked.heads[0].options;
    const auto join = [](const Linear& a, const Linear& b) {
        Linear joined{F32Tensor({6, 5}, a.weight.values), WeightLayout::out_in,
                      F32Tensor({6}, a.bias.values)};
        joined.weight.values.insert(joined.weight.values.end(), b.weight.values.begin(),
                                    b.weight.values.end());
        joined.bias.values.insert(joined.bias.values.end(), b.bias.values.begin(), b.bias.values.end());
        return joined;
    };
    split.query = join(stacked.heads[0].query, stacked.heads[1].query);
    split.key = join(stacked.heads[0].key, stacked.heads[1].key);
    split.value = join(stacked.heads[0].value, stacked.heads[1].value);
    split.output = make_linear(generator, 6, 4, true);
    const F32Tensor x = random_input(generator, {2, 7, 5});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::everything();
    const Result<F32Tensor> output = split.forward(strict, x, trace);
    ASSERT_TRUE(output) << output.error().text;
    EXPECT_EQ(output->shape, (Shape{2, 7, 4}));
    LayerTrace nothing = LayerTrace::nothing();
    EXPECT_EQ(*stacked.forward(strict, x, nothing), *trace.find("context"));
    EXPECT_EQ(trace.find("weights")->shape, (Shape{2, 2, 7, 7}));
}

TEST(MultiHeadAttention, attends_to_another_sequence) {
    TorchGenerator generator(7);
    MultiHeadAttention layer;
    layer.head_count = 2;
    layer.query = make_linear(generator, 4, 6, false);
    layer.key = make_linear(generator, 5, 6, false);
    layer.value = make_linear(generator, 5, 4, false);
    layer.output = make_linear(generator, 4, 3, true);
    layer.options = options(std::sqrt(3.0), false);
    const F32Tensor x = random_input(generator, {3, 4}), memory = random_input(generator, {7, 5});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::everything();
    const Result<F32Tensor> output = layer.forward(strict, x, memory, trace);
    ASSERT_TRUE(output) << output.error().text;
    const Matrix q = project(matrix_of(x, 0, 3, 0, 4), layer.query), m = matrix_of(memory, 0, 7, 0, 5);
    const Matrix k = project(m, layer.key), v = project(m, layer.value);
    EXPECT_EQ(trace.find("weights")->shape, (Shape{2, 3, 7}));
    for (size_t h = 0; h < 2; ++h) {
        const Head head = attend_in_double(columns_of(q, h * 3, 3), columns_of(k, h * 3, 3),
                                           columns_of(v, h * 2, 2), 1.0 / std::sqrt(3.0), false);
        for (size_t i = 0; i < 3; ++i) {
            expect_near(trace.find("context")->row(i).subspan(h * 2, 2), head.context[i], "context");
        }
    }
    const Result<F32Tensor> refused = layer.forward(strict, x, random_input(generator, {2, 7, 5}), trace);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "memory");
}

TEST(MultiHeadAttention, a_width_that_the_heads_do_not_divide_is_refused) {
    TorchGenerator generator(7);
    MultiHeadAttention layer;
    layer.query = layer.key = layer.value = make_linear(generator, 4, 6, false);
    layer.output = make_linear(generator, 6, 6, false);
    layer.head_count = 4;
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::nothing();
    const Result<F32Tensor> refused = layer.forward(strict, F32Tensor({3, 4}), trace);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text, "head_count is 4; it must divide the width of query, 6");
    layer.head_count = 3;
    layer.output = make_linear(generator, 5, 6, false);
    EXPECT_EQ(layer.forward(strict, F32Tensor({3, 4}), trace).error().text,
              "output takes 5 columns; the heads' contexts have 6");
}

TEST(GptAttention, one_projection_is_three) {
    TorchGenerator generator(7);
    for (const WeightLayout layout : {WeightLayout::out_in, WeightLayout::in_out}) {
        GptAttention gpt;
        gpt.head_count = 2;
        gpt.c_attn = make_linear(generator, 4, 12, true);
        gpt.c_proj = make_linear(generator, 4, 4, true);
        gpt.options = options(std::sqrt(2.0), true);
        MultiHeadAttention split;
        split.head_count = 2;
        split.options = gpt.options;
        split.output = gpt.c_proj;
        Linear* parts[] = {&split.query, &split.key, &split.value};
        for (size_t p = 0; p < 3; ++p) {
            const auto weight = std::span(gpt.c_attn.weight.values).subspan(p * 16, 16);
            const auto bias = std::span(gpt.c_attn.bias.values).subspan(p * 4, 4);
            parts[p]->weight = F32Tensor({4, 4}, {weight.begin(), weight.end()});
            parts[p]->bias = F32Tensor({4}, {bias.begin(), bias.end()});
        }
        if (layout == WeightLayout::in_out) {  // as GPT-2's Conv1D stores it
            gpt.c_attn = {transposed(gpt.c_attn.weight), layout, gpt.c_attn.bias};
            gpt.c_proj = {transposed(gpt.c_proj.weight), layout, gpt.c_proj.bias};
        }
        const F32Tensor x = random_input(generator, {2, 5, 4});
        StrictExecutor strict;
        LayerTrace trace = LayerTrace::nothing();
        const Result<F32Tensor> joint = gpt.forward(strict, x, trace);
        ASSERT_TRUE(joint) << joint.error().text;
        EXPECT_EQ(*joint, *split.forward(strict, x, trace));
    }
}

// Turns pair (n, n + D/2) of a row by position * theta^(-2n/D), in float64.
void rotate(Matrix& rows, double theta) {
    for (size_t i = 0; i < rows.size(); ++i) {
        const size_t half = rows[i].size() / 2;
        for (size_t n = 0; n < half; ++n) {
            const double angle =
                static_cast<double>(i) * std::pow(theta, -static_cast<double>(n) / static_cast<double>(half));
            const double a = rows[i][n], b = rows[i][n + half];
            rows[i][n] = a * std::cos(angle) - b * std::sin(angle);
            rows[i][n + half] = b * std::cos(angle) + a * std::sin(angle);
        }
    }
}

TEST(GroupedQueryAttention, agrees_with_float64) {
    TorchGenerator generator(7);
    GroupedQueryAttention layer;
    layer.head_count = 4;
    layer.kv_head_count = 2;
    layer.query = make_linear(generator, 8, 16, false);
    layer.key = make_linear(generator, 8, 8, false);
    layer.value = make_linear(generator, 8, 8, false);
    layer.output = make_linear(generator, 16, 8, false);
    layer.rope.theta = 500.0;
    layer.options = options(2.0, true);
    const F32Tensor x = random_input(generator, {6, 8});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::everything();
    const Result<F32Tensor> output = layer.forward(strict, x, trace);
    ASSERT_TRUE(output) << output.error().text;
    EXPECT_EQ(trace.find("keys_rotated")->shape, (Shape{2, 6, 4}));
    const Matrix rows = matrix_of(x, 0, 6, 0, 8);
    const Matrix q = project(rows, layer.query), k = project(rows, layer.key), v = project(rows, layer.value);
    for (size_t h = 0; h < 4; ++h) {
        Matrix queries = columns_of(q, h * 4, 4), keys = columns_of(k, h / 2 * 4, 4);
        rotate(queries, 500.0);
        rotate(keys, 500.0);
        const Head head = attend_in_double(queries, keys, columns_of(v, h / 2 * 4, 4), 0.5, true);
        for (size_t i = 0; i < 6; ++i) {
            expect_near(trace.find("context")->row(i).subspan(h * 4, 4), head.context[i], "context");
            expect_near(trace.find("weights")->row(h * 6 + i), head.weights[i], "weights");
        }
    }
}

TEST(GroupedQueryAttention, heads_that_do_not_divide_and_odd_widths_are_refused) {
    TorchGenerator generator(7);
    GroupedQueryAttention layer;
    layer.query = layer.key = layer.value = make_linear(generator, 6, 6, false);
    layer.output = make_linear(generator, 6, 6, false);
    layer.head_count = 3;
    layer.kv_head_count = 2;
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::nothing();
    const F32Tensor x({2, 6});
    EXPECT_EQ(layer.forward(strict, x, trace).error().field, "kv_head_count");
    layer.head_count = layer.kv_head_count = 2;
    EXPECT_EQ(layer.forward(strict, x, trace).error().field, "head_dim");
    layer.head_count = layer.kv_head_count = 3;
    EXPECT_TRUE(layer.forward(strict, x, trace));
}

TEST(Rope, a_product_depends_on_the_distance_alone) {
    TorchGenerator generator(7);
    const F32Tensor q = random_input(generator, {1, 1, 1, 8}), k = random_input(generator, {1, 1, 1, 8});
    StrictExecutor strict;
    for (const bool interleaved : {false, true}) {
        const auto product = [&](uint64_t q_position, uint64_t k_position) {
            const Rope of_q{100.0, interleaved, q_position}, of_k{100.0, interleaved, k_position};
            return strict::dot(strict.rope(q, of_q)->values, strict.rope(k, of_k)->values);
        };
        EXPECT_NEAR(product(9, 4), product(25, 20), 1e-5);
        EXPECT_NEAR(product(0, 0), strict::dot(q.values, k.values), 1e-6);
        EXPECT_GT(std::fabs(product(9, 4) - product(9, 5)), 1e-3);
    }
}

TEST(AdditiveAttention, agrees_with_float64) {
    TorchGenerator generator(7);
    AdditiveAttention layer{make_linear(generator, 4, 6, false), make_linear(generator, 3, 6, true),
                            F32Tensor(Shape{6})};
    generator.randn(layer.v.values);
    const F32Tensor x = random_input(generator, {2, 5, 4}), memory = random_input(generator, {2, 7, 3});
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::everything();
    const Result<F32Tensor> context = layer.forward(strict, x, memory, trace);
    ASSERT_TRUE(context) << context.error().text;
    EXPECT_EQ(context->shape, (Shape{2, 5, 3}));
    for (uint64_t b = 0; b < 2; ++b) {
        const Matrix values = matrix_of(memory, b * 7, 7, 0, 3);
        const Matrix q = project(matrix_of(x, b * 5, 5, 0, 4), layer.query), k = project(values, layer.key);
        for (size_t i = 0; i < 5; ++i) {
            std::vector<double> scores(7, 0.0), weights(7), expected(3, 0.0);
            double sum = 0.0;
            for (size_t j = 0; j < 7; ++j) {
                for (size_t n = 0; n < 6; ++n) scores[j] += layer.v.values[n] * std::tanh(q[i][n] + k[j][n]);
                sum += weights[j] = std::exp(scores[j]);
            }
            for (size_t j = 0; j < 7; ++j) {
                weights[j] /= sum;
                for (size_t d = 0; d < 3; ++d) expected[d] += weights[j] * values[j][d];
            }
            expect_near(trace.find("scores")->row(b * 5 + i), scores, "scores");
            expect_near(trace.find("weights")->row(b * 5 + i), weights, "weights");
            expect_near(context->row(b * 5 + i), expected, "context");
        }
    }
    layer.v = F32Tensor(Shape{5});
    EXPECT_EQ(layer.forward(strict, x, memory, trace).error().field, "v");
}

TEST(LayerTrace, keeps_only_what_is_wanted) {
    TorchGenerator generator(7);
    const SelfAttention layer = random_head(generator, 3, 2, true, false);
    StrictExecutor strict;
    LayerTrace trace = LayerTrace::only({"weights", "head9.scores"});
    ASSERT_TRUE(layer.forward(strict, random_input(generator, {4, 3}), trace));
    ASSERT_EQ(trace.stages().size(), 1u);
    EXPECT_EQ(trace.stages()[0].name, "weights");
}

TEST(StrictExecutor, a_row_without_a_key_gives_zeros_and_hidden_values_have_no_say) {
    const F32Tensor q({1, 1, 2, 1}, {1, 1}), k({1, 1, 2, 1}, {1, std::numeric_limits<float>::quiet_NaN()});
    const F32Tensor v({1, 1, 2, 1}, {3, std::numeric_limits<float>::infinity()});
    const float hidden = -std::numeric_limits<float>::infinity();
    const F32Tensor bias({1, 1, 2, 2}, {0, hidden, hidden, hidden});
    AttentionProblem problem{.q = &q, .k = &k, .v = &v, .bias = &bias};
    problem.call.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_WEIGHTS;
    StrictExecutor strict;
    const Result<AttentionResult> result = strict.attention(problem);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->o.values, (std::vector<float>{3, 0}));
    EXPECT_EQ(result->lse.values, (std::vector<float>{1, hidden}));
    EXPECT_EQ(result->weights.values, (std::vector<float>{1, 0, 0, 0}));
}

}  // namespace
}  // namespace fovea

// Models in full, against float64 in plain loops that share nothing with the library.
#include "model/float64_parts.hpp"

#include <fovea/model.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace fovea {
namespace {

class Draw {
  public:
    explicit Draw(uint32_t seed) : random_(seed) {}
    F32Tensor tensor(Shape shape, double spread = 0.5) {
        F32Tensor t(std::move(shape));
        std::normal_distribution<double> normal(0.0, spread);
        for (float& value : t.values) value = float(normal(random_));
        return t;
    }
    Linear linear(uint64_t in, uint64_t out, bool bias, WeightLayout layout = WeightLayout::out_in) {
        Linear l;
        l.layout = layout;
        l.weight = tensor(layout == WeightLayout::out_in ? Shape{out, in} : Shape{in, out});
        if (bias) l.bias = tensor({out});
        return l;
    }

  private:
    std::mt19937 random_;
};

Matrix matrix(const F32Tensor& t) {
    Matrix m;
    for (uint64_t i = 0; i < t.rows(); ++i) m.emplace_back(t.row(i).begin(), t.row(i).end());
    return m;
}

Matrix norm(const Norm& n, Matrix x) {
    if (n.kind == NormKind::none) return x;
    for (std::vector<double>& row : x) {
        double mean = 0, square = 0;
        for (const double v : row) mean += v / double(row.size());
        if (n.kind == NormKind::rms) mean = 0;
        for (const double v : row) square += (v - mean) * (v - mean) / double(row.size());
        for (size_t c = 0; c < row.size(); ++c) {
            row[c] = (row[c] - mean) / std::sqrt(square + n.epsilon);
            if (!n.weight.values.empty()) row[c] *= double(n.weight.values[c]);
            if (!n.bias.values.empty()) row[c] += double(n.bias.values[c]);
        }
    }
    return x;
}

void turn(const Rope& rope, Matrix& x, size_t heads) {
    const size_t width = x[0].size() / heads;
    for (size_t i = 0; i < x.size(); ++i)
        for (size_t h = 0; h < heads; ++h)
            for (size_t n = 0; n < width / 2; ++n) {
                const double angle =
                    double(rope.first_position + i) * std::pow(rope.theta, -2.0 * double(n) / double(width));
                const size_t a = h * width + (rope.interleaved ? 2 * n : n),
                             b = rope.interleaved ? a + 1 : a + width / 2;
                const double p = x[i][a], q = x[i][b];
                x[i][a] = std::cos(angle) * p - std::sin(angle) * q;
                x[i][b] = std::sin(angle) * p + std::cos(angle) * q;
            }
}

Matrix block_in_float64(const Block& b, const Matrix& x) {
    const AttentionPart& a = b.attention;
    const Matrix in = norm(b.attention_norm, x);
    Matrix q = times(in, a.query), k = times(in, a.key), v = times(in, a.value);
    if (a.rope) turn(*a.rope, q, a.heads), turn(*a.rope, k, a.kv_heads);
    const size_t width = q[0].size() / a.heads, out = v[0].size() / a.kv_heads;
    Matrix context(x.size(), std::vector<double>(a.heads * out));
    for (size_t h = 0; h < a.heads; ++h)
        for (size_t i = 0; i < x.size(); ++i) {
            const size_t kv = h / (a.heads / a.kv_heads);
            std::vector<double> row(a.rules.causal ? i + 1 : x.size());
            for (size_t j = 0; j < row.size(); ++j)
                for (size_t c = 0; c < width; ++c) row[j] += q[i][h * width + c] * k[j][kv * width + c];
            for (double& s : row) s /= std::sqrt(double(width));
            softmax(row);
            for (size_t j = 0; j < row.size(); ++j)
                for (size_t c = 0; c < out; ++c) context[i][h * out + c] += row[j] * v[j][kv * out + c];
        }
    const auto plus = [&](Matrix y, const Matrix& to) {
        for (size_t i = 0; b.residual && i < y.size(); ++i)
            for (size_t c = 0; c < y[i].size(); ++c) y[i][c] += to[i][c];
        return y;
    };
    const Matrix sum = plus(times(context, a.output), x);
    const FeedForward& f = b.feed_forward;
    if (f.up.weight.rank() != 2) return sum;
    const Matrix normed = norm(b.feed_forward_norm, sum);
    Matrix hidden = times(normed, f.up), gate = times(normed, f.gate);
    for (size_t i = 0; i < hidden.size(); ++i)
        for (size_t c = 0; c < hidden[i].size(); ++c)
            hidden[i][c] = f.gate.weight.rank() == 2 ? act(f.activation, gate[i][c]) * hidden[i][c]
                                                     : act(f.activation, hidden[i][c]);
    return plus(times(hidden, f.down), sum);
}

Matrix logits_in_float64(const Model& m, const F32Tensor& input) {
    Matrix x = matrix(input);
    for (const Block& b : m.blocks) x = block_in_float64(b, x);
    return times(norm(m.final_norm, x), m.unembedding);
}

// The largest difference in a row over the largest number of that row.
double worst_row(const F32Tensor& actual, const Matrix& expected) {
    EXPECT_EQ(actual.rows(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < expected.size() && i < actual.rows(); ++i) {
        double largest = 1e-30, difference = 0;
        for (size_t c = 0; c < expected[i].size(); ++c) {
            largest = std::max(largest, std::abs(expected[i][c]));
            difference = std::max(difference, std::abs(double(actual.row(i)[c]) - expected[i][c]));
        }
        worst = std::max(worst, difference / largest);
    }
    return worst;
}

Norm drawn_norm(Draw& draw, NormKind kind, uint64_t width) {
    Norm n;
    n.kind = kind;
    n.weight = draw.tensor({width}, 1.0);
    if (kind == NormKind::layer) n.bias = draw.tensor({width});
    return n;
}

// GPT-2's kind: LayerNorm, learned positions, biases, gelu by tanh, Conv1D's layout.
Model gpt_like(Draw& draw, uint64_t width, uint32_t heads, uint64_t middle, size_t blocks) {
    Model m;
    m.embedding.table = draw.tensor({11, width});
    m.embedding.positions = draw.tensor({40, width}, 0.1);
    for (size_t n = 0; n < blocks; ++n) {
        Block& b = m.blocks.emplace_back();
        b.residual = true;
        b.attention_norm = drawn_norm(draw, NormKind::layer, width);
        b.feed_forward_norm = drawn_norm(draw, NormKind::layer, width);
        AttentionPart& a = b.attention;
        a.heads = a.kv_heads = heads;
        a.rules.causal = true;
        for (Linear* l : {&a.query, &a.key, &a.value, &a.output})
            *l = draw.linear(width, width, true, WeightLayout::in_out);
        b.feed_forward.up = draw.linear(width, middle, true, WeightLayout::in_out);
        b.feed_forward.down = draw.linear(middle, width, true, WeightLayout::in_out);
    }
    m.final_norm = drawn_norm(draw, NormKind::layer, width);
    m.unembedding = draw.linear(width, 11, false);
    return m;
}

// Like Llama: RMSNorm, rotary positions, grouped heads, a gate with silu; and biases only on q and k.
Model llama_like(Draw& draw, uint64_t width, bool interleaved) {
    Model m;
    for (size_t n = 0; n < 2; ++n) {
        Block& b = m.blocks.emplace_back();
        b.residual = true;
        b.attention_norm = drawn_norm(draw, NormKind::rms, width);
        b.feed_forward_norm = drawn_norm(draw, NormKind::rms, width);
        AttentionPart& a = b.attention;
        a.heads = 4, a.kv_heads = 2;
        a.rope = Rope{.theta = 500.0, .interleaved = interleaved, .first_position = 3};
        a.rules.causal = n == 0;
        a.query = draw.linear(width, 24, true), a.key = draw.linear(width, 12, true);
        a.value = draw.linear(width, 10, false), a.output = draw.linear(20, width, false);
        b.feed_forward.up = draw.linear(width, 17, false),
        b.feed_forward.gate = draw.linear(width, 17, false);
        b.feed_forward.down = draw.linear(17, width, false);
        b.feed_forward.activation = n == 0 ? Activation::silu : Activation::gelu;
    }
    m.final_norm = drawn_norm(draw, NormKind::rms, width);
    m.unembedding = draw.linear(width, 13, true);
    return m;
}

void expect_like_float64(const Model& model, const F32Tensor& x) {
    const auto shared = std::make_shared<const Model>(model);
    const Matrix expected = logits_in_float64(model, x);
    for (const Arithmetic arithmetic : {Arithmetic::strict, Arithmetic::engine}) {
        ModelInput input;
        input.x = x;
        Result<Trace> trace = Trace::open(shared, input, {arithmetic, nullptr});
        ASSERT_TRUE(trace) << trace.error().text;
        const Result<F32Tensor> logits = trace->stage(StageId::logits, 0, trace->layers() - 1);
        ASSERT_TRUE(logits) << logits.error().text;
        EXPECT_LT(worst_row(*logits, expected), 2e-5);
        Matrix likely = expected;
        for (std::vector<double>& row : likely) softmax(row);
        EXPECT_LT(worst_row(*trace->stage(StageId::probabilities, 0, trace->layers() - 1), likely), 2e-5);
    }
}

TEST(Transformer, a_gpt_of_three_blocks_gives_float64s_logits) {
    Draw draw(7);
    const Model model = gpt_like(draw, 12, 3, 30, 3);
    const uint32_t ids[] = {3, 0, 10, 3, 7, 7, 1};
    const Result<F32Tensor> x = embed(model, ids, 5);
    ASSERT_TRUE(x);
    EXPECT_FLOAT_EQ(x->row(2)[1], model.embedding.table.row(10)[1] + model.embedding.positions.row(7)[1]);
    expect_like_float64(model, *x);
}

TEST(Transformer, a_llama_of_two_blocks_gives_float64s_logits) {
    for (const bool interleaved : {false, true}) {
        Draw draw(8);
        const Model model = llama_like(draw, 9, interleaved);
        expect_like_float64(model, draw.tensor({8, 9}));
    }
}

TEST(Transformer, every_part_may_be_missing) {
    Draw draw(9);
    Model model;
    model.blocks.resize(2);
    model.blocks[1].feed_forward.up = draw.linear(5, 6, true);
    model.blocks[1].feed_forward.down = draw.linear(6, 3, true);
    model.blocks[1].feed_forward.activation = Activation::relu;
    model.unembedding = draw.linear(3, 4, false);
    expect_like_float64(model, draw.tensor({6, 5}));
}

TEST(Transformer, what_does_not_fit_is_refused_by_block_and_part) {
    Draw draw(10);
    const auto refusal = [&](auto&& change) {
        Model model = gpt_like(draw, 4, 2, 6, 2);
        change(model);
        ModelInput input;
        input.x = draw.tensor({3, 4});
        const Result<Trace> trace = Trace::open(std::make_shared<const Model>(model), input);
        return trace ? std::string("accepted") : trace.error().text;
    };
    EXPECT_EQ(refusal([](Model&) {}), "accepted");
    EXPECT_EQ(refusal([&](Model& m) { m.blocks[1].attention.query = draw.linear(5, 4, false); }),
              "block 1: query has 5 columns; it must have 4, as its input");
    EXPECT_EQ(refusal([&](Model& m) { m.blocks[0].attention.kv_heads = 3; }),
              "block 0: kv_heads is 3; it must divide heads, 2");
    EXPECT_EQ(refusal([&](Model& m) { m.blocks[0].attention_norm.weight = F32Tensor({3}); }),
              "block 0: attention_norm has 3 columns; it must have 4, as its input");
    EXPECT_EQ(refusal([&](Model& m) { m.blocks[1].feed_forward.down = Linear{}; }),
              "block 1: down is missing; a feed-forward part needs up and down");
    EXPECT_EQ(refusal([&](Model& m) { m.unembedding = draw.linear(5, 2, false); }),
              "unembedding has 5 columns; it must have 4, as its input");
    EXPECT_EQ(refusal([&](Model& m) { m.blocks[0].attention.output = draw.linear(4, 6, false); }),
              "block 0: output has 6 columns; it must have 4, the columns that it is added to");
    const uint32_t ids[] = {11};
    EXPECT_EQ(embed(gpt_like(draw, 4, 2, 6, 1), ids).error().text, "token 0 has the ID 11; the table has 11");
}

Trace open_session(const Session& s, Arithmetic arithmetic = Arithmetic::by_size) {
    Result<SessionModel> made = session_model(s);
    EXPECT_TRUE(made);
    Result<Trace> trace = Trace::open(made->model, made->input, {arithmetic, nullptr});
    EXPECT_TRUE(trace) << trace.error().text;
    return *trace;
}

// Rules of every kind, in both arithmetics: what the engine computes is what the strict order computes.
TEST(Traces, the_engine_agrees_with_the_strict_order_in_every_stage) {
    std::vector<Session> all;
    for (int level = 1; level <= 6; ++level) all.push_back(level_session(level));
    for (Session base : {level_session(5), level_session(6)}) {
        base.heads = 4, base.kv_heads = 2;
        base.softcap = 2, base.alibi = true, base.dropout_p = 0.4, base.temperature = 0.7;
        base.hidden_keys = {0}, base.windowed = true, base.window_right = 1, base.causal = false;
        for (const MaskPattern pattern : {MaskPattern::none, MaskPattern::prefix, MaskPattern::block})
            for (const MaskRoute route : {MaskRoute::before, MaskRoute::after})
                for (const DropoutRandom random : {DropoutRandom::mkl, DropoutRandom::counter}) {
                    base.pattern = pattern, base.route = route, base.dropout_random = random;
                    base.precision = random == DropoutRandom::mkl ? Precision::f16 : Precision::f32;
                    all.push_back(base);
                }
    }
    for (const Session& s : all) {
        Trace strict = open_session(s, Arithmetic::strict), engine = open_session(s, Arithmetic::engine);
        EXPECT_TRUE(strict.is_strict() && !engine.is_strict());
        for (const TraceStage& stage : strict.stages()) {
            const Result<F32Tensor> a = strict.whole_stage(stage.id), b = engine.whole_stage(stage.id);
            ASSERT_TRUE(a && b) << stage_name(stage.id) << (b ? "" : b.error().text);
            EXPECT_EQ(a->rows(), stage.heads * stage.rows) << stage_name(stage.id);
            EXPECT_EQ(a->columns(), stage.columns) << stage_name(stage.id);
            ASSERT_EQ(a->shape, b->shape);
            for (size_t i = 0; i < a->values.size(); ++i) {
                if (a->values[i] == b->values[i]) continue;
                ASSERT_NEAR(a->values[i], b->values[i], 4e-6)
                    << write_address(s) << " " << stage_name(stage.id) << " " << i;
            }
        }
    }
}

// The inputs for a map of one head: the head's part of the layer's call, without dropout.
TEST(Traces, a_prepared_head_is_its_part_of_the_layers_call) {
    Session s = level_session(6);
    s.heads = 4, s.kv_heads = 2;
    s.pattern = MaskPattern::prefix, s.alibi = true, s.dropout_p = 0.5;
    Trace trace = open_session(s);
    const Result<PreparedAttention> all = trace.prepare();
    ASSERT_TRUE(all);
    for (uint32_t head = 0; head < 4; ++head) {
        const Result<PreparedAttention> one = trace.prepare_head(head);
        ASSERT_TRUE(one) << one.error().text;
        EXPECT_EQ(one->call.heads_q, 1u);
        EXPECT_EQ(one->call.heads_kv, 1u);
        EXPECT_EQ(one->call.dropout_p, 0.0f);
        EXPECT_TRUE(one->inputs[FOVEA_BIND_DROPOUT_MASK].empty());
        const auto part = [&](FoveaBinding binding, uint32_t at, uint32_t count) {
            const std::vector<std::byte>& whole = all->inputs[binding];
            const size_t size = whole.size() / count;
            return std::vector<std::byte>(whole.begin() + int64_t(at * size),
                                          whole.begin() + int64_t((at + 1) * size));
        };
        EXPECT_EQ(one->inputs[FOVEA_BIND_Q], part(FOVEA_BIND_Q, head, 4)) << head;
        EXPECT_EQ(one->inputs[FOVEA_BIND_K], part(FOVEA_BIND_K, head / 2, 2)) << head;
        EXPECT_EQ(one->inputs[FOVEA_BIND_ALIBI], part(FOVEA_BIND_ALIBI, head, 4)) << head;
        EXPECT_EQ(one->inputs[FOVEA_BIND_MASK], all->inputs[FOVEA_BIND_MASK]);
    }
    EXPECT_EQ(trace.prepare_head(4).error().text, "head is 4; the layer has heads 0 to 3");
}

TEST(Traces, a_prepared_call_gives_the_layers_contexts_and_weights) {
    Session s = level_session(6);
    s.heads = 2, s.kv_heads = 1, s.alibi = true, s.pattern = MaskPattern::strided, s.dropout_p = 0.5;
    Trace trace = open_session(s);
    Result<PreparedAttention> made = trace.prepare();
    ASSERT_TRUE(made);
    std::vector<float> o(6 * 2), weights(2 * 36);
    made->call.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS;
    auto bindings = made->bindings();
    bindings[FOVEA_BIND_O] = {o.data(), o.size() * 4};
    bindings[FOVEA_BIND_WEIGHTS] = {weights.data(), weights.size() * 4};
    ASSERT_TRUE(make_cpu_runner()->attention(made->call, bindings.data()));
    const Result<F32Tensor> dropped = trace.whole_stage(StageId::dropped),
                            context = trace.stage(StageId::context);
    for (size_t i = 0; i < weights.size(); ++i) ASSERT_NEAR(weights[i], dropped->values[i], 1e-6);
    for (uint64_t i = 0; i < 6; ++i)
        for (uint64_t h = 0; h < 2; ++h) ASSERT_NEAR(o[h * 6 + i], context->row(i)[h], 1e-6);
}

TEST(Traces, what_a_device_computed_is_what_follows) {
    Trace trace = open_session(level_session(6));
    const F32Tensor before = *trace.stage(StageId::output);
    F32Tensor context = *trace.stage(StageId::context);
    for (float& value : context.values) value += 1.0f;
    ASSERT_TRUE(trace.supply_context(0, context));
    EXPECT_EQ(trace.stage(StageId::context)->values, context.values);
    EXPECT_NE(trace.stage(StageId::output)->values, before.values);
    EXPECT_EQ(trace.supply_context(0, F32Tensor({1, 1})).error().text,
              "the context has 1 values; it must have 12");
}

TEST(Traces, stages_that_are_not_there_heads_and_layers_are_refused_with_what_there_is) {
    Trace trace = open_session(level_session(5));
    EXPECT_EQ(trace.stage(StageId::weights, 2).error().text, "head is 2; weights has heads 0 to 1");
    Session grouped = level_session(6);
    grouped.heads = 4, grouped.kv_heads = 2;
    EXPECT_EQ(open_session(grouped).stage(StageId::values, 2).error().text,
              "head is 2; values has heads 0 to 1");
    EXPECT_EQ(trace.stage(StageId::weights, 0, 1).error().text, "layer is 1; the model has layers 0 to 0");
    EXPECT_EQ(
        trace.stage(StageId::capped).error().text.find("stage is 'capped'; this layer has inputs, w_query"),
        0u);
    EXPECT_EQ(trace.nearest_stage(StageId::capped), StageId::scaled);
    EXPECT_EQ(trace.nearest_stage(StageId::dropped), StageId::weights);
    EXPECT_EQ(trace.nearest_stage(StageId::output), StageId::context);
}

TEST(Traces, a_run_without_stages_computes_the_same) {
    const Result<SessionModel> made = session_model(level_session(6));
    ASSERT_TRUE(made);
    TraceOptions options;
    options.keeps_stages = false;
    Result<Trace> lean = Trace::open(made->model, made->input, options);
    ASSERT_TRUE(lean);
    Trace whole = open_session(level_session(6));
    for (const StageId id : {StageId::weights, StageId::context})
        EXPECT_EQ(lean->whole_stage(id)->values, whole.whole_stage(id)->values) << stage_name(id);
    EXPECT_EQ(lean->leaving()->values, whole.leaving()->values);
    EXPECT_EQ(lean->stage(StageId::output).error().text,
              "output is not kept by this run, whose keeps_stages is false");
}

TEST(Traces, formulas_multiply) {
    const auto formula = [](Trace& trace, std::string_view id) {
        for (const TraceStage& stage : trace.stages())
            if (stage_name(stage.id) == id) return stage.formula;
        return std::string("none");
    };
    Trace second = open_session(level_session(2)), third = open_session(level_session(3)),
          first = open_session(level_session(1));
    EXPECT_EQ(formula(second, "queries"), "Q = X·W_q");
    EXPECT_EQ(formula(third, "queries"), "Q = X·W_qᵀ");
    EXPECT_EQ(formula(first, "scores"), "X·Xᵀ");
    Session s = level_session(6);
    s.heads = s.kv_heads = 1, s.rope = true, s.scale = "3", s.temperature = 2;
    Trace turned = open_session(s);
    EXPECT_EQ(formula(turned, "keys"), "K = rope(X·W_kᵀ)");
    EXPECT_EQ(formula(turned, "scaled"), "Q·Kᵀ / (3·2)");
    EXPECT_EQ(formula(turned, "output"), "context·W_oᵀ + b");
}

TEST(Traces, weights_are_drawn_once_for_settings_that_share_them) {
    Session s = level_session(7);
    s.length = 2;
    const Result<SessionModel> first = session_model(s);
    s.length = 3, s.temperature = 2;
    const Result<SessionModel> second = session_model(s, &*first), anew = session_model(s);
    EXPECT_EQ(second->model->blocks[0].attention.query.weight, anew->model->blocks[0].attention.query.weight);
    EXPECT_EQ(second->model->blocks[0].attention.rules.temperature, 2);
    EXPECT_EQ(second->input.x, anew->input.x);
}

TEST(Traces, other_rules_give_what_a_trace_opened_with_them_gives) {
    const Session s = level_session(5);
    const Result<SessionModel> made = session_model(s);
    const Result<Trace> first = Trace::open(made->model, made->input);
    ASSERT_TRUE(Trace(*first).whole_stage(StageId::queries));
    AttentionRules rules = s;
    rules.causal = !rules.causal;
    rules.temperature = 2;
    rules.precision = Precision::f16;
    const auto expect_same = [&](Trace shared, const AttentionRules& by) {
        Model other = *made->model;
        other.blocks[0].attention.rules = by;
        Result<Trace> anew = Trace::open(std::make_shared<const Model>(std::move(other)), made->input);
        ASSERT_EQ(shared.stages().size(), anew->stages().size());
        for (const TraceStage& stage : anew->stages())
            EXPECT_EQ(*shared.whole_stage(stage.id), *anew->whole_stage(stage.id)) << stage_name(stage.id);
        EXPECT_EQ(shared.rules(), by);
    };
    Trace halves = first->with_rules(rules);
    expect_same(halves, rules);
    expect_same(halves.with_rules(s), s);  // not rounded any more
    expect_same(*first, s);
}

TEST(Traces, edited_cells_stand_in_the_stages_and_leave_again) {
    Session s = level_session(3);
    const Result<SessionModel> plain = session_model(s);
    s.edits = {{StageId::inputs, 5, 2, 0.75}, {StageId::w_value, 1, 0, -2}};
    const Result<SessionModel> edited = session_model(s, &*plain);
    F32Tensor x = plain->input.x, value = plain->model->blocks[0].attention.value.weight;
    x.row(5)[2] = 0.75f, value.row(1)[0] = -2.0f;
    EXPECT_EQ(edited->input.x, x);
    EXPECT_EQ(edited->model->blocks[0].attention.value.weight, value);
    EXPECT_TRUE(edited->notes.empty());
    s.edits.clear();
    const Result<SessionModel> again = session_model(s, &*edited);
    EXPECT_EQ(again->input.x, plain->input.x);
    EXPECT_EQ(again->model->blocks[0].attention.value.weight, plain->model->blocks[0].attention.value.weight);
}

TEST(Traces, a_files_masks_biases_and_sinks_are_part_of_its_call) {
    Draw draw(11);
    auto model = std::make_shared<Model>();
    model->blocks.resize(1);
    model->blocks[0].attention.heads = 4, model->blocks[0].attention.kv_heads = 2;
    ModelInput input;
    input.q = draw.tensor({4, 5, 6}), input.k = draw.tensor({2, 7, 6}), input.v = draw.tensor({2, 7, 3});
    input.extras.mask_heads = 4, input.extras.mask_rows = 1;
    input.extras.mask.assign(4 * 7, 1);
    input.extras.mask[7 + 2] = 0;  // head 1, key 2
    input.extras.bias_heads = 1, input.extras.bias_rows = 5;
    input.extras.bias = draw.tensor({5, 7}).values;
    Result<Trace> strict = Trace::open(model, input, {Arithmetic::strict, nullptr});
    Result<Trace> engine = Trace::open(model, input, {Arithmetic::engine, nullptr});
    ASSERT_TRUE(strict && engine);
    for (const StageId id : {StageId::weights, StageId::context, StageId::lse}) {
        const Result<F32Tensor> a = strict->whole_stage(id), b = engine->whole_stage(id);
        ASSERT_TRUE(a && b) << stage_name(id);
        for (size_t i = 0; i < a->values.size(); ++i)
            ASSERT_NEAR(a->values[i], b->values[i], 4e-6) << stage_name(id) << i;
    }
    EXPECT_EQ(strict->stage(StageId::weights, 1)->row(0)[2], 0.0f);
    EXPECT_GT(strict->stage(StageId::weights, 0)->row(0)[2], 0.0f);
    input.extras.sinks = {0.0f, 1.0f, 2.0f, 3.0f};
    for (const Arithmetic arithmetic : {Arithmetic::strict, Arithmetic::engine}) {
        Result<Trace> sinks = Trace::open(model, input, {arithmetic, nullptr});
        ASSERT_TRUE(sinks);
        const F32Tensor before = *strict->stage(StageId::weights, 3),
                        weights = *sinks->stage(StageId::weights, 3);
        const F32Tensor lse = *strict->stage(StageId::lse, 3);
        for (uint64_t i = 0; i < 5; ++i) {
            const double all = std::exp(double(lse.values[i])), with_sink = all + std::exp(3.0);
            for (uint64_t j = 0; j < 7; ++j)
                ASSERT_NEAR(weights.row(i)[j], double(before.row(i)[j]) * all / with_sink, 4e-6) << i << j;
        }
    }
}

TEST(Traces, the_text_of_a_matrix) {
    EXPECT_EQ(matrix_text(F32Tensor({2, 2}, {1.0f, -INFINITY, std::nanf(""), 0.1f})),
              "1 -inf\nnan 0.100000001\n");
}

TEST(Traces, the_engines_dropout_is_the_one_that_is_shown) {
    AttentionRules rules;
    rules.dropout_p = 0.3, rules.dropout_seed = 0x123456789abcdefu,
    rules.dropout_random = DropoutRandom::counter;
    const std::vector<uint8_t> keep = *keep_mask(rules, 3, 5, 9);
    Attention call;
    call.batch(1)
        .heads(3)
        .lengths(5, 9)
        .dims(1)
        .dropout(0.3f, rules.dropout_seed)
        .outputs(FOVEA_OUTPUT_WEIGHTS);
    std::vector<float> x(27), weights(135);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = {x.data(), x.size() * 4};
    bindings[FOVEA_BIND_WEIGHTS] = {weights.data(), weights.size() * 4};
    ASSERT_TRUE(make_cpu_runner()->attention(call, bindings));
    for (size_t i = 0; i < keep.size(); ++i) ASSERT_EQ(weights[i] != 0.0f, keep[i] != 0) << i;
}

}  // namespace
}  // namespace fovea

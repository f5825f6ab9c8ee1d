// Runs that depart from the model: heads off, scaled and patched, hidden tokens, runs from a layer on, the
// logit lens, scores of heads.
#include <fovea/model/checkpoint_model.hpp>
#include <fovea/model/token_scores.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace fovea {
namespace {

const std::vector<uint32_t> kIds = {5, 3, 8, 20, 11, 5, 3, 9};

CheckpointModel open_model(const std::string& name) {
    Result<CheckpointModel> model = CheckpointModel::open(std::filesystem::path(FOVEA_FAMILIES) / name);
    EXPECT_TRUE(model) << model.error().text;
    return *model;
}

ModelRun run_of(const CheckpointModel& model, const ModelRunOptions& options) {
    Result<ModelRun> run = run_model(model, kIds, options);
    EXPECT_TRUE(run) << run.error().text;
    return std::move(*run);
}

class Changed : public testing::TestWithParam<Arithmetic> {
  protected:
    ModelRunOptions options() const {
        ModelRunOptions o;
        o.trace.arithmetic = GetParam();
        o.with_hidden = o.with_weights = true;
        return o;
    }
};

// The code of docs/guides/ablate-a-head.md.
TEST(Documentation, a_head_is_ablated_and_another_patched) {
    const std::string path = std::string(FOVEA_FAMILIES) + "/gpt2";
    const std::vector<uint32_t>& ids = kIds;
    const std::vector<uint32_t> other_ids(ids.rbegin(), ids.rend());
    // [ablate]
    Result<CheckpointModel> model = CheckpointModel::open(path);
    ModelRunOptions options;
    options.changes.scale_head(1, 2, 0.0f);                                     // ablates head 2 of layer 1
    options.changes.patches = *head_contexts(*model, other_ids, {{0, 3, {}}});  // patches head 3 of layer 0
    Result<ModelRun> changed = run_model(*model, ids, options);  // changed->logits is [tokens, vocabulary]
    // [end ablate]
    ASSERT_TRUE(changed) << changed.error().text;
    EXPECT_NE(changed->logits.values, run_of(*model, {}).logits.values);
}

// The reference is the model's own rows of the output layer set to zero, which is what a head that is off
// means: layer 1, head 2 of GPT-2's small model has columns 8 to 11 of the context.
TEST_P(Changed, a_head_that_is_off_is_a_model_without_its_rows_of_the_output_layer) {
    const CheckpointModel model = open_model("gpt2");
    ModelRunOptions o = options();
    const ModelRun plain = run_of(model, o);
    o.changes.head_scales = {{}, {1.0f, 1.0f, 0.0f}};
    const ModelRun off = run_of(model, o);
    EXPECT_EQ(off.hidden[1].values, plain.hidden[1].values);
    EXPECT_EQ(off.weights[1].values, plain.weights[1].values);
    EXPECT_NE(off.logits.values, plain.logits.values);
    auto without = std::make_shared<Model>();
    without->blocks.push_back(*model.block(1, kIds.size()));
    Linear& output = without->blocks[0].attention.output;
    const uint64_t width = model.config().width, head = model.config().head_width;
    for (uint64_t in = 2 * head; in < 3 * head; ++in)
        for (uint64_t out = 0; out < width; ++out)
            output.weight
                .values[output.layout == WeightLayout::in_out ? in * width + out : out * width + in] = 0;
    ModelInput input;
    input.x = plain.hidden[1];
    Result<Trace> trace = Trace::open(without, input, o.trace);
    ASSERT_TRUE(trace);
    const Result<F32Tensor> expected = trace->stage(StageId::block);
    ASSERT_TRUE(expected);
    EXPECT_EQ(off.hidden[2].values, expected->values);
}

TEST_P(Changed, a_patch_carries_one_heads_context_from_another_run) {
    const CheckpointModel model = open_model("llama3");
    ModelRunOptions o = options();
    F32Tensor taken;
    o.on_layer = [&](uint64_t layer, Trace& trace) -> Result<void> {
        if (layer != 0) return {};
        const Result<F32Tensor> context = trace.stage(StageId::context);
        if (!context) return context.error();
        taken = slice_columns(*context, 3 * model.config().head_width, model.config().head_width);
        return {};
    };
    const ModelRun plain = run_of(model, o);
    o.on_layer = nullptr;
    ASSERT_EQ(taken.shape, (Shape{kIds.size(), model.config().head_width}));
    // The head's own context changes nothing; off and patched with it, neither.
    o.changes.patches = {{0, 3, taken}};
    EXPECT_EQ(run_of(model, o).logits.values, plain.logits.values);
    o.changes.head_scales = {{1, 1, 1, 0}};
    EXPECT_EQ(run_of(model, o).logits.values, plain.logits.values);
    for (float& value : o.changes.patches[0].context.values) value += 1.0f;
    EXPECT_NE(run_of(model, o).logits.values, plain.logits.values);
}

// A head scaled and another one patched from another text: what leaves attention is the float64 sum of the
// projected contexts, the patched head's being those of the other run.
TEST_P(Changed, scaled_and_patched_heads_add_what_float64_says) {
    for (const char* family : {"llama3", "gpt2"}) {
        const CheckpointModel model = open_model(family);
        const ModelConfig& f = model.config();
        std::vector<uint32_t> others(kIds.begin(), kIds.end());
        std::rotate(others.begin(), others.begin() + 3, others.end());
        for (const uint64_t at : {0u, 1u}) {
            ModelRunOptions o = options();
            const Result<std::vector<HeadPatch>> made =
                head_contexts(model, others, {{at, 1, {}}, {0, 2, {}}}, o);
            ASSERT_TRUE(made) << made.error().text;
            const HeadPatch& patch = made->front();
            // The other run's own context, and this run's.
            F32Tensor other, own, entering, attended;
            const auto look = [&](F32Tensor& context) {
                return [&, at](uint64_t layer, Trace& trace) -> Result<void> {
                    if (layer != at) return {};
                    context = *trace.stage(StageId::context);
                    entering = trace.input().x;
                    attended = *trace.stage(StageId::attended);
                    return {};
                };
            };
            o.on_layer = look(other);
            ASSERT_TRUE(run_model(model, others, o));
            EXPECT_EQ(patch.context.values, slice_columns(other, f.head_width, f.head_width).values);
            o.on_layer = look(own);
            ASSERT_TRUE(run_model(model, kIds, o));
            F32Tensor changed;
            o.changes.patches = {patch};
            o.changes.head_scales.assign(at + 1, {});
            o.changes.head_scales[at] = {1, 1, 0.25f};
            o.on_layer = look(changed);
            ASSERT_TRUE(run_model(model, kIds, o));
            const Result<Block> block = model.block(at, kIds.size());
            ASSERT_TRUE(block);
            const Linear& out = block->attention.output;
            for (uint64_t i = 0; i < kIds.size(); ++i) {
                double worst = 0, size = 1;
                for (uint64_t c = 0; c < f.width; ++c) {
                    double expected = double(entering.row(i)[c]);
                    if (out.has_bias()) expected += double(out.bias.values[c]);
                    for (uint64_t k = 0; k < out.d_in(); ++k) {
                        const uint64_t head = k / f.head_width;
                        const double context = head == 1   ? double(other.row(i)[k])
                                               : head == 2 ? 0.25 * double(own.row(i)[k])
                                                           : double(own.row(i)[k]);
                        const double weight = out.layout == WeightLayout::out_in
                                                  ? double(out.weight.row(c)[k])
                                                  : double(out.weight.row(k)[c]);
                        expected += context * weight;
                    }
                    worst = std::max(worst, std::abs(expected - double(attended.row(i)[c])));
                    size = std::max(size, std::abs(expected));
                }
                EXPECT_LE(worst, 2e-6 * size) << family << ", layer " << at << ", row " << i;
            }
        }
        EXPECT_EQ(head_contexts(model, others, {{f.layers, 0, {}}}).error().field, "heads");
        EXPECT_EQ(head_contexts(model, others, {{0, uint32_t(f.heads), {}}}).error().field, "heads");
        EXPECT_EQ(head_contexts(model, {}, {{0, 0, {}}}).error().field, "tokens");
    }
}

TEST_P(Changed, hidden_tokens_have_no_weight_and_scales_of_one_change_no_bit) {
    const CheckpointModel model = open_model("llama2");
    ModelRunOptions o = options();
    const ModelRun plain = run_of(model, o);
    o.changes.head_scales = {{1, 1}, {1, 1, 1, 1}};
    EXPECT_EQ(run_of(model, o).logits.values, plain.logits.values);
    o.changes.hidden_tokens = {2, 4};
    const ModelRun hidden = run_of(model, o);
    for (const F32Tensor& weights : hidden.weights)
        for (size_t row = 0; row < weights.values.size(); row += kIds.size()) {
            EXPECT_EQ(weights.values[row + 2], 0.0f);
            EXPECT_EQ(weights.values[row + 4], 0.0f);
        }
}

TEST_P(Changed, a_run_from_a_layer_on_gives_the_bits_of_the_whole_run) {
    for (const char* name : {"gpt2", "gemma3", "bert"}) {
        SCOPED_TRACE(name);
        const CheckpointModel model = open_model(name);
        ModelRunOptions o = options();
        const ModelRun whole = run_of(model, o);
        o.first_layer = 1;
        o.entering = whole.hidden[1];
        const ModelRun rest = run_of(model, o);
        EXPECT_EQ(rest.logits.values, whole.logits.values);
        ASSERT_EQ(rest.hidden.size() + 1, whole.hidden.size());
        EXPECT_EQ(rest.hidden.back().values, whole.hidden.back().values);
    }
}

TEST_P(Changed, the_lens_is_the_logits_of_every_layer) {
    const CheckpointModel model = open_model("gemma2");
    ModelRunOptions o = options();
    o.with_lens = true;
    const ModelRun run = run_of(model, o);
    ASSERT_EQ(run.lens.shape, (Shape{model.config().layers + 1, model.config().vocabulary}));
    for (size_t n = 0; n < run.hidden.size(); ++n) {
        const auto last = run.hidden[n].row(kIds.size() - 1);
        const Result<F32Tensor> expected =
            model.logits(F32Tensor({1, last.size()}, {last.begin(), last.end()}));
        ASSERT_TRUE(expected);
        for (size_t v = 0; v < expected->values.size(); ++v)
            ASSERT_NEAR(run.lens.row(n)[v], expected->values[v], 1e-6) << n;
    }
    for (size_t v = 0; v < run.lens.columns(); ++v)
        EXPECT_NEAR(run.lens.row(run.lens.rows() - 1)[v], run.logits.row(kIds.size() - 1)[v], 1e-6);
    o.lens_token = 2;
    const ModelRun other = run_of(model, o);
    for (size_t v = 0; v < other.lens.columns(); ++v)
        EXPECT_NEAR(other.lens.row(other.lens.rows() - 1)[v], other.logits.row(2)[v], 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Each, Changed, testing::Values(Arithmetic::strict, Arithmetic::engine),
                         [](const auto& arithmetic) {
                             return arithmetic.param == Arithmetic::strict ? "strict" : "engine";
                         });

TEST(Changes, of_what_is_not_there_are_refused_by_name) {
    const CheckpointModel model = open_model("gpt2");
    const auto refused = [&](const ModelRunOptions& o) {
        const Result<ModelRun> run = run_model(model, kIds, o);
        return run ? "nothing" : run.error().field + ": " + run.error().text;
    };
    ModelRunOptions o;
    o.changes.head_scales.resize(3);
    EXPECT_EQ(refused(o), "head_scales: the last layer is 2; the limit is 1");
    o.changes.head_scales = {std::vector<float>(5, 1.0f)};
    EXPECT_EQ(refused(o), "head_scales: the last head is 4; the limit is 3");
    o = {};
    o.changes.hidden_tokens = {8};
    EXPECT_EQ(refused(o), "masked_tokens: a masked token is 8; the limit is 7");
    o.changes.hidden_tokens = {3, 3};
    EXPECT_EQ(refused(o), "masked_tokens: masked_tokens must be in ascending order");
    o = {};
    o.changes.patches = {{0, 4, {}}};
    EXPECT_EQ(refused(o), "patches: a patch's head is 4; the limit is 3");
    o.changes.patches = {{0, 1, F32Tensor({8, 3})}};
    EXPECT_EQ(refused(o), "patches: a patch's context must have the shape [8, 4]");
    o = {};
    o.first_layer = 1;
    EXPECT_EQ(refused(o), "entering: the input of layer 1 must have the shape [8, 16]");
    o.first_layer = 2;
    EXPECT_EQ(refused(o), "first_layer: the first layer is 2; the limit is 1");
    o = {};
    o.lens_token = 8;
    EXPECT_EQ(refused(o), "lens_token: the lens' token is 8; the limit is 7");
}

TEST(TokenScores, are_means_over_the_rows_that_have_such_a_key) {
    // a b a b: rows 2 and 3 have the same token at 0 and 1, and what followed it at 1 and 2.
    const std::vector<uint32_t> ids = {7, 9, 7, 9};
    const std::vector<float> weights = {1.0f, 0.0f, 0.0f, 0.0f, 0.25f, 0.75f, 0.0f, 0.0f,
                                        0.5f, 0.3f, 0.2f, 0.0f, 0.1f,  0.2f,  0.4f, 0.3f};
    const TokenScores s = token_scores(weights, ids);
    EXPECT_FLOAT_EQ(s.previous, (0.25f + 0.3f + 0.4f) / 3);
    EXPECT_FLOAT_EQ(s.first, (0.25f + 0.5f + 0.1f) / 3);
    EXPECT_FLOAT_EQ(s.same, (0.5f + 0.2f) / 2);
    EXPECT_FLOAT_EQ(s.induction, (0.3f + 0.4f) / 2);
    // A token after itself has been seen, and only itself has followed it.
    const std::vector<uint32_t> pair = {4, 4};
    const std::vector<float> two = {1.0f, 0.0f, 0.6f, 0.4f};
    EXPECT_FLOAT_EQ(token_scores(two, pair).same, 0.6f);
    EXPECT_TRUE(std::isnan(token_scores(two, pair).induction));
    EXPECT_TRUE(std::isnan(token_scores(std::vector<float>{1.0f}, std::vector<uint32_t>{4}).previous));
}

}  // namespace
}  // namespace fovea

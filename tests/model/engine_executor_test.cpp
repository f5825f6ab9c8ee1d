// Every layer on the engine against the same layer in strict float32: each intermediate result by its name.
#include <gtest/gtest.h>
#include <fovea/model.hpp>
#include <fovea/model/engine_executor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

namespace fovea {
namespace {

F32Tensor random_input(TorchGenerator& generator, Shape shape) {
    F32Tensor x(std::move(shape));
    generator.randn(x.values);
    return x;
}

AttentionOptions options(uint64_t width, bool causal) {
    AttentionOptions result;
    result.scale = ScoreScale::divided_by(std::sqrt(static_cast<double>(width)));
    result.causal = causal;
    return result;
}

using Forward = std::function<Result<F32Tensor>(Executor&, LayerTrace&)>;

void expect_same(Engine& engine, const char* what, const Forward& forward) {
    SCOPED_TRACE(what);
    StrictExecutor strict;
    EngineExecutor executor(engine);
    LayerTrace expected = LayerTrace::everything(), actual = LayerTrace::everything();
    ASSERT_TRUE(forward(strict, expected));
    const Result<F32Tensor> result = forward(executor, actual);
    ASSERT_TRUE(result) << result.error().text;
    ASSERT_EQ(actual.stages().size(), expected.stages().size());
    for (size_t s = 0; s < actual.stages().size(); ++s) {
        const LayerStage &a = actual.stages()[s], &b = expected.stages()[s];
        EXPECT_EQ(a.name, b.name);
        ASSERT_EQ(a.tensor.shape, b.tensor.shape) << a.name;
        for (size_t i = 0; i < a.tensor.values.size(); ++i) {
            const float x = a.tensor.values[i], y = b.tensor.values[i];
            if (x != y) {
                ASSERT_NEAR(x, y, 2e-5f * std::max(1.0f, std::fabs(y))) << a.name << " element " << i;
            }
        }
    }
}

SelfAttention random_head(TorchGenerator& generator, uint64_t d_in, uint64_t d_out, bool causal) {
    return {make_linear(generator, d_in, d_out, true), make_linear(generator, d_in, d_out, false),
            make_rand_parameter(generator, d_in, d_out), options(d_out, causal)};
}

void expect_single_heads(Engine& engine) {
    TorchGenerator generator(1);
    const F32Tensor x = random_input(generator, {2, 19, 12}), one = random_input(generator, {19, 12});
    const SelfAttention free = random_head(generator, 12, 10, false),
                        causal = random_head(generator, 12, 10, true);
    for (const auto normalisation :
         {Normalisation::softmax, Normalisation::sum, Normalisation::naive_softmax}) {
        F32Tensor positive = one;
        for (float& value : positive.values) value = std::fabs(value) * 0.25f;
        expect_same(engine, "simplified attention", [&](Executor& executor, LayerTrace& trace) {
            return simplified_attention(executor, positive, normalisation, trace);
        });
    }
    expect_same(engine, "self attention",
                [&](Executor& e, LayerTrace& t) { return free.forward(e, one, t); });
    expect_same(engine, "causal attention",
                [&](Executor& e, LayerTrace& t) { return causal.forward(e, x, t); });
    expect_same(engine, "renormalised",
                [&](Executor& e, LayerTrace& t) { return causal.forward_renormalised(e, x, t); });
    SelfAttention dropping = causal;
    dropping.options.dropout_p = 0.3;
    expect_same(engine, "dropout", [&](Executor& e, LayerTrace& t) {
        TorchGenerator masks(5);
        return dropping.forward(e, x, t, {.dropout = Training::Dropout::torch_native, .generator = &masks});
    });
    const StackedHeads stacked{{causal, free}};
    expect_same(engine, "stacked heads",
                [&](Executor& e, LayerTrace& t) { return stacked.forward(e, x, t); });
}

void expect_multi_heads(Engine& engine) {
    TorchGenerator generator(2);
    const F32Tensor x = random_input(generator, {2, 17, 12}), memory = random_input(generator, {2, 23, 8});
    MultiHeadAttention split{make_linear(generator, 12, 12, true),
                             make_linear(generator, 12, 12, true),
                             make_linear(generator, 12, 12, true),
                             make_linear(generator, 12, 9, true),
                             3,
                             options(4, true)};
    expect_same(engine, "split heads", [&](Executor& e, LayerTrace& t) { return split.forward(e, x, t); });
    MultiHeadAttention cross{make_linear(generator, 12, 12, false),
                             make_linear(generator, 8, 12, false),
                             make_linear(generator, 8, 6, false),
                             make_linear(generator, 6, 12, true),
                             3,
                             options(4, false)};
    expect_same(engine, "cross attention",
                [&](Executor& e, LayerTrace& t) { return cross.forward(e, x, memory, t); });
    GptAttention gpt{make_linear(generator, 12, 36, true), make_linear(generator, 12, 12, true), 2,
                     options(6, true)};
    gpt.c_proj = {transposed(gpt.c_proj.weight), WeightLayout::in_out, gpt.c_proj.bias};
    expect_same(engine, "gpt", [&](Executor& e, LayerTrace& t) { return gpt.forward(e, x, t); });
    for (const bool interleaved : {false, true}) {
        GroupedQueryAttention llama{make_linear(generator, 12, 32, false),
                                    make_linear(generator, 12, 16, false),
                                    make_linear(generator, 12, 16, false),
                                    make_linear(generator, 32, 12, false),
                                    4,
                                    2,
                                    {.theta = 10000.0, .interleaved = interleaved, .first_position = 3},
                                    options(8, true)};
        expect_same(engine, "grouped queries",
                    [&](Executor& e, LayerTrace& t) { return llama.forward(e, x, t); });
    }
    const AdditiveAttention additive{make_linear(generator, 12, 7, false), make_linear(generator, 8, 7, true),
                                     random_input(generator, {7})};
    expect_same(engine, "additive",
                [&](Executor& e, LayerTrace& t) { return additive.forward(e, x, memory, t); });
}

// The engine's own dropout: about p of the visible weights are gone, and the same ones again for the same
// seed.
void expect_counter_dropout(Engine& engine) {
    TorchGenerator generator(3);
    SelfAttention layer = random_head(generator, 12, 10, false);
    layer.options.dropout_p = 0.25;
    const F32Tensor x = random_input(generator, {2, 40, 12});
    EngineExecutor executor(engine);
    const auto dropped = [&](uint64_t seed) {
        LayerTrace trace = LayerTrace::only({"dropped"});
        const Result<F32Tensor> result =
            layer.forward(executor, x, trace, {.dropout = Training::Dropout::counter, .seed = seed});
        EXPECT_TRUE(result) << result.error().text;
        return result ? *trace.find("dropped") : F32Tensor();
    };
    const F32Tensor first = dropped(1);
    const auto zeros = std::count(first.values.begin(), first.values.end(), 0.0f);
    EXPECT_NEAR(static_cast<double>(zeros) / 3200.0, 0.25, 0.04);
    EXPECT_EQ(dropped(1), first);
    EXPECT_NE(dropped(2), first);
}

void expect_layers(Engine& engine) {
    expect_single_heads(engine);
    expect_multi_heads(engine);
    expect_counter_dropout(engine);
}

TEST(LayersOnCpu, every_stage_agrees_with_strict) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::cpu, .cpu_threads = 2});
    ASSERT_TRUE(engine) << engine.error().text;
    expect_layers(*engine);
}

TEST(LayersOnVulkan, every_stage_agrees_with_strict) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::vulkan, .validation = true});
    if (!engine && std::getenv("FOVEA_TEST_DRIVER") == nullptr) GTEST_SKIP() << engine.error().text;
    ASSERT_TRUE(engine) << engine.error().text;
    expect_layers(*engine);
    for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
}

}  // namespace
}  // namespace fovea

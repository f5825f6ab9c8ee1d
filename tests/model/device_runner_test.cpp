// Every kind of layer on the engine against the same layer in strict float32: each stage of it.
#include <gtest/gtest.h>
#include <fovea/model.hpp>
#include <fovea/model/device_runner.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace fovea {
namespace {

F32Tensor drawn(TorchGenerator& generator, Shape shape) {
    F32Tensor x(std::move(shape));
    generator.randn(x.values);
    return x;
}

void expect_same(Engine& engine, const char* what, const AttentionPart& part, const ModelInput& input) {
    SCOPED_TRACE(what);
    const auto model = std::make_shared<Model>();
    model->blocks.emplace_back().attention = part;
    DeviceRunner runner(engine);
    Result<Trace> strict = Trace::open(model, input, {Arithmetic::strict});
    Result<Trace> on_engine = Trace::open(model, input, {Arithmetic::engine, &runner});
    ASSERT_TRUE(strict && on_engine) << strict.error().text;
    for (const TraceStage& stage : strict->stages()) {
        const Result<F32Tensor> expected = strict->whole_stage(stage.id);
        const Result<F32Tensor> actual = on_engine->whole_stage(stage.id);
        ASSERT_TRUE(expected && actual) << stage.id << ": " << actual.error().text;
        ASSERT_EQ(actual->shape, expected->shape) << stage.id;
        for (size_t i = 0; i < actual->values.size(); ++i) {
            const float x = actual->values[i], y = expected->values[i];
            if (x != y) {
                ASSERT_NEAR(x, y, 2e-5f * std::max(1.0f, std::fabs(y))) << stage.id << " element " << i;
            }
        }
    }
    EXPECT_FALSE(runner.reason().empty());
}

void expect_layers(Engine& engine) {
    TorchGenerator generator(1);
    ModelInput input;
    input.x = drawn(generator, {19, 12});
    AttentionPart part;
    part.rules.scale = "4";
    expect_same(engine, "without weights", part, input);
    for (Linear* layer : {&part.query, &part.key, &part.value}) *layer = make_linear(generator, 12, 12, true);
    expect_same(engine, "one head", part, input);
    part.rules.causal = true;
    expect_same(engine, "causal", part, input);
    part.rules.route = MaskRoute::after;
    expect_same(engine, "renormalised", part, input);
    part.rules.route = MaskRoute::before;
    part.rules.dropout_p = 0.3;
    expect_same(engine, "dropout", part, input);
    part.rules.dropout_p = 0;
    part.output = make_linear(generator, 12, 9, true);
    part.heads = part.kv_heads = 3;
    expect_same(engine, "split heads", part, input);
    part.rules.alibi = true, part.rules.softcap = 5, part.rules.windowed = true;
    expect_same(engine, "slopes, softcap and window", part, input);
    AttentionPart grouped;
    grouped.query = make_linear(generator, 12, 32, false),
    grouped.output = make_linear(generator, 32, 12, false);
    for (Linear* layer : {&grouped.key, &grouped.value}) *layer = make_linear(generator, 12, 16, false);
    grouped.heads = 4, grouped.kv_heads = 2, grouped.rules.causal = true;
    for (const bool interleaved : {false, true}) {
        grouped.rope = Rope{10000.0, interleaved, 3};
        expect_same(engine, "grouped queries, rotary positions", grouped, input);
    }
    AttentionPart cross = part;
    cross.rules = {};
    for (Linear* layer : {&cross.key, &cross.value}) *layer = make_linear(generator, 8, 12, false);
    input.memory = drawn(generator, {23, 8});
    expect_same(engine, "cross attention", cross, input);
    AttentionPart bare;
    bare.rules.scale = "none";
    const Linear query = make_linear(generator, 12, 7, false), key = make_linear(generator, 8, 7, true);
    expect_same(engine, "additive", bare,
                *additive_input(query, key, drawn(generator, {7}), input.x, input.memory));
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

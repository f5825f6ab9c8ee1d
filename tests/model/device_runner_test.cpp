// Every kind of layer on the engine against the same layer in strict float32: each stage of it.
// Weights as files store them on a device, against the dequantised product.
#include "model/stored_weights.hpp"

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
        ASSERT_TRUE(expected && actual) << stage_name(stage.id) << ": " << actual.error().text;
        ASSERT_EQ(actual->shape, expected->shape) << stage_name(stage.id);
        for (size_t i = 0; i < actual->values.size(); ++i) {
            const float x = actual->values[i], y = expected->values[i];
            if (x != y) {
                ASSERT_NEAR(x, y, 2e-5f * std::max(1.0f, std::fabs(y)))
                    << stage_name(stage.id) << " element " << i;
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

// Some rows have an odd number of blocks, whose bytes are not whole words.
TEST(StoredLinearOnVulkan, gives_the_dequantised_product) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::vulkan, .validation = true});
    ASSERT_TRUE(engine) << engine.error().text;
    DeviceRunner runner(*engine);
    std::mt19937 random(20261125);
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16, FOVEA_Q4_0, FOVEA_Q8_0, FOVEA_F64,
                                  FOVEA_Q4_1, FOVEA_Q5_0, FOVEA_Q5_1, FOVEA_Q4_K, FOVEA_Q5_K, FOVEA_Q6_K})
        for (const auto& [count, blocks] : {std::pair{1u, 1u}, {5u, 3u}, {131u, 2u}}) {
            const uint64_t elements = dtype_info(type).block.numbers;
            Weight w(type, count, elements == 1 ? 37 * blocks : elements * blocks, random);
            w.stored.owner = std::make_shared<int>();
            const F32Tensor bias =
                count % 2 ? reshaped(random_rows(1, count, random), {count}) : F32Tensor(Shape{0});
            for (const uint64_t rows : {1u, 9u, 1u}) {
                const F32Tensor x = random_rows(rows, w.stored.columns(), random);
                F32Tensor y({rows, count});
                std::fill(y.values.begin(), y.values.end(), NAN);
                const Result<void> run = runner.stored_linear(w.stored, bias, x, y);
                ASSERT_TRUE(run) << run.error().text;
                expect_row_verdict(w, bias, x, y);
            }
            const uint64_t held = type == FOVEA_F64 ? 0 : (w.stored.bytes.size() + 3) / 4 * 4;
            EXPECT_EQ(runner.held_bytes(), held) << dtype_name(type);
        }
    for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
}

// The unit matrix times ggml's blocks is what ggml makes of them, bit for bit.
TEST(StoredLinearOnVulkan, blocks_have_ggmls_bits) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::vulkan});
    ASSERT_TRUE(engine) << engine.error().text;
    DeviceRunner runner(*engine);
    const Result<TensorSet> set = load_safetensors(std::filesystem::path(FOVEA_QUANTISED));
    ASSERT_TRUE(set) << set.error().text;
    for (const auto& [name, type] : {std::pair("q4_1", FOVEA_Q4_1),
                                     {"q5_0", FOVEA_Q5_0},
                                     {"q5_1", FOVEA_Q5_1},
                                     {"q4_k", FOVEA_Q4_K},
                                     {"q5_k", FOVEA_Q5_K},
                                     {"q6_k", FOVEA_Q6_K}}) {
        const Tensor &blocks = *set->find(std::string(name) + ".blocks"),
                     &values = *set->find(std::string(name) + ".values");
        const uint64_t rows = blocks.shape[0], columns = dtype_info(type).block.numbers;
        StoredWeight w;
        w.name = name, w.type = type, w.shape = {rows, columns}, w.bytes = blocks.bytes;
        w.owner = std::make_shared<int>();
        F32Tensor unit({columns, columns}), y({columns, rows});
        for (uint64_t n = 0; n < columns; ++n) unit.row(n)[n] = 1;
        const Result<void> run = runner.stored_linear(w, F32Tensor(Shape{0}), unit, y);
        ASSERT_TRUE(run) << run.error().text;
        EXPECT_GT(runner.held_bytes(), 0u);
        for (uint64_t n = 0; n < columns * rows; ++n) {
            float theirs = 0;
            std::memcpy(&theirs, values.bytes.data() + 4 * n, 4);
            ASSERT_EQ(y.row(n % columns)[n / columns], theirs) << name << ", " << n;
        }
    }
}

// Weights stay on the device only while their file is open: another file at the same address is a different
// one.
TEST(StoredLinearOnVulkan, weights_leave_the_device_with_their_file) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::vulkan});
    ASSERT_TRUE(engine) << engine.error().text;
    DeviceRunner runner(*engine);
    std::mt19937 random(3);
    Weight w(FOVEA_Q8_0, 40, 64, random);
    auto file = std::make_shared<int>();
    w.stored.owner = file;
    const F32Tensor x = random_rows(2, 64, random), none(Shape{0});
    F32Tensor y({2, 40});
    ASSERT_TRUE(runner.stored_linear(w.stored, none, x, y));
    expect_row_verdict(w, none, x, y);
    const uint64_t bytes = runner.held_bytes();
    EXPECT_EQ(bytes, 40u * 2 * 34);
    w.stored.owner = nullptr, file = nullptr;
    fill_blocks(w.stored.type, {const_cast<std::byte*>(w.stored.bytes.data()), w.stored.bytes.size()},
                random);
    ASSERT_TRUE(read_rows(w.stored, 0, w.plain));
    w.stored.owner = file = std::make_shared<int>();
    ASSERT_TRUE(runner.stored_linear(w.stored, none, x, y));
    expect_row_verdict(w, none, x, y);
    EXPECT_EQ(runner.held_bytes(), bytes);
    // Without an owner: read again from its memory each time.
    w.stored.owner = nullptr, file = nullptr;
    ASSERT_TRUE(runner.stored_linear(w.stored, none, x, y));
    expect_row_verdict(w, none, x, y);
}

// A Llama in Q8_0 decodes to the same tokens on the device and on the CPU.
TEST(StoredLinearOnVulkan, a_quantised_llama_generates_what_it_does_on_the_processor) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::vulkan, .validation = true});
    ASSERT_TRUE(engine) << engine.error().text;
    const Result<CheckpointModel> model =
        CheckpointModel::open(std::filesystem::path(FOVEA_FAMILIES) / "llama_q8/model.gguf");
    ASSERT_TRUE(model) << model.error().text;
    DeviceRunner device(*engine);
    const std::unique_ptr<Runner> processor = make_cpu_runner();
    std::vector<std::vector<uint32_t>> texts;
    for (Runner* runner : {processor.get(), static_cast<Runner*>(&device)}) {
        DecoderOptions options;
        options.engine = runner;
        Result<Decoder> decoder = Decoder::open(*model, 12, options);
        ASSERT_TRUE(decoder) << decoder.error().text;
        const Sampler greedy(0, 0);
        std::vector<uint32_t> all = {5, 3, 8, 20}, next = all;
        while (all.size() < 12) {
            const Result<std::vector<float>> logits = decoder->run(next);
            ASSERT_TRUE(logits) << logits.error().text;
            next = {greedy.choose(*logits, all.size()).value()};
            all.push_back(next[0]);
        }
        texts.push_back(all);
    }
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_GT(device.held_bytes(), 0u);
    for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
}

}  // namespace
}  // namespace fovea

// Generation with caches: the same tokens as the whole text run anew for each of them.
#include "support/scratch.hpp"

#include <fovea/model/generate.hpp>
#include <fovea/model/torch_random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

namespace fovea {
namespace {

CheckpointModel open_model(const std::string& name) {
    Result<CheckpointModel> model = CheckpointModel::open(std::filesystem::path(FOVEA_FAMILIES) / name);
    EXPECT_TRUE(model) << model.error().text;
    return *model;
}

// Logits behind the last token, without a cache.
std::vector<float> uncached(const CheckpointModel& model, std::span<const uint32_t> ids) {
    const Result<ModelRun> run = run_model(model, ids);
    EXPECT_TRUE(run) << run.error().text;
    const auto last = run->logits.row(run->logits.rows() - 1);
    return {last.begin(), last.end()};
}

class Cached : public testing::TestWithParam<const char*> {};

TEST_P(Cached, decoding_goes_on_as_the_uncached_run_does) {
    const CheckpointModel model = open_model(GetParam());
    std::vector<uint32_t> text = {5, 3, 8, 20};
    const uint64_t length = 30;
    for (const uint64_t keep_bytes : {uint64_t{1} << 30, uint64_t{0}}) {
        SCOPED_TRACE(keep_bytes);
        DecoderOptions options;
        options.keep_bytes = keep_bytes;
        Result<Decoder> decoder = Decoder::open(model, length, options);
        ASSERT_TRUE(decoder) << decoder.error().text;
        Sampler greedy(0, 0);
        std::vector<uint32_t> all = text, next = text;
        while (all.size() < length) {
            const Result<std::vector<float>> logits = decoder->run(next);
            ASSERT_TRUE(logits) << logits.error().text;
            const std::vector<float> expected = uncached(model, all);
            for (size_t i = 0; i < expected.size(); ++i)
                ASSERT_NEAR((*logits)[i], expected[i], 1e-5) << all.size();
            const uint32_t chosen = greedy.choose(*logits);
            ASSERT_EQ(chosen, Sampler(0, 0).choose(expected)) << all.size();
            all.push_back(chosen);
            next = {chosen};
        }
        EXPECT_EQ(decoder->held(), length - 1);
    }
}

// Learned positions; grouped heads with stretched angles; windows of 4 keys that the text outgrows; windows,
// softcaps and norms on both sides.
INSTANTIATE_TEST_SUITE_P(Each, Cached, testing::Values("gpt2", "llama3", "mistral", "gemma2", "neox_serial"),
                         [](const auto& name) { return std::string(name.param); });

// GPT-2's small model with room for more tokens: rows of its positions drawn anew.
CheckpointModel long_gpt2(const std::filesystem::path& folder, uint64_t positions) {
    const std::filesystem::path from = std::filesystem::path(FOVEA_FAMILIES) / "gpt2";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    Result<TensorSet> set = load_safetensors(from / "model.safetensors");
    EXPECT_TRUE(set);
    for (Tensor& tensor : set->tensors) {
        if (!tensor.name.ends_with("wpe.weight")) continue;
        TorchGenerator generator(7);
        std::vector<float> values(positions * tensor.shape[1]);
        generator.randn(values);
        for (float& value : values) value *= 0.4f;
        Result<Tensor> made = make_tensor(tensor.name, {positions, tensor.shape[1]}, std::move(values));
        EXPECT_TRUE(made);
        tensor = std::move(*made);
    }
    EXPECT_TRUE(save_safetensors(folder / "model.safetensors", *set));
    std::ifstream file(from / "config.json");
    std::string config{std::istreambuf_iterator<char>(file), {}};
    // The first of two members of one name counts.
    config.insert(config.find('{') + 1, "\"n_positions\": " + std::to_string(positions) + ",");
    std::ofstream(folder / "config.json") << config;
    Result<CheckpointModel> model = CheckpointModel::open(folder);
    EXPECT_TRUE(model) << model.error().text;
    return *model;
}

// One run of the whole text tells what each of its tokens would have been chosen by without a cache: behind a
// causal mask a row knows nothing of later ones.
void expect_generated_as_uncached(const CheckpointModel& model) {
    constexpr uint64_t kCount = 500;
    std::vector<uint32_t> all = {5, 3, 8, 20}, next = all;
    Result<Decoder> decoder = Decoder::open(model, all.size() + kCount);
    ASSERT_TRUE(decoder) << decoder.error().text;
    Sampler greedy(0, 0);
    for (uint64_t n = 0; n < kCount; ++n) {
        const Result<std::vector<float>> logits = decoder->run(next);
        ASSERT_TRUE(logits) << logits.error().text;
        next = {greedy.choose(*logits)};
        all.push_back(next[0]);
    }
    const Result<ModelRun> run = run_model(model, std::span(all).first(all.size() - 1));
    ASSERT_TRUE(run) << run.error().text;
    for (size_t i = 4; i < all.size(); ++i)
        ASSERT_EQ(all[i], Sampler(0, 0).choose(run->logits.row(i - 1))) << "token " << i;
}

TEST(Decoder, five_hundred_tokens_are_those_of_the_uncached_run) {
    const test::Scratch scratch;
    expect_generated_as_uncached(long_gpt2(scratch / "long_gpt2", 504));
    expect_generated_as_uncached(open_model("llama3"));
    expect_generated_as_uncached(open_model("mistral"));
}

TEST(Decoder, several_tokens_behind_a_cache_see_what_they_should) {
    const CheckpointModel model = open_model("llama3");
    Result<Decoder> decoder = Decoder::open(model, 8);
    ASSERT_TRUE(decoder);
    const std::vector<uint32_t> all = {5, 3, 8, 20, 11, 4, 17, 9};
    ASSERT_TRUE(decoder->run(std::span(all).first(3)));
    const Result<std::vector<float>> logits = decoder->run(std::span(all).subspan(3));
    ASSERT_TRUE(logits);
    const std::vector<float> expected = uncached(model, all);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR((*logits)[i], expected[i], 1e-5);
}

TEST(Decoder, refuses_encoders_and_texts_beyond_its_room) {
    const Result<Decoder> encoder = Decoder::open(open_model("bert"), 4);
    ASSERT_FALSE(encoder);
    EXPECT_EQ(encoder.error().text, "a BERT model is an encoder: it generates no text");
    const Result<Decoder> wide = Decoder::open(open_model("gpt2"), 33);
    ASSERT_FALSE(wide);
    EXPECT_EQ(wide.error().text, "33 tokens; the model has learned 32 positions");
    Result<Decoder> decoder = Decoder::open(open_model("gpt2"), 4);
    ASSERT_TRUE(decoder);
    const std::vector<uint32_t> ids = {1, 2, 3};
    ASSERT_TRUE(decoder->run(ids));
    const Result<std::vector<float>> more = decoder->run(ids);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().text, "3 tokens do not fit behind 3; there is room for 4");
    EXPECT_EQ(decoder->held(), 3u);
    const uint32_t beyond = 24;
    EXPECT_FALSE(decoder->run({&beyond, 1}));
    EXPECT_EQ(decoder->held(), 3u);
}

TEST(Sampler, draws_by_the_softmax_and_the_same_for_the_same_seed) {
    const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f};
    EXPECT_EQ(Sampler(0, 1).choose(logits), 2u);
    std::vector<double> counts(4);
    Sampler one(2.0, 7), other(2.0, 7);
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
        const uint32_t chosen = one.choose(logits);
        ASSERT_EQ(chosen, other.choose(logits));
        counts[chosen] += 1.0 / kDraws;
    }
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit / 2.0);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i], std::exp(logits[i] / 2.0) / sum, 0.015) << i;
}

}  // namespace
}  // namespace fovea

// Generation with caches: the same tokens as the whole text run anew for each of them.
#include "support/scratch.hpp"

#include <fovea/model/generate.hpp>
#include <fovea/model/next_tokens.hpp>
#include <fovea/model/torch_random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

namespace fovea {
namespace {

CheckpointModel open_model(const std::string& name) {
    Result<CheckpointModel> model = CheckpointModel::open(std::filesystem::path(FOVEA_FAMILIES) / name);
    EXPECT_TRUE(model) << model.error().text;
    return *model;
}

// Returns the logits after the last token, without a KV cache.
std::vector<float> uncached(const CheckpointModel& model, std::span<const uint32_t> ids) {
    const Result<ModelRun> run = run_model(model, ids);
    EXPECT_TRUE(run) << run.error().text;
    const auto last = run->logits.row(run->logits.rows() - 1);
    return {last.begin(), last.end()};
}

uint32_t greedy(std::span<const float> logits) { return Sampler(0, 0).choose(logits, 0).value(); }

// The tokens after a text, in a decoder with room for more.
std::vector<uint32_t> generated(const CheckpointModel& model, std::vector<uint32_t> text, size_t count,
                                const Sampler& sampler, uint64_t capacity) {
    Result<Decoder> decoder = Decoder::open(model, capacity);
    EXPECT_TRUE(decoder) << decoder.error().text;
    std::vector<uint32_t> next = text;
    while (count-- > 0) {
        const Result<std::vector<float>> logits = decoder->run(next);
        EXPECT_TRUE(logits) << logits.error().text;
        next = {sampler.choose(*logits, text.size()).value()};
        text.push_back(next[0]);
    }
    return text;
}

// Every family that generates text: those of the folder. Their switches (windows of 4 to 6 keys, the original
// length of 8 tokens of Phi-3's angles) are passed by the texts below.
std::vector<std::string> generating_families() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(FOVEA_FAMILIES))
        for (const char* file : {"config.json", "model.gguf"})
            if (std::filesystem::exists(entry.path() / file)) {
                const std::string name = entry.path().filename().string();
                const bool encodes =
                    name == "bert" || name == "roberta" || name == "modernbert" || name == "vit";
                const bool is_gguf = std::string_view(file) == "model.gguf";
                if (!encodes) names.push_back(is_gguf ? name + "/model.gguf" : name);
            }
    std::sort(names.begin(), names.end());
    return names;
}

class Cached : public testing::TestWithParam<std::string> {};

TEST_P(Cached, decoding_goes_on_as_the_uncached_run_does) {
    const CheckpointModel model = open_model(GetParam());
    std::vector<uint32_t> text = {5, 3, 8, 20};
    const uint64_t length = 20;
    for (const uint64_t keep_bytes : {uint64_t{1} << 30, uint64_t{0}}) {
        SCOPED_TRACE(keep_bytes);
        DecoderOptions options;
        options.keep_bytes = keep_bytes;
        Result<Decoder> decoder = Decoder::open(model, length, options);
        ASSERT_TRUE(decoder) << decoder.error().text;
        std::vector<uint32_t> all = text, next = text;
        while (all.size() < length) {
            const Result<std::vector<float>> logits = decoder->run(next);
            ASSERT_TRUE(logits) << logits.error().text;
            const std::vector<float> expected = uncached(model, all);
            for (size_t i = 0; i < expected.size(); ++i)
                ASSERT_NEAR((*logits)[i], expected[i], 1e-5) << all.size();
            const uint32_t chosen = greedy(*logits);
            ASSERT_EQ(chosen, greedy(expected)) << all.size();
            all.push_back(chosen);
            next = {chosen};
        }
        EXPECT_EQ(decoder->held(), length - 1);
    }
}

// Generated tokens depend on the text, the seed and the temperature, but neither on the capacity nor on where
// the text was cut and continued.
TEST_P(Cached, neither_room_nor_cuts_change_what_is_generated) {
    const CheckpointModel model = open_model(GetParam());
    const std::vector<uint32_t> text = {5, 3, 8, 20};
    constexpr size_t kCount = 12;
    for (const double temperature : {0.0, 0.7, 3.0}) {
        const Sampler sampler(temperature, 11);
        const std::vector<uint32_t> whole = generated(model, text, kCount, sampler, text.size() + kCount);
        for (size_t cut = 0; cut <= kCount; ++cut) {
            SCOPED_TRACE(testing::Message() << "cut at " << cut << ", temperature " << temperature);
            const std::vector<uint32_t> first = generated(model, text, cut, sampler, text.size() + cut + 1);
            ASSERT_TRUE(std::equal(first.begin(), first.end(), whole.begin()));
            ASSERT_EQ(generated(model, first, kCount - cut, sampler, 32), whole);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Each, Cached, testing::ValuesIn(generating_families()), [](const auto& name) {
    std::string word = name.param;
    std::replace_if(
        word.begin(), word.end(), [](char c) { return c == '/' || c == '.'; }, '_');
    return word;
});

// Chunks of a text that pass Phi-3's original length of 8 tokens, and a failed call on its way.
TEST(Decoder, a_text_that_outgrows_the_short_angles_is_run_anew) {
    const CheckpointModel model = open_model("phi3");
    std::vector<uint32_t> all;
    for (uint32_t n = 0; n < 12; ++n) all.push_back(n * 7 % 24);
    const uint32_t beyond = 24;
    for (const size_t first : {1, 7, 8, 9, 11}) {
        Result<Decoder> decoder = Decoder::open(model, 20);
        ASSERT_TRUE(decoder);
        ASSERT_TRUE(decoder->run(std::span(all).first(first)));
        EXPECT_FALSE(decoder->run({&beyond, 1}));
        EXPECT_EQ(decoder->held(), first);
        const Result<std::vector<float>> logits = decoder->run(std::span(all).subspan(first));
        ASSERT_TRUE(logits) << logits.error().text;
        const std::vector<float> expected = uncached(model, all);
        for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR((*logits)[i], expected[i], 1e-5) << first;
    }
}

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

// One run of the whole text gives the logits of every token without a KV cache: with a causal mask a row does
// not depend on later ones.
void expect_generated_as_uncached(const CheckpointModel& model) {
    constexpr uint64_t kCount = 500;
    std::vector<uint32_t> all = {5, 3, 8, 20}, next = all;
    Result<Decoder> decoder = Decoder::open(model, all.size() + kCount);
    ASSERT_TRUE(decoder) << decoder.error().text;
    for (uint64_t n = 0; n < kCount; ++n) {
        const Result<std::vector<float>> logits = decoder->run(next);
        ASSERT_TRUE(logits) << logits.error().text;
        next = {greedy(*logits)};
        all.push_back(next[0]);
    }
    const Result<ModelRun> run = run_model(model, std::span(all).first(all.size() - 1));
    ASSERT_TRUE(run) << run.error().text;
    for (size_t i = 4; i < all.size(); ++i)
        ASSERT_EQ(all[i], greedy(run->logits.row(i - 1))) << "token " << i;
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
    EXPECT_EQ(encoder.error().text,
              "a BERT model is an encoder, which generates no text; use a decoder model");
    const Result<Decoder> wide = Decoder::open(open_model("gpt2"), 33);
    ASSERT_FALSE(wide);
    EXPECT_EQ(wide.error().text, "capacity is 33; the model has learned 32 positions, which is the limit");
    Result<Decoder> decoder = Decoder::open(open_model("gpt2"), 4);
    ASSERT_TRUE(decoder);
    const std::vector<uint32_t> ids = {1, 2, 3};
    ASSERT_TRUE(decoder->run(ids));
    const Result<std::vector<float>> more = decoder->run(ids);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().text, "3 tokens do not fit after 3; there is room for 4");
    EXPECT_EQ(decoder->held(), 3u);
    const uint32_t beyond = 24;
    EXPECT_FALSE(decoder->run({&beyond, 1}));
    EXPECT_EQ(decoder->held(), 3u);
}

// Nothing is chosen by a row with a logit that is not finite, whoever asks.
TEST(NextTokens, logits_that_are_not_finite_choose_nothing) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf})
        for (const size_t at : {0, 1, 3}) {
            std::vector<float> logits = {0.5f, 1.0f, 2.0f, -1.0f};
            ASSERT_TRUE(next_tokens(logits, 2));
            logits[at] = wrong;
            const std::string text = "the logit of token ID " + std::to_string(at) + " is ";
            for (const Result<void>& r :
                 {check_logits(logits), Result<void>(Error(next_tokens(logits, 1).error())),
                  Result<void>(Error(Sampler(0, 0).choose(logits, 0).error())),
                  Result<void>(Error(Sampler(1, 0).choose(logits, 0).error()))}) {
                ASSERT_FALSE(r);
                EXPECT_EQ(r.error().field, "logits");
                EXPECT_NE(r.error().text.find(text), std::string::npos) << r.error().text;
            }
            EXPECT_TRUE(next_tokens(logits, 0)->empty());  // nothing is asked for
        }
    EXPECT_FALSE(Sampler(0, 0).choose({}, 0));
}

TEST(Sampler, draws_by_the_softmax_and_the_same_for_the_same_seed_and_position) {
    const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f};
    EXPECT_EQ(greedy(logits), 2u);
    std::vector<double> counts(4);
    const Sampler one(2.0, 7), other(2.0, 7);
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
        const uint32_t chosen = *one.choose(logits, uint64_t(i));
        ASSERT_EQ(chosen, *other.choose(logits, uint64_t(i)));
        counts[chosen] += 1.0 / kDraws;
    }
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit / 2.0);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i], std::exp(logits[i] / 2.0) / sum, 0.015) << i;
}

// Probabilities of the logits: 0.1, 0.4, 0.4, 0.08, 0.02. Which tokens each filter leaves, by hand; the draws
// of those have the shares that are left.
TEST(Sampler, filters_leave_the_likeliest_tokens) {
    const double shares[] = {0.1, 0.4, 0.4, 0.08, 0.02};
    std::vector<float> logits;
    for (const double share : shares) logits.push_back(float(std::log(share)));
    const struct {
        SamplerOptions options;
        std::vector<uint32_t> kept;
    } cases[] = {
        {{.top_k = 1}, {1, 2}},  // as likely as the first
        {{.top_k = 3}, {0, 1, 2}},
        {{.top_k = 99}, {0, 1, 2, 3, 4}},
        {{.top_p = 0.0}, {1, 2}},
        {{.top_p = 0.85}, {0, 1, 2}},
        {{.top_p = 0.95}, {0, 1, 2, 3}},
        {{.min_p = 0.22}, {0, 1, 2}},
        {{.min_p = 1.0}, {1, 2}},
        {{.top_k = 4, .top_p = 0.91}, {0, 1, 2}},  // 0.9 / 0.98 are enough
        {{.top_k = 4, .top_p = 0.99, .min_p = 0.21}, {0, 1, 2}},
    };
    for (const auto& one : cases) {
        SamplerOptions options = one.options;
        options.temperature = 1, options.seed = 5;
        double sum = 0;
        for (const uint32_t id : one.kept) sum += shares[id];
        std::vector<double> counts(5);
        constexpr int kDraws = 20000;
        for (int i = 0; i < kDraws; ++i)
            counts[*Sampler(options).choose(logits, uint64_t(i))] += 1.0 / kDraws;
        for (uint32_t id = 0; id < 5; ++id) {
            const bool kept = std::find(one.kept.begin(), one.kept.end(), id) != one.kept.end();
            EXPECT_NEAR(counts[id], kept ? shares[id] / sum : 0, kept ? 0.015 : 0)
                << id << " of case " << &one - cases;
        }
    }
    // The temperature comes first: at 0.5 the shares are squares, and the two likeliest have 0.95 together.
    const Sampler cold({.temperature = 0.5, .top_p = 0.94});
    for (int i = 0; i < 2000; ++i) {
        const uint32_t id = *cold.choose(logits, uint64_t(i));
        EXPECT_TRUE(id == 1 || id == 2) << id;
    }
}

}  // namespace
}  // namespace fovea

#include <gtest/gtest.h>
#include <fovea/model.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "random_hashes.hpp"

namespace fovea {
namespace {

template <typename T>
uint64_t fnv1a(const std::vector<T>& values) {
    uint64_t hash = 0xCBF29CE484222325u;
    std::vector<unsigned char> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
    return hash;
}

uint64_t hash_of_floats(TorchGenerator& generator, void (*fill)(TorchGenerator&, std::span<float>)) {
    std::vector<float> values(test::kRandomHashCount);
    fill(generator, values);
    return fnv1a(values);
}

uint64_t hash_of_mask(void (TorchGenerator::*draw)(std::span<uint8_t>, double), TorchGenerator& generator,
                      double drop_probability) {
    std::vector<uint8_t> mask(test::kRandomHashCount);
    (generator.*draw)(mask, drop_probability);
    return fnv1a(mask);
}

// Calls of 1, 2, ... 15, 1, 2, ... normals: pairs that straddle calls.
void fill_in_pairs(TorchGenerator& generator, std::span<float> out) {
    for (size_t n = 0, at = 0; at < out.size(); ++n) {
        const size_t count = std::min<size_t>(1 + n % 15, out.size() - at);
        generator.randn(out.subspan(at, count));
        at += count;
    }
}

uint64_t hash_of_rule(const std::string& rule, TorchGenerator& generator) {
    if (rule == "words") {
        std::vector<uint32_t> words(test::kRandomHashCount);
        for (auto& word : words) word = generator.next_word();
        return fnv1a(words);
    }
    if (rule == "rand") return hash_of_floats(generator, [](auto& g, auto out) { g.rand(out); });
    if (rule == "uniform")
        return hash_of_floats(generator, [](auto& g, auto out) { g.uniform(out, -0.3, 1.7); });
    if (rule == "linear_3")
        return hash_of_floats(generator, [](auto& g, auto out) { g.linear_weight(out, 3); });
    if (rule == "linear_768")
        return hash_of_floats(generator, [](auto& g, auto out) { g.linear_bias(out, 768); });
    if (rule == "randn_in_blocks") return hash_of_floats(generator, [](auto& g, auto out) { g.randn(out); });
    if (rule == "randn_with_rest") {
        return hash_of_floats(generator, [](auto& g, auto out) {
            g.randn(out.first(out.size() - 7));
            g.randn(out.last(7));
        });
    }
    if (rule == "randn_in_pairs") return hash_of_floats(generator, fill_in_pairs);
    if (rule == "native_0.2") return hash_of_mask(&TorchGenerator::keep_mask_native, generator, 0.2);
    if (rule == "native_0.5") return hash_of_mask(&TorchGenerator::keep_mask_native, generator, 0.5);
    if (rule == "mkl_0.1") return hash_of_mask(&TorchGenerator::keep_mask_mkl, generator, 0.1);
    if (rule == "mkl_0.5") return hash_of_mask(&TorchGenerator::keep_mask_mkl, generator, 0.5);
    ADD_FAILURE() << "random_hashes.hpp names a rule this test does not know: " << rule;
    return 0;
}

TEST(TorchGenerator, agrees_with_the_second_implementation_over_100000_values_a_rule) {
    for (const auto& expected : test::kRandomHashes) {
        TorchGenerator generator(expected.seed);
        EXPECT_EQ(hash_of_rule(expected.rule, generator), expected.fnv1a)
            << "rule " << expected.rule << ", seed " << expected.seed;
    }
}

TEST(TorchGenerator, first_words_of_seed_123) {
    TorchGenerator generator(123);
    EXPECT_EQ(generator.next_word(), 2991312382u);
    EXPECT_EQ(generator.next_word(), 3062119789u);
    EXPECT_EQ(generator.next_word(), 1228959102u);
}

TEST(TorchGenerator, only_the_low_half_of_a_seed_counts) {
    TorchGenerator high(123 + (uint64_t{7} << 32));
    EXPECT_EQ(high.next_word(), 2991312382u);
    TorchGenerator negative(static_cast<uint64_t>(int64_t{-5}));
    TorchGenerator low(0xFFFFFFFBu);
    EXPECT_EQ(negative.next_word(), low.next_word());
}

// The values below are what PyTorch 1.13.1 gives on its plain path; shortest decimals of float32.

TEST(TorchGenerator, embedding_of_five_by_four) {
    const std::vector<float> expected = {0.33737016f, -0.17777722f, -0.30352753f, -0.58801246f, 1.5809691f,
                                         1.3010399f,  1.2753012f,   -0.2009531f,  -0.1605638f,  -0.40148792f,
                                         0.6957241f,  -1.8060526f,  -1.1588687f,  0.325471f,    -0.6315054f,
                                         -2.839994f,  -0.78485334f, -1.4095724f,  -0.40762687f, 0.7953261f};
    std::vector<float> table(20);
    TorchGenerator(123).embedding(table);
    EXPECT_EQ(table, expected);
}

TEST(TorchGenerator, rand_of_four_by_four) {
    const std::vector<float> expected = {0.29611194f,  0.5165623f,  0.25167072f, 0.6885568f,
                                         0.07397246f,  0.86652195f, 0.13657987f, 0.10247904f,
                                         0.18405646f,  0.72644675f, 0.3152539f,  0.68710667f,
                                         0.075635314f, 0.19663817f, 0.31641197f, 0.40174013f};
    std::vector<float> weight(16);
    TorchGenerator(123).rand(weight);
    EXPECT_EQ(weight, expected);
}

TEST(TorchGenerator, three_linear_layers_of_seed_789) {
    const std::vector<float> expected = {0.31605905f,  0.45680857f,  0.51183486f,  -0.1682854f,  -0.33787704f,
                                         -0.09177387f, 0.40580583f,  -0.47042054f, 0.2368052f,   0.21336073f,
                                         -0.26005065f, -0.510543f,   0.2525699f,   -0.14147827f, -0.19618136f,
                                         0.51910746f,  -0.08516759f, -0.20432705f};
    std::vector<float> weights(18);
    TorchGenerator generator(789);
    for (size_t at = 0; at < 18; at += 6) {
        generator.linear_weight(std::span(weights).subspan(at, 6), 3);
    }
    EXPECT_EQ(weights, expected);
}

TEST(TorchGenerator, bias_of_the_output_layer_comes_after_four_weights) {
    TorchGenerator generator(123);
    generator.skip(3 * 6 + 4);
    std::vector<float> bias(2);
    generator.linear_bias(bias, 2);
    EXPECT_EQ(bias, (std::vector<float>{0.19335884f, 0.68254095f}));
}

TEST(TorchGenerator, both_kinds_of_dropout_mask_at_one_half) {
    const std::vector<uint8_t> native = {1, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 1,
                                         0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0};
    const std::vector<uint8_t> mkl = {1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0,
                                      1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0};
    std::vector<uint8_t> mask(36);
    TorchGenerator(123).keep_mask_native(mask, 0.5);
    EXPECT_EQ(mask, native);
    TorchGenerator(123).keep_mask_mkl(mask, 0.5);
    EXPECT_EQ(mask, mkl);
}

TEST(TorchGenerator, mkl_words_that_the_modulus_divides_start_the_stream_at_one) {
    // 1 / M is kept at one half, 1132489760 / M = 0.527 is not; the mask goes on as that of seed word 1.
    std::vector<uint8_t> of_one(100), mask(100);
    TorchGenerator::keep_mask_mcg31(1, of_one, 0.5);
    EXPECT_EQ(of_one[0], 1);
    EXPECT_EQ(of_one[1], 0);
    for (const uint32_t word : {0u, 2147483647u, 4294967294u}) {
        TorchGenerator::keep_mask_mcg31(word, mask, 0.5);
        EXPECT_EQ(mask, of_one) << "word " << word;
    }
}

struct WordCount {
    const char* what;
    void (*draw)(TorchGenerator&);
    uint64_t words;
};

template <size_t kCount>
void draw_normals(TorchGenerator& generator) {
    std::vector<float> values(kCount);
    generator.randn(values);
}

TEST(TorchGenerator, every_rule_takes_its_number_of_words) {
    const WordCount counts[] = {
        {"20 normals", draw_normals<20>, 36},
        {"16 normals", draw_normals<16>, 16},
        {"32 normals", draw_normals<32>, 32},
        {"15 normals", draw_normals<15>, 32},
        {"1 normal", draw_normals<1>, 4},
        {"native mask of 7",
         [](auto& g) {
             std::vector<uint8_t> m(7);
             g.keep_mask_native(m, 0.1);
         },
         14},
        {"mkl mask of 7",
         [](auto& g) {
             std::vector<uint8_t> m(7);
             g.keep_mask_mkl(m, 0.1);
         },
         1},
    };
    for (const auto& count : counts) {
        TorchGenerator drawn(42);
        count.draw(drawn);
        TorchGenerator skipped(42);
        skipped.skip(count.words);
        EXPECT_EQ(drawn.next_word(), skipped.next_word()) << count.what;
    }
}

TEST(TorchGenerator, seeding_forgets_the_spare_normal) {
    TorchGenerator generator(7);
    std::vector<float> first(1), again(1);
    generator.randn(first);
    generator.manual_seed(7);
    generator.randn(again);
    EXPECT_EQ(first, again);
}

// The bound as PyTorch writes it down (Kaiming's, with a = sqrt(5)), where the generator draws by
// 1/sqrt(fan_in).
TEST(TorchGenerator, linear_weights_have_kaimings_bound) {
    const double gain = std::sqrt(2.0 / (1.0 + std::sqrt(5.0) * std::sqrt(5.0)));
    for (size_t fan_in = 1; fan_in <= 20000; ++fan_in) {
        const double bound = std::sqrt(3.0) * (gain / std::sqrt(double(fan_in)));
        ASSERT_EQ(float(bound), float(1.0 / std::sqrt(double(fan_in)))) << "fan_in " << fan_in;
    }
    std::vector<float> drawn(1000), weight(1000);
    TorchGenerator(123).rand(drawn);
    TorchGenerator(123).linear_weight(weight, 7);
    const float bound = float(1.0 / std::sqrt(7.0));
    for (size_t n = 0; n < drawn.size(); ++n) {
        const float product = drawn[n] * (bound + bound);
        ASSERT_EQ(weight[n], product - bound) << n;
    }
}

TEST(Dropout, kept_elements_are_scaled_up) {
    EXPECT_EQ(dropout_factor(1, 0.2), 1.25f);
    EXPECT_EQ(dropout_factor(1, 0.5), 2.0f);
    EXPECT_EQ(dropout_factor(0, 0.5), 0.0f);
    EXPECT_EQ(dropout_factor(1, 0.0), 1.0f);
}

}  // namespace
}  // namespace fovea

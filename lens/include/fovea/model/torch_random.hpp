// The random numbers of PyTorch's CPU generator, bit for bit: same seed, same weights, same dropout masks as
// the notebook that a reader has open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>

namespace fovea {

// One Mersenne Twister (MT19937). Everything below draws whole 32-bit words from it, elements in row-major
// order. Follows PyTorch's plain code path (the one without AVX2; the other differs in last bits of normals
// and of uniform_). Nothing here allocates or fails. Not thread-safe: one generator, one thread.
class TorchGenerator {
  public:
    explicit TorchGenerator(uint64_t seed) { manual_seed(seed); }

    // torch.manual_seed. Only the low 32 bits count; a negative seed is given modulo 2^64. Forgets the spare
    // normal.
    void manual_seed(uint64_t seed);

    uint32_t next_word() { return static_cast<uint32_t>(words_()); }
    void skip(uint64_t word_count) { words_.discard(word_count); }

    // One word: 0 <= u < 1, a multiple of 2^-24.
    float next_uniform_f32();
    // Two words: 0 <= u < 1, a multiple of 2^-53.
    double next_uniform_f64();

    // torch.rand: one word an element.
    void rand(std::span<float> out);

    // tensor.uniform_(low, high): one word an element, each operation rounded to float32.
    void uniform(std::span<float> out, double low, double high);

    // torch.randn, and the table of nn.Embedding. 16 elements or more: one word each, and 16 more words where
    // 16 does not divide the count. Fewer: four words for every two normals; the second of a pair is kept
    // across calls.
    void randn(std::span<float> out);
    void embedding(std::span<float> out) { randn(out); }

    // nn.Linear(fan_in, n): uniform between -1/sqrt(fan_in) and 1/sqrt(fan_in). Draw the weight first, then
    // the bias where the layer has one. fan_in is at least 1.
    void linear_weight(std::span<float> out, size_t fan_in);
    void linear_bias(std::span<float> out, size_t fan_in);

    // The dropout mask (1 kept, 0 dropped) of nn.Dropout(drop_probability) in training, drop_probability in
    // [0, 1). Native: builds without MKL, and CPUs other than Intel's; two words an element.
    void keep_mask_native(std::span<uint8_t> out, double drop_probability);
    // MKL: the usual x86 builds on Intel CPUs; one word, whatever the count, seeds MKL's own generator
    // MCG31m1.
    void keep_mask_mkl(std::span<uint8_t> out, double drop_probability) {
        keep_mask_mcg31(next_word(), out, drop_probability);
    }
    static void keep_mask_mcg31(uint32_t seed_word, std::span<uint8_t> out, double drop_probability);

  private:
    void normals_in_blocks(std::span<float> out);
    float next_normal_in_pairs();

    std::mt19937 words_;
    std::optional<double> spare_normal_;
};

// nn.Dropout's arithmetic for one element: x * (keep / (1 - p)), 1 - p rounded to float32. This is the
// factor.
float dropout_factor(uint8_t keep, double drop_probability);

}  // namespace fovea

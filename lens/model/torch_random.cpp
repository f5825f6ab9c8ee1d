#include <fovea/model/torch_random.hpp>

#include <cmath>

namespace fovea {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// log, cos and sin of a float32, rounded once: the nearest float32 whatever the C library's float versions
// do.
float log_nearest(float x) { return static_cast<float>(std::log(static_cast<double>(x))); }
float cos_nearest(float x) { return static_cast<float>(std::cos(static_cast<double>(x))); }
float sin_nearest(float x) { return static_cast<float>(std::sin(static_cast<double>(x))); }

constexpr size_t kBlockElems = 16;
constexpr size_t kPairElems = kBlockElems / 2;

// Box-Muller over 16 uniforms in place: element j and j + 8 make one pair of normals.
void make_block_normal(std::span<float, kBlockElems> block) {
    for (size_t j = 0; j < kPairElems; ++j) {
        const float radius = std::sqrt(-2.0f * log_nearest(1.0f - block[j]));
        const float theta = static_cast<float>(kTwoPi * static_cast<double>(block[j + kPairElems]));
        block[j] = radius * cos_nearest(theta);
        block[j + kPairElems] = radius * sin_nearest(theta);
    }
}

// MKL's MCG31m1: x <- a x mod 2^31 - 1.
constexpr uint64_t kMcgModulus = 2147483647;
constexpr uint64_t kMcgMultiplier = 1132489760;

}  // namespace

void TorchGenerator::manual_seed(uint64_t seed) {
    words_.seed(static_cast<uint32_t>(seed));
    spare_normal_.reset();
}

float TorchGenerator::next_uniform_f32() {
    constexpr float kTwoToMinus24 = 1.0f / 16777216.0f;
    return static_cast<float>(next_word() & 0xFFFFFFu) * kTwoToMinus24;
}

double TorchGenerator::next_uniform_f64() {
    constexpr double kTwoToMinus53 = 1.0 / 9007199254740992.0;
    const uint64_t high = next_word();
    const uint64_t low = next_word();
    return static_cast<double>((high << 32 | low) & ((uint64_t{1} << 53) - 1)) * kTwoToMinus53;
}

void TorchGenerator::rand(std::span<float> out) {
    for (float& value : out) value = next_uniform_f32();
}

void TorchGenerator::uniform(std::span<float> out, double low, double high) {
    const float from = static_cast<float>(low);
    const float range = static_cast<float>(high) - from;
    for (float& value : out) {
        // Two statements: a fused multiply-add would round once where PyTorch's plain path rounds twice.
        const float product = next_uniform_f32() * range;
        value = product + from;
    }
}

void TorchGenerator::linear_weight(std::span<float> out, size_t fan_in) {
    // PyTorch defines the weight's bound as Kaiming's with a = sqrt(5). In float32 it is the bias's bound for
    // every fan_in up to 2^26: all were compared.
    const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
    uniform(out, -bound, bound);
}

void TorchGenerator::linear_bias(std::span<float> out, size_t fan_in) { linear_weight(out, fan_in); }

void TorchGenerator::randn(std::span<float> out) {
    if (out.size() >= kBlockElems) {
        normals_in_blocks(out);
    } else {
        for (float& value : out) value = next_normal_in_pairs();
    }
}

void TorchGenerator::normals_in_blocks(std::span<float> out) {
    rand(out);
    const size_t whole_elems = out.size() - out.size() % kBlockElems;
    for (size_t at = 0; at < whole_elems; at += kBlockElems) {
        make_block_normal(out.subspan(at).first<kBlockElems>());
    }
    if (whole_elems != out.size()) {
        // The last 16 are drawn anew, over normals that are already there: so PyTorch does it.
        const auto last = out.last<kBlockElems>();
        rand(last);
        make_block_normal(last);
    }
}

float TorchGenerator::next_normal_in_pairs() {
    if (spare_normal_) {
        const double normal = *spare_normal_;
        spare_normal_.reset();
        return static_cast<float>(normal);
    }
    const double turn = next_uniform_f64();
    const double radius = std::sqrt(-2.0 * std::log1p(-next_uniform_f64()));
    const double theta = kTwoPi * turn;
    spare_normal_ = radius * std::sin(theta);
    return static_cast<float>(radius * std::cos(theta));
}

void TorchGenerator::keep_mask_native(std::span<uint8_t> out, double drop_probability) {
    const double keep_probability = 1.0 - drop_probability;
    for (uint8_t& keep : out) keep = next_uniform_f64() < keep_probability ? 1 : 0;
}

void TorchGenerator::keep_mask_mcg31(uint32_t seed_word, std::span<uint8_t> out, double drop_probability) {
    const float keep_probability = static_cast<float>(1.0 - drop_probability);
    uint64_t state = seed_word % kMcgModulus;
    if (state == 0) state = 1;  // 0 is the stream's fixed point
    for (uint8_t& keep : out) {
        const double u = static_cast<double>(state) / static_cast<double>(kMcgModulus);
        keep = static_cast<float>(u) < keep_probability ? 1 : 0;
        state = kMcgMultiplier * state % kMcgModulus;
    }
}

float dropout_factor(uint8_t keep, double drop_probability) {
    return static_cast<float>(keep) / static_cast<float>(1.0 - drop_probability);
}

}  // namespace fovea

#include <fovea/inspect/long_context.hpp>

#include <array>
#include <cmath>
#include <string>

#include "inspect/splitmix64.hpp"

namespace fovea {
namespace {

constexpr std::array<LongContextPreset, 6> kPresets = {{
    {"4k", "4,096 tokens", 4096},
    {"16k", "16,384 tokens", 16384},
    {"32k", "32,768 tokens", 32768},
    {"64k", "65,536 tokens", 65536},
    {"128k", "131,072 tokens", 131072},
    {"1m", "1,048,576 tokens", 1048576},
}};
constexpr uint32_t kMaxTokens = 1u << 20;

// Dimensions: kFrequencies pairs that turn with the position, then what the token is, then one that every
// query asks for.
constexpr uint32_t kFrequencies = 15, kContent = 33;
constexpr uint32_t kContentFirst = 2 * kFrequencies, kAsked = kContentFirst + kContent;
static_assert(kAsked + 1 == kLongContextDim);

// Logits of the patterns. 2^17 keys with only random similarity weigh together as much as one key with logit
// 17.6.
constexpr double kLocal = 14.5, kInduction = 13.5, kSink = 15.0, kSeparator = 9.5;
constexpr uint32_t kMeanSentence = 170;

// The text repeats, and each time a few tokens are other ones.
uint64_t token_at(int64_t i, uint32_t period) {
    if (i < 0) return 0;
    const uint64_t place = uint64_t(i) % period, turn = uint64_t(i) / period;
    const bool changed = turn > 0 && splitmix64(uint64_t(i) ^ 0x5eed) % 8 == 0;
    return splitmix64(place + (changed ? (turn << 32) : 0)) | 1;
}

bool is_separator(int64_t i) { return splitmix64(uint64_t(i) ^ 0xd07) % kMeanSentence == 0; }

void add_content(uint64_t token, double amplitude, float* out) {
    const double unit = amplitude / std::sqrt(double(kContent));
    for (uint32_t n = 0; n < kContent; ++n) out[n] = float(splitmix64(token * 64 + n) & 1 ? unit : -unit);
}

}  // namespace

std::span<const LongContextPreset> long_context_presets() { return kPresets; }

Result<LongContext> long_context(uint32_t tokens) {
    if (tokens == 0 || tokens > kMaxTokens)
        return Error{
            FOVEA_INVALID_ARGUMENT, "tokens",
            "tokens is " + std::to_string(tokens) + "; it must be from 1 to " + std::to_string(kMaxTokens)};
    LongContext out;
    Attention call;
    call.batch(1).heads(1).lengths(tokens, tokens).dims(kLongContextDim).causal();
    call.outputs(FOVEA_OUTPUT_LSE);
    out.call = call.desc;
    // A prime share of the length, so that it falls on no tile's edge.
    out.period = tokens < 16 ? tokens : tokens / 5 | 1;
    out.q.assign(size_t(tokens) * kLongContextDim, 0.0f);
    out.k.assign(out.q.size(), 0.0f);
    const double scale = 1.0 / std::sqrt(double(kLongContextDim));
    const double turning = std::sqrt(kLocal / scale / kFrequencies);
    const double content = std::sqrt(kInduction / scale);
    // Turns from 8 tokens to 600 long: alike within a few tokens of each other, else at random.
    std::array<double, kFrequencies> lengths;
    for (uint32_t f = 0; f < kFrequencies; ++f) lengths[f] = 8.0 * std::pow(75.0, f / (kFrequencies - 1.0));
    for (uint32_t i = 0; i < tokens; ++i) {
        float* q = &out.q[size_t(i) * kLongContextDim];
        float* k = &out.k[size_t(i) * kLongContextDim];
        for (uint32_t f = 0; f < kFrequencies; ++f) {
            const double angle = double(i) * 6.283185307179586 / lengths[f];
            k[2 * f] = q[2 * f] = float(turning * std::cos(angle));
            k[2 * f + 1] = q[2 * f + 1] = float(turning * std::sin(angle));
        }
        add_content(token_at(i, out.period), content, q + kContentFirst);
        add_content(token_at(int64_t(i) - 1, out.period), content, k + kContentFirst);
        q[kAsked] = 1.0f;
        k[kAsked] = float(i == 0 ? kSink / scale : is_separator(i) ? kSeparator / scale : 0.0);
    }
    return out;
}

Result<LongContext> long_context(std::string_view preset) {
    std::string known;
    for (const LongContextPreset& p : kPresets) {
        if (p.name == preset) return long_context(p.tokens);
        known += (known.empty() ? "" : ", ") + std::string(p.name);
    }
    return Error{FOVEA_INVALID_ARGUMENT, "preset",
                 "preset is '" + std::string(preset) + "'; it must be one of " + known};
}

}  // namespace fovea
